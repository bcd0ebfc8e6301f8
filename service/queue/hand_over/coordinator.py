"""Coordinates hand-overs: a job that replaces file groups waits until the table's Flink writer has stopped.

The service stops the writer itself if the table's owner has registered how to reach the cluster. Otherwise an operator
stops the writer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection, Engine

from jobs.contract import WriterEngine
from jobs.logs import log_context
from service.catalog import decision_times, table_store, watch_store
from service.catalog.registration import FlinkWriter, Registration
from service.db.engine import reading, writing
from service.delivery import outbox
from service.events.notifier import Notifier
from service.lake.active_timeline import read_active_timeline
from service.lake.reader_pool import Readers
from service.lake.snapshot import Pending
from service.model.bounded_pool import BoundedPool
from service.model.clock import Clock
from service.model.errors import DatabaseUnavailableError, GroundskeeperError
from service.model.flink_restart import FlinkRestart, FlinkStateReturnsError
from service.model.hand_over import HandOver, HandOverState
from service.model.job_errors import JobNotFoundError, JobNotWaitingError
from service.model.table_errors import TableNotFoundError
from service.queue import job_changes, job_events, job_store
from service.queue.hand_over import policy, store
from service.queue.hand_over.flink_hosts import check_allowed
from service.queue.hand_over.flink_rest import FlinkRest
from service.queue.hand_over.flink_stop import Stopping
from service.queue.job import Job

log = logging.getLogger(__name__)

_CLAIM_TIME = timedelta(minutes=2)
"""How long one step claims a job. All calls of the step together take less time."""

_STOP_GRACE = timedelta(minutes=10)
"""How long after the deadline a stop that was already requested may still complete, because the writer stops anyway."""


def confirm(
    engine: Engine,
    notifier: Notifier,
    clock: Clock,
    job_id: str,
    *,
    by: str,
    savepoint: str | None,
    restart: FlinkRestart = FlinkRestart.FROM_SAVEPOINT,
) -> Job:
    """Records that the writers have been stopped for this job, and releases it. Idempotent. `by` is the person who
    reports it, and `restart` how Flink will be started again.

    Raises JobNotFoundError, JobNotWaitingError for a job that has begun, has ended or needs no stop, or
    FlinkStateReturnsError.
    """
    now = clock()
    with writing(engine) as connection:
        job = job_store.get(connection, job_id, for_update=True)
        current = job.hand_over
        if current is not None and current.state is HandOverState.STOPPED and not job.waits_for_writers:
            return job
        if job.state.has_worker or not job.state.is_active:
            raise JobNotWaitingError(f"Job {job_id} is {job.state.value}.")
        table = table_store.get(connection, job.table_id)
        if job.dry_run or not policy.replaces_file_groups(job.kind):
            raise JobNotWaitingError(f"Job {job_id} runs beside active writers.")
        if not policy.is_safe(restart, table):
            raise FlinkStateReturnsError(f"{table.base_path} has no declared bucket index.")
        stopped = HandOver(
            HandOverState.STOPPED,
            now,
            current.deadline if current else now,
            by=by,
            savepoint=savepoint or (current.savepoint if current else None),
            detail=f"{by} reported that the writers were stopped.",
            restart=table.flink_restart,
        )
        store.release(connection, job_id, stopped)
        job = job_store.get(connection, job_id)
    notifier.notify()
    return job


@dataclass(frozen=True)
class HandOverConfig:
    """The settings of hand-overs."""

    hosts: tuple[str, ...] = ()  # Hosts whose Flink REST API may be called.
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    allowed_roots: tuple[str, ...] | None = None
    threads: int = 4
    retry_seconds: float = 15.0  # Pause before the next call to a cluster that failed or is not ready.


@dataclass(frozen=True)
class HandedOver:
    """The ids of the jobs that were found waiting, and of those that were given up."""

    waiting: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Returns whether a job waits. If not, the next round may come later (`service.runtime.ticks.Tick`)."""
        return bool(self.waiting)

    def __str__(self) -> str:
        return f"waiting: {', '.join(self.waiting) or 'none'}; given up: {', '.join(self.given_up) or 'none'}"


class HandOvers:
    """Advances all hand-overs. Every replica may run this at any time: a step claims its job, and continues where the
    last step ended.

    No transaction is open while a cluster is called. `rest` opens the client of a cluster; tests pass a fake.
    """

    def __init__(
        self,
        engine: Engine,
        notifier: Notifier,
        clock: Clock,
        config: HandOverConfig,
        readers: Readers,
        *,
        rest: Callable[[str], FlinkRest] = FlinkRest,
        poll_requests: Callable[[str], object] = lambda _table_id: None,
    ) -> None:
        self._engine = engine
        self._notifier = notifier
        self._clock = clock
        self._config = config
        self._readers = readers
        self._rest = rest
        self._poll_requests = poll_requests
        self.pool: BoundedPool[Job] = BoundedPool(
            self._step,
            keys=lambda job: (job.id,),
            size=config.threads,
        )

    def run_once(self) -> HandedOver:
        """Gives up jobs whose deadline has passed. Submits the next steps of the others to the bounded pool, which runs
        them in the background."""
        now = self._clock()
        with reading(self._engine) as connection:
            waiting = store.waiting(connection)
        dropped = [job.id for job in waiting if self._is_done(self._drop, job)]
        given_up = [
            job.id
            for job in waiting
            if job.id not in dropped and _is_over(job, now) and self._is_done(self._give_up, job)
        ]
        if dropped or given_up:
            self._notifier.notify()
        skipped = self.pool.busy | set(dropped) | set(given_up)
        for job in waiting:
            current = job.hand_over
            if job.id not in skipped and current and not (current.claimed_until and current.claimed_until > now):
                self.pool.add(job)
        return HandedOver(tuple(job.id for job in waiting), tuple(given_up))

    def _is_done(self, step: Callable[[Job], bool], job: Job) -> bool:
        """Returns whether the step was taken. Logs an error of one job, which must not stop the others."""
        try:
            return step(job)
        except DatabaseUnavailableError:
            raise
        except (JobNotFoundError, TableNotFoundError):
            return False  # The table was unregistered meanwhile.
        except Exception:
            log.exception("The hand-over of job %s failed", job.id)
            return False

    def _drop(self, waiting: Job) -> bool:
        """Removes the hand-over if the job need not wait any more, because the owner has declared the writers stopped
        or has declared other writers. Returns whether the hand-over was removed."""
        with reading(self._engine) as connection:
            if _has_to_wait(connection, waiting):
                return False
        with writing(self._engine) as connection:
            job = job_store.get(connection, waiting.id, for_update=True)
            if not job.waits_for_writers or _has_to_wait(connection, job):
                return False
            store.drop(connection, job.id)
        log.info("Job %s continues: no Flink job is declared or detected any more", waiting.id)
        return True

    def _give_up(self, waiting: Job) -> bool:
        now = self._clock()
        with writing(self._engine) as connection:
            job = job_store.get(connection, waiting.id, for_update=True)
            if not job.waits_for_writers or job.hand_over is None or not _is_over(job, now):
                return False
            expired = job.hand_over.evolve(state=HandOverState.EXPIRED, since=now, claimed_until=None)
            store.give_up(connection, job.id, expired, error=policy.expired(job.hand_over), now=now)
            decision_times.wake(connection, job.table_id, now)
            outbox.publish(connection, [job_changes.of_job(connection, job.id, now, job_events.job_ended)], now=now)
        log.warning("Job %s was given up: the writers of its table were not stopped", job.id)
        return True

    def _step(self, waiting: Job) -> None:
        """Claims the job and runs its next steps. Logs every error, so that one cluster does not affect other jobs."""
        with log_context(job_id=waiting.id, table_id=waiting.table_id):
            try:
                now = self._clock()
                with reading(self._engine) as connection:
                    table = table_store.get(connection, waiting.table_id)
                flink = table.writers.flink
                if flink is None or not policy.is_safe(flink.restart, table):
                    return
                with writing(self._engine) as connection:
                    job = store.claim(connection, waiting.id, now=now, until=now + _CLAIM_TIME)
                if job is not None:
                    self._advance(job, table, flink)
            except DatabaseUnavailableError as error:
                log.warning("Job %s: %s", waiting.id, error)
            except GroundskeeperError as error:
                log.warning("Job %s: %s %s", waiting.id, error.title, error.detail)
            except Exception:
                log.exception("The hand-over of job %s failed", waiting.id)

    def _advance(self, job: Job, table: Registration, writer: FlinkWriter) -> None:
        """Runs steps until the hand-over has to wait. Errors of the cluster are recorded in the job's hand-over."""
        current = job.hand_over
        while current is not None:
            before = current
            try:
                check_allowed(writer.rest_url, self._config.hosts)
                with self._rest(writer.rest_url) as rest:
                    after = self._stopping(rest, table, writer).advance(before)
            except GroundskeeperError as error:
                retry_at = self._clock() + timedelta(seconds=self._config.retry_seconds)
                why = f"{error.title}: {error.detail}"
                after = before.evolve(detail=why, claimed_until=retry_at)
            except Exception:
                # The claim expires by itself.
                log.exception("The hand-over of job %s failed", job.id)
                return
            if after.state is HandOverState.STOPPED:
                self._release(job.evolve(hand_over=before), after)
                return
            if not self._record(job.evolve(hand_over=before), after):
                return
            current = after if after.claimed_until == before.claimed_until else None

    def _stopping(self, rest: FlinkRest, table: Registration, writer: FlinkWriter) -> Stopping:
        def pending() -> Sequence[Pending]:
            # The observer polls the table too, but a poll of an unchanged table records no result.
            self._poll_requests(table.id)
            config = self._config
            return self._readers.run(
                read_active_timeline, table.base_path, config.storage_options, config.allowed_roots
            ).pending

        def wrote_at() -> datetime | None:
            with reading(self._engine) as connection:
                flink = watch_store.engines_of(connection, table.id).get(WriterEngine.FLINK)
            return flink.last_seen if flink else None

        retry = timedelta(seconds=self._config.retry_seconds)
        return Stopping(rest, writer, self._clock, retry, pending, wrote_at)

    def _record(self, job: Job, after: HandOver) -> bool:
        with writing(self._engine) as connection:
            return store.step(connection, job, after)

    def _release(self, job: Job, stopped: HandOver) -> None:
        with writing(self._engine) as connection:
            if not store.step(connection, job, stopped):
                return
            store.release(connection, job.id, stopped)
        log.info("Job %s continues: %s", job.id, stopped.detail)
        self._notifier.notify()


def _has_to_wait(connection: Connection, job: Job) -> bool:
    """Returns whether the job still has to wait. A stop that has begun is always completed."""
    if job.hand_over is None or job.hand_over.state is not HandOverState.DRAINING:
        return True
    table = table_store.get(connection, job.table_id)
    return policy.must_wait(job, table, watch_store.engines_of(connection, table.id), is_committed=False)


def _is_over(job: Job, now: datetime) -> bool:
    if job.hand_over is None:
        return False
    grace = _STOP_GRACE if job.hand_over.state is HandOverState.STOPPING else timedelta()
    return now >= job.hand_over.deadline + grace
