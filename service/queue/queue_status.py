"""The text that says what a job waits for. The API, the events, the problems, the dashboard and the command line show
this text after the words "waits for"."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from jobs.contract import TABLE_LOCKED
from service.model.command_line import Choice, line
from service.model.formatting import count, duration, utc_minute
from service.queue.breaker import Breaker
from service.queue.job import WITH_WORKER, Job, JobState, mutates
from service.queue.lock_sighting import LockSighting
from service.queue.worker import ALIVE, Worker


def waits_for(
    job: Job,
    of_table: Sequence[Job],
    workers: Sequence[Worker],
    now: datetime,
    *,
    lock: LockSighting | None = None,
    breaker: Breaker | None = None,
) -> str | None:
    """Returns what a job waits for; None if it has ended or waits for nothing.

    A queued job waits for the first reason that prevents its lease, in the order of the checks in `lease_store`. A job
    that a worker has may wait in its present step. `of_table` are the jobs of the table that workers have, and
    `workers` are all known workers. `lock` is the last sighting of the table's lock, and `breaker` belongs to the table
    and this kind of job."""
    if job.state in WITH_WORKER:
        return job.progress.waits_for if job.progress else None
    if job.state is not JobState.QUEUED:
        return None
    if job.waits_for_writers:
        until = f", until {utc_minute(job.hand_over.deadline)}" if job.hand_over else ""
        return f"the writers to stop{until}"
    writes = mutates(job.kind, dry_run=job.dry_run)
    if writes and lock is not None and lock.is_in_the_way(now):
        return awaited_lock(job, lock, now)
    if job.not_before > now:
        if job.held_back:
            return job.held_back
        wait = duration(job.not_before - now)
        if awaited := awaited_lock(job):
            return f"{awaited}; its next attempt is in {wait}"
        because = f": {breaker.sentence(now)}" if breaker is not None else ""
        return f"its next attempt, in {wait}{because}"
    if busy := [other for other in of_table if writes and mutates(other.kind, dry_run=other.dry_run)]:
        return f"job {busy[0].id} ({busy[0].kind.value}), which is running on this table"
    of_group = [worker for worker in workers if worker.info.group == job.worker_group]
    alive = [worker for worker in of_group if worker.is_alive(now)]
    if not alive:
        latest = max(of_group, key=lambda worker: worker.last_seen, default=None)
        if latest and latest.info.error:
            ago = duration(now - latest.last_seen)
            return f"a worker of the group {job.worker_group}: one failed to start {ago} ago: {latest.info.error.title}"
        return (
            f"a worker of the group {job.worker_group} (none has called for {duration(ALIVE)};"
            f" `{starting_worker(job.worker_group)}` starts one)"
        )
    ready = [worker for worker in alive if worker.is_ready]
    if not ready:
        return f"executors: {count(len(alive), 'worker')} of the group {job.worker_group}, none of them ready"
    if all(len(worker.job_ids) >= (worker.info.slots or 1) for worker in ready):
        return f"a free slot: {count(len(ready), 'worker')} of the group {job.worker_group}, all busy"
    return "its turn"


def awaited_lock(job: Job, lock: LockSighting | None = None, now: datetime | None = None) -> str | None:
    """Returns words for the table's lock and its holder if the job waits for the lock, in a worker or in the queue;
    else None. `lock` is the sighting that holds the job back."""
    if lock is not None and now is not None and job.state is JobState.QUEUED and lock.is_in_the_way(now):
        return f"{_LOCK}, {lock.held(now)}"
    if job.state in WITH_WORKER:
        awaited = job.progress.waits_for if job.progress else None
        return awaited if awaited and awaited.startswith(_LOCK) else None
    if job.state is not JobState.QUEUED or job.error is None or job.error.type != TABLE_LOCKED:
        return None
    holder = job.error.detail.partition("; waited")[0]
    return f"{_LOCK}, {holder}" if holder.startswith("held") else _LOCK


_LOCK = "the table's lock"
"""A worker that waits for the lock reports a step that begins with these words (`jobs.hudi.lock`)."""


@lru_cache(maxsize=100)
def starting_worker(group: str) -> str:
    """Returns the command that starts a worker of the group."""
    return line("worker", "--group", group, "--service", Choice("URL"))
