"""Lease operations of workers: request a job, send heartbeats, report a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import assert_never

from sqlalchemy import Connection

from jobs.contract import (
    Heartbeat,
    HeartbeatAnswer,
    JobKind,
    LogLine,
    Problem,
    Result,
    WorkerInfo,
    WorkOrder,
)
from jobs.job_params import OnActiveWriters
from jobs.kinds.registry import KINDS
from jobs.storage.permissions import Permissions
from service.access.errors import SecretUnreadableError
from service.access.secret_cipher import SecretCipher
from service.catalog import decision_times, snapshot_store, table_store, watch_store
from service.catalog.declared import check_declared, check_metastore
from service.catalog.errors import MetastoreForbiddenError
from service.catalog.registration import Registration
from service.db.documents import AtOnce
from service.db.engine import reading, writing
from service.delivery import outbox
from service.events.database import Database
from service.events.event import Event
from service.lake.engine_sighting import Sightings
from service.model.backoff import BackOff
from service.model.job_errors import LeaseLostError
from service.model.storage_errors import PathForbiddenError
from service.model.table_errors import OptionNotAllowedError
from service.queue import (
    attempt_delays,
    attempt_figures,
    failing_work,
    held_back_store,
    job_changes,
    job_incidents,
    job_log,
    job_store,
    job_tally,
    job_trace,
    lease_store,
    polled_locks,
    repeat_store,
    reported_facts,
    retention_needs,
    worker_store,
)
from service.queue.hand_over import wait_for_writers
from service.queue.hand_over.policy import loses_batches
from service.queue.job import NOBODY, AttemptOutcome, Holder, Job, JobState
from service.queue.job_events import job_ended
from service.queue.retry import End, Retry, after_result, with_leftovers


@dataclass(frozen=True)
class LeaseConfig:
    """The settings of leases."""

    lease: timedelta  # How long a worker holds a job without a heartbeat.
    timeout_seconds: float  # Time limit of a whole attempt.
    backoff: BackOff
    lock_wait_seconds: float = 5.0  # Limit of waits for a lock that others hold, unless the table says otherwise.
    requested_first: bool = True  # Whether submitted jobs go before those of policies with the same priority.
    looks_at_locks: bool = False  # Whether a lock that was held at the last poll is checked before a job starts.


def announce(database: Database, worker_id: str, info: WorkerInfo) -> None:
    """Stores the worker's description of itself, unless the same one was stored within the last seconds."""
    now = database.clock()
    with reading(database.engine) as connection:
        if worker_store.is_fresh(connection, worker_id, info, now):
            return
    with writing(database.engine, quietly=True) as connection:
        worker_store.announce(connection, worker_id, info, now)


def lease(
    database: Database,
    config: LeaseConfig,
    *,
    worker_id: str,
    group: str,
    permissions: Permissions,
    token_id: str | None = None,
    request_id: str | None = None,
    only_submitted: bool = False,
) -> WorkOrder | None:
    """Leases the next due job to this worker and returns its work order; None when no job is due. A worker that repeats
    its request, because the answer was lost, gets the same job again.

    A spare slot asks for `only_submitted` jobs, and gets none unless the settings let submitted jobs go first.

    The work order is the only place where the secrets of a table leave the service. A job whose table is no longer
    permitted, or has secrets that cannot be decrypted, fails, so that it does not block others. Only the token
    `token_id` may extend or end the lease; if it is None, any token may.
    """
    now = database.clock()
    with reading(database.engine) as connection:
        before = repeat_store.leased_with(connection, request_id, Holder(worker_id, token_id)) if request_id else None
        may_take = not only_submitted or config.requested_first
        is_due = may_take and lease_store.is_any_due(connection, now, group, only_submitted=only_submitted)
    if before and (order := _leased_again(database, config, before, now)):
        return order
    if not is_due:
        return None
    events: list[Event] = []
    tables: dict[str, tuple[Registration, Sightings]] = {}  # By job id.
    with writing(database.engine, quietly=True) as connection:

        def may_start(job: Job) -> bool:
            table, sightings = tables[job.id] = _table_of(connection, job)
            try:
                check_declared(table.to_contract({}, database.cipher), permissions)
                check_metastore(job.kind, job.params, permissions)
            except (
                SecretUnreadableError,
                PathForbiddenError,
                OptionNotAllowedError,
                MetastoreForbiddenError,
            ) as error:
                job_store.fail_queued(connection, job.id, error=with_leftovers(error.problem(), job.instants), now=now)
                decision_times.wake(connection, job.table_id, now)
                events.append(job_changes.of_job(connection, job.id, now, job_ended))
                return False
            if delay := attempt_delays.delay_of(connection, job, table, now):
                held_back_store.hold(connection, job.id, until=delay.until, because=delay.because)
                return False
            if until := failing_work.put_off(connection, job, now):
                held_back_store.hold(connection, job.id, until=until)
                return False
            if config.looks_at_locks and polled_locks.is_in_the_way(connection, job, now):
                return False
            # A Flink job may have been detected only after this job was queued.
            held_back = wait_for_writers.hold_back(connection, job, table, sightings, now)
            events.extend(held_back)
            return not held_back

        job = lease_store.take(
            connection,
            worker_id=worker_id,
            token_id=token_id,
            request_id=request_id,
            group=group,
            now=now,
            deadline=now + config.lease,
            may_start=may_start,
            requested_first=config.requested_first,
            only_submitted=only_submitted,
        )
        outbox.publish(connection, events, now=now)
        order = _work_order(connection, job, config, database.cipher, now, known=tables.get(job.id)) if job else None
    if events:
        database.notifier.notify()
    return order


def _leased_again(database: Database, config: LeaseConfig, job: Job, now: datetime) -> WorkOrder | None:
    """Returns the order of a job whose answer was lost, with the whole time of a lease; None if its lease has ended."""
    with writing(database.engine) as connection:
        if repeat_store.extend(connection, job, now + config.lease):
            return _work_order(connection, job, config, database.cipher, now)
    return None


_BEFORE = AtOnce(table_store.OF_ID, watch_store.ENGINES)


def _table_of(connection: Connection, job: Job) -> tuple[Registration, Sightings]:
    """Returns the table of a job, and the engines that were seen there. Raises TableNotFoundError."""
    table, sightings = _BEFORE.read(connection, {"of_table": job.table_id, "of_tables": [job.table_id]})
    return table_store.existing(table, job.table_id), sightings.get(job.table_id, {})


def _work_order(
    connection: Connection,
    job: Job,
    config: LeaseConfig,
    cipher: SecretCipher,
    now: datetime,
    *,
    known: tuple[Registration, Sightings] | None = None,
) -> WorkOrder:
    """Returns the order for the worker. `known` is what `_table_of` has read in this transaction."""
    table, sightings = known or _table_of(connection, job)
    if loses_batches(job.kind, job.params, table, sightings):
        # The job was submitted before the Flink job was detected.
        job = job.evolve(params={**job.params, "on_active_writers": OnActiveWriters.WAIT.value})
    if needs := retention_needs.of_job(connection, job, table, now):
        job = job.evolve(params={**job.params, **needs})
    declared = table.to_contract(sightings, cipher)
    if declared.lock.wait_seconds is None:
        declared = replace(declared, lock=replace(declared.lock, wait_seconds=config.lock_wait_seconds))
    order = job.work_order(declared, config.timeout_seconds)
    return replace(order, submitted=config.requested_first and job.reason is None)


def heartbeat(
    database: Database,
    config: LeaseConfig,
    *,
    job_id: str,
    beat: Heartbeat,
    holder: Holder = NOBODY,
) -> HeartbeatAnswer:
    """Extends the lease. A heartbeat after the deadline still counts if the job has not been taken back."""
    now = database.clock()
    try:
        with writing(database.engine, quietly=True) as connection:
            job = lease_store.job_of_lease(connection, job_id, beat.attempt, holder)
            after = lease_store.beat(connection, job, beat, now=now, deadline=now + config.lease)
            job_log.append(connection, job.id, job.attempt, beat.log)
            if job.worker_id:
                worker_store.seen(connection, job.worker_id, now)
            events = job_changes.of_heartbeat(connection, job, after, now)
            outbox.publish(connection, events, now=now)
    except LeaseLostError:
        return HeartbeatAnswer.LOST
    if events:
        database.notifier.notify()
    return HeartbeatAnswer.CANCEL if job.cancel_requested else HeartbeatAnswer.CONTINUE


def report(
    database: Database,
    rng: Random,
    config: LeaseConfig,
    *,
    job_id: str,
    attempt: int,
    result: Result,
    holder: Holder = NOBODY,
    contradiction: Problem | None = None,
    log: Sequence[LogLine] = (),
) -> Job:
    """Ends the attempt, and ends the job or queues it again. `contradiction` is the result of
    `service.queue.verification`. A worker whose answer was lost repeats its report, which then changes nothing. Raises
    LeaseLostError when this attempt of this holder does not hold the job."""
    now = database.clock()
    outcome = AttemptOutcome(result.outcome.value)
    with writing(database.engine, quietly=True) as connection:
        try:
            job = lease_store.job_of_lease(connection, job_id, attempt, holder)
        except LeaseLostError:
            if reported := repeat_store.reported(connection, job_id, attempt, outcome, holder):
                return reported
            raise
        parsed = KINDS[job.kind].result.parse(result.details)
        job_log.append(connection, job.id, job.attempt, log)
        instants = job.with_instants(result.instants)
        then = after_result(
            job.evolve(instants=instants),
            result,
            now=now,
            backoff=config.backoff,
            rng=rng,
            contradiction=contradiction,
        )
        next_try_at = failing_work.next_try_at(
            connection,
            job,
            outcome=AttemptOutcome.UNKNOWN if contradiction else outcome,
            error=contradiction or result.error,
            refused=bool(parsed.refusals),
            now=now,
        )
        match then:
            case End(state, error):
                lease_store.end(
                    connection,
                    job,
                    state=state,
                    outcome=outcome,
                    error=error,
                    result=result.details,
                    instants=instants,
                    now=now,
                )
                if job.kind is JobKind.FINISH_EXPANSION and state is JobState.SUCCEEDED and not job.dry_run:
                    # The job changes bucket numbers without an instant on the timeline, so the next poll has to list
                    # the whole table.
                    snapshot_store.forget(connection, job.table_id)
                    watch_store.start_over(connection, job.table_id, now)
                if state is JobState.SUCCEEDED:
                    reported_facts.register_index(connection, job, parsed, now)
                if job.kind is JobKind.METADATA_TABLE and state is JobState.SUCCEEDED and not job.dry_run:
                    # A compaction of the metadata table leaves nothing on the table's own timeline either.
                    snapshot_store.forget_metadata_table(connection, job.table_id)
                if state is JobState.UNKNOWN:
                    watch_store.start_over(connection, job.table_id, now)
                # A poll locks these rows in the same order, so there is no deadlock.
                decision_times.wake(connection, job.table_id, now)
            case Retry(not_before, error, counts):
                lease_store.put_back(
                    connection,
                    job if counts else job.evolve(max_attempts=job.max_attempts + 1),
                    not_before=max(not_before, next_try_at),
                    outcome=outcome,
                    error=error,
                    instants=instants,
                    now=now,
                )
            case never:
                assert_never(never)
        ended = job_store.get(connection, job_id)
        events = job_changes.of_report(connection, job, ended, outcome, now)
        events += job_incidents.of_report(connection, job, ended, parsed, now)
        reported_facts.record_writability(connection, job, result, parsed, now)
        outbox.publish(connection, events, now=now)
        attempt_figures.record(connection, job, outcome, parsed, now)
        outbox.count(connection, job_tally.of_attempt(job, outcome, parsed, now))
    # The job itself may be due again, or another job of the table that waited for this one.
    database.notifier.notify()
    job_trace.ended(ended)
    return ended
