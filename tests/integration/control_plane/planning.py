"""A service that plans, and what the planner sees: looks at tables as an observer would have recorded them."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from jobs.contract import DEFAULT_GROUP, JobKind, Outcome, Problem, Result
from service.flows import lease, plan, submit
from service.flows.bell import Bell
from service.flows.lease import LeaseTerms
from service.flows.plan import Planned, Terms
from service.model.registration import Registration
from service.model.snapshot import PartitionDetail, PartitionState, Since, TableSnapshot
from service.model.table import TableType
from service.policy.backoff import BackOff
from service.policy.planner import Limits
from service.store import decisions, jobs, planning, snapshots, tables
from service.store.engine import reading, writing
from service.store.snapshots import Stored

if TYPE_CHECKING:
    import sqlalchemy as sa

    from service.model.decision import Decision
    from service.model.job import Job
    from tests.integration.control_plane.conftest import FakeClock

COMPACTION, CLEANING = JobKind.COMPACTION, JobKind.CLEANING
REFUSAL = Problem("column-unknown", "There is no such column")


def save_look(connection: sa.Connection, snapshot: TableSnapshot) -> None:
    """As `service.flows.look` records what it has seen."""
    snapshots.save(connection, Stored(snapshot))
    snapshots.save_partitions(
        connection, snapshot.table_id, None, [PartitionDetail(state) for state in snapshot.partitions]
    )
    planning.wake(connection, snapshot.table_id, snapshot.taken_at)


class Service:
    """What `serve` does between the lake and the workers, step by step."""

    def __init__(self, engine: sa.Engine, clock: FakeClock, **limits: Any) -> None:
        self.engine = engine
        self.clock = clock
        self.bell = Bell()
        self.terms = Terms(Limits(**limits))
        self._lease_terms = LeaseTerms(timedelta(seconds=30), 60.0, BackOff())

    def register(self, table_id: str = "tbl_1", **changes: Any) -> None:
        table = Registration(table_id, f"/lake/{table_id}", table_id, self.clock(), self.clock())
        with writing(self.engine) as connection:
            tables.register(connection, table.evolve(**changes))

    def look(self, table_id: str = "tbl_1", *, commits: int = 0, freed: int = 0, since_cleaning: int = 0) -> None:
        """The table was written to and looked at just now."""
        state = PartitionState("", base_bytes=1000, log_bytes=100 * commits, freed_files=freed, freed_bytes=freed)
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
            save_look(connection, snapshot)

    def plan(self) -> Planned:
        return plan.run_once(self.engine, self.bell, self.clock, terms=self.terms)

    def lease(self, group: str = DEFAULT_GROUP) -> Job | None:
        leased = lease.lease(self.engine, self.bell, self.clock, self._lease_terms, "w1", group)
        return self.job(leased.job_id) if leased else None

    def end(self, job: Job, outcome: Outcome = Outcome.SUCCEEDED) -> None:
        error = None if outcome is Outcome.SUCCEEDED else REFUSAL
        result = Result(outcome, error=error)
        lease.report(self.engine, self.bell, self.clock, Random(1), self._lease_terms, job.id, job.attempt, result)

    def run(self, outcome: Outcome = Outcome.SUCCEEDED) -> Job:
        """A worker takes the next job and ends it."""
        job = self.lease()
        assert job is not None
        self.end(job, outcome)
        return job

    def job(self, job_id: str) -> Job:
        with reading(self.engine) as connection:
            return jobs.get(connection, job_id)

    def decision(self, kind: JobKind = COMPACTION, table_id: str = "tbl_1") -> Decision:
        with reading(self.engine) as connection:
            return decisions.latest(connection, table_id)[kind]

    def history(self, kind: JobKind = COMPACTION) -> list[Decision]:
        with reading(self.engine) as connection:
            return list(decisions.page(connection, "tbl_1", limit=100, kind=kind).items)


def ask(service: Service, kind: JobKind, table_id: str = "tbl_1") -> Job:
    return submit.submit(
        service.engine,
        service.bell,
        service.clock,
        table_id=table_id,
        kind=kind,
        params={},
        dry_run=False,
        max_attempts=1,
        idempotency_key=None,
    ).job
