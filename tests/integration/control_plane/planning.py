"""A service that plans jobs by polls that the test records as an observer does."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from jobs.contract import DEFAULT_GROUP, JobKind, Outcome, Problem, Result
from jobs.storage.permissions import Permissions
from service.access.secret_cipher import SecretCipher
from service.catalog import decision_times, snapshot_store, table_store
from service.catalog.registration import Registration
from service.catalog.snapshot_store import Stored
from service.db.engine import reading, writing
from service.db.page import PageRequest
from service.events.database import Database
from service.events.notifier import Notifier
from service.lake.snapshot import PartitionDetail, PartitionState, Since, TableSnapshot, Totals
from service.lake.table import TableType
from service.model.backoff import BackOff
from service.queue import job_store, leases, submission
from service.queue.leases import LeaseConfig
from service.queue.submission import JobRequest
from service.scheduling import decision_store, scheduler
from service.scheduling.admission import Limits
from service.scheduling.scheduler import SchedulerConfig, SchedulerResult

if TYPE_CHECKING:
    from datetime import datetime

    import sqlalchemy as sa

    from service.queue.job import Job
    from service.scheduling.decision import Decision
    from tests.integration.control_plane.conftest import FakeClock

COMPACTION, CLEANING = JobKind.COMPACTION, JobKind.CLEANING
REFUSAL = Problem("column-unknown", "There is no such column")


class Written(Protocol):
    """A table whose writers a test plays: its bytes, its commits, and by kind the number of commits and the time of the
    last job."""

    base_bytes: int
    log_bytes: int
    commits: int
    last: dict[JobKind, tuple[int, datetime]]

    @property
    def freed(self) -> int: ...


def snapshot_of(table_id: str, written: Written, now: datetime, freed_since: str = "") -> TableSnapshot:
    """Returns what a poll of the table would find: one partition of four file groups. `freed_since` is as in
    `PartitionState`."""
    files = PartitionState(
        "",
        file_groups=4,
        base_files=4,
        base_bytes=written.base_bytes,
        log_files=4 if written.log_bytes else 0,
        log_bytes=written.log_bytes,
        freed_files=min(written.freed, 9),
        freed_bytes=written.freed,
        freed_since=freed_since,
    )
    since = {kind: Since(written.commits - number, 0, at) for kind, (number, at) in written.last.items()}
    return TableSnapshot(
        *(table_id, now, TableType.MERGE_ON_READ, (files,)),
        last_commit="1",
        last_commit_at=now,
        first_commit_at=now - timedelta(days=9),
        since_compaction=since.get(COMPACTION, Since(written.commits)),
        since_cleaning=since.get(CLEANING, Since(written.commits)),
        totals=Totals.of([files]),
    )


def save_poll(connection: sa.Connection, snapshot: TableSnapshot) -> None:
    """Records a poll as `service.observation.poll` does."""
    snapshot_store.save_partitions(
        connection, snapshot.table_id, None, [PartitionDetail(state) for state in snapshot.partitions]
    )
    snapshot_store.save(connection, Stored(snapshot))
    decision_times.wake(connection, snapshot.table_id, snapshot.taken_at)


_MIB = 1024**2


class Service:
    """The steps of `serve` from polls to jobs, each started by the test."""

    def __init__(self, engine: sa.Engine, clock: FakeClock, **limits: Any) -> None:
        self.engine = engine
        self.clock = clock
        self.notifier = Notifier()
        self.config = SchedulerConfig(Limits(**limits))
        self.cipher = SecretCipher.fresh()
        self.database = Database(self.engine, self.clock, self.notifier, self.cipher)
        self._lease_config = LeaseConfig(timedelta(seconds=30), 60.0, BackOff())

    def register(self, table_id: str = "tbl_1", **changes: Any) -> None:
        table = Registration(table_id, f"/lake/{table_id}", table_id, self.clock(), self.clock())
        with writing(self.engine) as connection:
            table_store.register(connection, table.evolve(**changes))

    def poll(self, table_id: str = "tbl_1", *, commits: int = 0, freed: int = 0, since_cleaning: int = 0) -> None:
        """Records a write to the table and a poll of it."""
        base, logs = 1000 * _MIB, 100 * _MIB * commits
        state = PartitionState("", base_bytes=base, log_bytes=logs, freed_files=freed, freed_bytes=freed)
        snapshot = TableSnapshot(
            table_id,
            taken_at=self.clock(),
            table_type=TableType.MERGE_ON_READ,
            partitions=(state,),
            last_commit_at=self.clock(),
            since_compaction=Since(commits),
            since_cleaning=Since(since_cleaning),
        )
        with writing(self.engine) as connection:
            save_poll(connection, snapshot)

    def plan(self) -> SchedulerResult:
        return scheduler.run_once(self.database, self.config)

    def lease(self, group: str = DEFAULT_GROUP) -> Job | None:
        leased = leases.lease(
            self.database,
            self._lease_config,
            worker_id="w1",
            group=group,
            permissions=Permissions(),
        )
        return self.job(leased.job_id) if leased else None

    def end(self, job: Job, outcome: Outcome = Outcome.SUCCEEDED, **details: Any) -> None:
        error = None if outcome is Outcome.SUCCEEDED else REFUSAL
        result = Result(outcome, details=details, error=error)
        leases.report(
            self.database,
            Random(1),
            self._lease_config,
            job_id=job.id,
            attempt=job.attempt,
            result=result,
        )

    def run(self, outcome: Outcome = Outcome.SUCCEEDED) -> Job:
        """Leases and ends the next job as a worker does."""
        job = self.lease()
        assert job is not None
        self.end(job, outcome)
        return job

    def job(self, job_id: str) -> Job:
        with reading(self.engine) as connection:
            return job_store.get(connection, job_id)

    def decision(self, kind: JobKind = COMPACTION, table_id: str = "tbl_1") -> Decision:
        with reading(self.engine) as connection:
            return decision_store.latest(connection, table_id)[kind]

    def history(self, kind: JobKind = COMPACTION) -> list[Decision]:
        with reading(self.engine) as connection:
            return list(decision_store.page(connection, "tbl_1", PageRequest(100), kinds=[kind] if kind else []).items)


def submit_job(service: Service, kind: JobKind, table_id: str = "tbl_1") -> Job:
    return submission.submit(
        service.database,
        Permissions(),
        JobRequest(table_id=table_id, kind=kind, max_attempts=1),
    ).job
