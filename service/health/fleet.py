"""Problems of jobs, workers, worker groups, webhooks, and of a pause that was forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from jobs.contract import TABLE_LOCKED
from service.health.next_step import (
    Action,
    Step,
    enable_webhook,
    replay,
    retry,
    show_lock,
    show_table,
    start_worker,
)
from service.health.problem import About, Definition, HealthProblem, ObjectType, ProblemKind, Severity
from service.health.problem_facts import Facts, TableFacts
from service.model.command_line import Choice, line
from service.model.formatting import count, duration, utc_minute
from service.model.lock_state import LockState
from service.queue.job import Job, JobState
from service.queue.queue_status import awaited_lock
from service.queue.worker import ALIVE, Worker

FAILING = Definition(
    ProblemKind.JOB_FAILING,
    Severity.WARNING,
    "The last job of a kind failed for good",
    "The job's work is not done, and the policy tries again less and less often, at last once a day.",
    "Do what the error says, then start the job again.",
)

FAILURES_SHOWN_FOR = timedelta(days=3)
"""The problem is shown for this time after the last failure. After that, the job is probably not needed any more."""

UNSETTLED = Definition(
    ProblemKind.JOB_UNSETTLED,
    Severity.WARNING,
    "The outcome of a job is unknown",
    "The job may have committed. The job counts neither as done nor as failed until the timeline has been read.",
    "Make the table readable: the next poll that succeeds settles the job.",
)

UNSETTLED_AFTER = timedelta(minutes=15)
"""An unknown outcome becomes a problem after this time. A poll usually settles it, and polls are about a minute
apart."""

LOCK_AWAITED = Definition(
    ProblemKind.LOCK_AWAITED,
    Severity.WARNING,
    "A job waits for the table's lock",
    "The job's work is not done. A lock that is never released stops the table's writers too.",
    "Find out who holds the lock, as far as its provider shows the holder. A writer that died may have left the lock.",
)

LOCK_AFTER = timedelta(minutes=5)

SILENT_AFTER = timedelta(seconds=10)
"""A lock server that does not answer becomes a problem after this time, in which it is asked at least once more."""

NO_WORKER = Definition(
    ProblemKind.GROUP_WITHOUT_WORKER,
    Severity.CRITICAL,
    "Jobs wait, and their group has no worker",
    "None of the jobs of this group is done.",
    "Start a worker of the group.",
)

NO_WORKER_AFTER = timedelta(minutes=2)
"""The problem exists once the oldest startable job has waited for this time. A new worker needs some time to start
Spark."""

WORKER_LOST = Definition(
    ProblemKind.WORKER_LOST,
    Severity.WARNING,
    "A worker disappeared while it held jobs",
    "The worker's slots are missing. The jobs start again, from the state that the worker left on the timeline.",
    "Look at the worker's log: the worker may have been killed, often because memory ran out, or have lost its"
    " connection. Start a worker in its place.",
)

WEBHOOK_FAILING = Definition(
    ProblemKind.WEBHOOK_FAILING,
    Severity.WARNING,
    "A webhook's receiver does not accept events",
    "Later events of the same table wait behind the first one. After too many attempts an event is given up.",
    "Repair the receiver, as its answer says. Then let the service send all waiting deliveries at once.",
)

FAILING_AFTER = timedelta(minutes=10)
"""The problem exists once all attempts have failed for this time. A receiver that restarts fails for a shorter time."""

WEBHOOK_DISABLED = Definition(
    ProblemKind.WEBHOOK_DISABLED,
    Severity.WARNING,
    "A webhook is disabled",
    "The webhook receives nothing. Its deliveries wait, and new events are not sent later unless they are replayed.",
    "Enable the webhook when its receiver works again, and replay the missed events; or delete the webhook.",
)

GIVEN_UP = Definition(
    ProblemKind.DELIVERIES_GIVEN_UP,
    Severity.NOTICE,
    "Deliveries were given up",
    "The receiver never got these events.",
    "Replay them.",
)

PAUSED = Definition(
    ProblemKind.JOBS_PAUSED,
    Severity.NOTICE,
    "Automatic jobs are paused on all tables",
    "No policy starts jobs.",
    "End the pause.",
)

PAUSED_AFTER = timedelta(days=1)


def failing_jobs(table: TableFacts, now: datetime) -> Iterator[HealthProblem]:
    """Yields one problem for each kind of job."""
    for failures in table.failures:
        if now - failures.last_at > FAILURES_SHOWN_FOR:
            continue
        error = failures.error
        if table.is_refused(error):
            continue
        reason = f"{error.title}. {error.detail}".strip() if error else "without a reason"
        name, ago = failures.kind.value.replace("_", " "), duration(now - failures.last_at)
        jobs = f"The last {failures.count} {name} jobs" if failures.count > 1 else f"The last {name} job"
        yield FAILING.of(
            table.about,
            failures.since,
            f"{jobs} failed{', the last of them' if failures.count > 1 else ''} {ago} ago: {reason}",
            {
                "job_kind": failures.kind.value,
                "failures": failures.count,
                "last_job_id": failures.last_job_id,
                "last_failed_at": failures.last_at.isoformat(),
                "error": error.type if error else None,
            },
            step=retry(failures.last_job_id),
            part=failures.kind.value,
            remedy=(error.hint if error else "") or None,
        )


def unsettled_jobs(table: TableFacts, now: datetime) -> Iterator[HealthProblem]:
    for job in table.unsettled:
        since = job.finished_at or job.created_at
        if now - since >= UNSETTLED_AFTER:
            yield UNSETTLED.of(
                table.about,
                since,
                f"Nobody has known for {duration(now - since)} whether {job.kind.value.replace('_', ' ')} job "
                f"{job.id}"
                f" committed {', '.join(job.instants) or 'anything'}.",
                {"job_id": job.id, "job_kind": job.kind.value, "instants": list(job.instants)},
                step=show_table(table.id),
                part=job.id,
            )


def awaited_locks(table: TableFacts, now: datetime) -> Iterator[HealthProblem]:
    for job in table.held:
        was_locked_out = job.error is not None and job.error.type == TABLE_LOCKED
        lock = awaited_lock(job, table.lock, now)
        if lock is None:
            continue
        since = (job.started_at if was_locked_out else job.leased_at) or job.created_at
        after, remedy = LOCK_AFTER, breaking_lock(table)
        if job.state is JobState.QUEUED and table.lock is not None and table.lock.since is not None:
            # The lock may have been held since long before the job was submitted.
            since = min(since, table.lock.since)
            if table.lock.state is LockState.UNKNOWN:
                since, after, remedy = table.lock.since, SILENT_AFTER, "Start the lock's server, or make it answer."
        if now - since >= after:
            yield LOCK_AWAITED.of(
                table.about,
                since,
                f"{job.kind.value.replace('_', ' ').capitalize()} job {job.id}, {_begun(job, now)} ago, waits for"
                f" {lock}.",
                {"job_id": job.id, "job_kind": job.kind.value, "waits_for": lock, "worker_id": job.worker_id},
                step=show_lock(table.id),
                part=job.id,
                remedy=remedy,
            )


def _begun(job: Job, now: datetime) -> str:
    at = job.started_at or job.leased_at
    return f"begun {duration(now - at)}" if at else f"submitted {duration(now - job.created_at)}"


def breaking_lock(table: TableFacts) -> str:
    """Returns the remedy for a lock that has been held for too long."""
    command = line("lock", "break", table.id, "--reason", Choice("REASON"))
    return f"Find out whether its holder is alive. A lock that a dead writer left is broken by `{command}`."


def groups_without_worker(facts: Facts, now: datetime) -> Iterator[HealthProblem]:
    for backlog in facts.backlogs:
        of_group = [worker for worker in facts.workers if worker.info.group == backlog.group]
        alive = [worker for worker in of_group if worker.is_alive(now)]
        if any(worker.is_ready for worker in alive) or now - backlog.oldest < NO_WORKER_AFTER:
            continue
        latest = max(of_group, key=lambda worker: worker.last_seen, default=None)
        seen = latest.last_seen if latest else None
        error = latest.info.error if latest and not alive else None
        if alive:
            why = f"{count(len(alive), 'worker')} of the group, none of them ready"
        elif latest is None:
            why = "no worker of the group was seen for a day"
        elif error:
            ago = duration(now - latest.last_seen)
            why = f"{latest.id} failed to start {ago} ago: {error.title}. {error.detail}".rstrip(".")
        else:
            why = f"its last worker called {duration(now - latest.last_seen)} ago"
        yield NO_WORKER.of(
            About(ObjectType.GROUP, backlog.group, backlog.group),
            backlog.oldest,
            f"{count(backlog.jobs, 'job')} for group {backlog.group}, the oldest due for"
            f" {duration(now - backlog.oldest)}; {why}.",
            {
                "jobs": backlog.jobs,
                "waits_seconds": int((now - backlog.oldest).total_seconds()),
                "unready_workers": len(alive),
                "last_seen": seen.isoformat() if seen else None,
                "error": error.type if error else None,
            },
            step=Step(line("workers")) if alive else start_worker(backlog.group),
            remedy="Give the workers' Spark sessions executors." if alive else error.hint if error else None,
        )


def lost_workers(facts: Facts, now: datetime) -> Iterator[HealthProblem]:
    """Yields one problem for each worker that stopped sending heartbeats while it held jobs. A worker that is shut down
    properly ends its jobs first. The problem ends when another worker of the group starts, or an hour after the jobs
    have ended."""
    for worker in facts.workers:
        lost = facts.lost.get(worker.id)
        if worker.is_alive(now) or not (worker.job_ids or lost) or _is_replaced(worker, facts, now):
            continue
        held = f" The worker holds {', '.join(worker.job_ids)}." if worker.job_ids else ""
        ended = f" {count(lost.attempts, 'attempt')} ended with it." if lost else ""
        yield WORKER_LOST.of(
            About(ObjectType.WORKER, worker.id, worker.id),
            worker.last_seen,
            f"Worker {worker.id} of group {worker.info.group} called last {duration(now - worker.last_seen)} ago;"
            f" workers call every {duration(ALIVE / 3)}.{held}{ended}",
            {
                "group": worker.info.group,
                "last_seen": worker.last_seen.isoformat(),
                "slots": worker.info.slots,
                "jobs": list(worker.job_ids),
                "lost_attempts": lost.attempts if lost else 0,
            },
            step=start_worker(worker.info.group),
        )


def _is_replaced(lost: Worker, facts: Facts, now: datetime) -> bool:
    return any(
        each.info.group == lost.info.group and each.first_seen > lost.last_seen and each.is_alive(now)
        for each in facts.workers
    )


def webhooks(facts: Facts, now: datetime) -> Iterator[HealthProblem]:
    """Yields at most two problems for each webhook: that the webhook fails or is disabled, and that deliveries were
    given up."""
    for each in facts.webhooks:
        hook = each.webhook
        about = About(ObjectType.WEBHOOK, hook.id, hook.description or hook.id)
        figures = {"pending": each.pending, "given_up": each.given_up}
        blocked = each.blocked
        if hook.disabled_because is not None:
            yield WEBHOOK_DISABLED.of(
                about,
                hook.disabled_at or hook.updated_at,
                f"{hook.disabled_because} Waiting: {_many(each.pending)}.",
                {**figures, "because": hook.disabled_because},
                step=enable_webhook(hook.id, "Enable"),
            )
        elif hook.failing_since is not None and now - hook.failing_since >= FAILING_AFTER:
            why = (
                f" First {blocked.event_type} ({blocked.delivery_id}), after {count(blocked.tries, 'attempt')}:"
                f" {blocked.answer}."
                if blocked
                else ""
            )
            yield WEBHOOK_FAILING.of(
                about,
                hook.failing_since,
                f"No attempt has succeeded for {duration(now - hook.failing_since)}."
                f" Waiting: {_many(each.pending)}.{why}",
                {
                    **figures,
                    "last_success_at": hook.last_success_at.isoformat() if hook.last_success_at else None,
                    "blocked_delivery": blocked.delivery_id if blocked else None,
                    "answer": blocked.answer if blocked else None,
                },
                step=enable_webhook(hook.id, "Try again now"),
            )
        if each.given_up and each.given_up_since:
            yield GIVEN_UP.of(
                about,
                each.given_up_since,
                f"{_many(each.given_up)}, the first on {utc_minute(each.given_up_since)}.",
                figures,
                step=replay(hook.id, each.replay_since.isoformat())
                if each.replay_since and hook.is_enabled
                else Step(line("webhooks", "deliveries", hook.id, "--state", "dead")),
            )


def pause(facts: Facts, now: datetime) -> HealthProblem | None:
    found = facts.pause
    if found is None or now - found.since < PAUSED_AFTER:
        return None
    why = f" ({found.reason})" if found.reason else ""
    return PAUSED.of(
        About(ObjectType.SERVICE, "groundskeeper", "Groundskeeper"),
        found.since,
        f"{found.by} paused them {duration(now - found.since)} ago{why}.",
        {"by": found.by, "reason": found.reason},
        step=Step(line("resume"), Action("End the pause", "DELETE", "/v1/pause")),
    )


def _many(deliveries: int) -> str:
    return f"{deliveries} {'delivery' if deliveries == 1 else 'deliveries'}"
