"""The number of queries for /v1/problems does not grow with each table, on each kind of database."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from jobs.contract import JobKind, WorkerInfo
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db.engine import writing
from service.health.problem_search import ProblemSearch
from service.incidents import store as incident_store
from service.incidents.incident import Incident, IncidentKind, IncidentState
from service.lake.snapshot import PartitionState, Pending, Since, TableSnapshot
from service.lake.table import TableType
from service.queue import job_store, worker_store
from service.queue.job import Job
from service.scheduling import decision_store
from service.scheduling.decision import Decision, Verdict
from tests.integration.control_plane.operated import GIB, MIB
from tests.integration.control_plane.planning import save_poll

if TYPE_CHECKING:
    from service.health.problem import HealthProblem
    from tests.integration.control_plane.conftest import FakeClock

KINDS = {
    "incident-standing",
    "dead-writer",
    "plan-stuck",
    "compaction-behind",
    "cleaning-behind",
    "timeline-long",
    "bucket-too-large",
    "buckets-skewed",
    "policy-warning",
    "jobs-held-up",
    "job-failing",
    "group-without-worker",
}
"""The kinds of problems of the tables that `ill` adds, and of their jobs."""


def ill(engine: sa.Engine, clock: FakeClock, numbers: range, partitions: int = 3) -> None:
    """Adds tables with many problems each, with the rows that polls, decisions and workers store."""
    now = clock()
    for number in numbers:
        table_id = f"tbl_{number}"
        with writing(engine) as connection:
            table_store.register(connection, Registration(table_id, f"/lake/{number}", f"t{number}", now, now))
            save_poll(connection, _snapshot(table_id, clock, partitions))
            decision = Decision(JobKind.COMPACTION, Verdict.WAIT, "paused", "somebody has paused it", now, now)
            decision_store.record(connection, table_id, [_changed(decision, wanted_since=now - timedelta(hours=7))], {})
            decision = Decision(JobKind.CLEANING, Verdict.SKIP, "off", "it is off", now, now, warning="A plan harms.")
            decision_store.record(connection, table_id, [decision], {})
            incident = Incident(
                f"inc_{number}", table_id, IncidentKind.STALE_WRITE, "001", IncidentState.OPEN, now, "UPSERT"
            )
            incident_store.add(connection, [incident])
            for attempt in range(3):
                job = Job(f"job_{number}_{attempt}", table_id, JobKind.AUDIT, now, now)
                job_store.submit(connection, job)
                connection.execute(
                    sa.text("UPDATE jobs SET state = 'failed', finished_at = created_at WHERE id = :id"), {"id": job.id}
                )
            job_store.submit(connection, Job(f"job_{number}", table_id, JobKind.CLEANING, now, now))


def _changed(decision: Decision, **changes: object) -> Decision:
    return Decision(**{**vars(decision), **changes})


def _snapshot(table_id: str, clock: FakeClock, partitions: int) -> TableSnapshot:
    now = clock()
    old = now - timedelta(hours=8)
    state = PartitionState(
        "p",
        file_groups=8,
        base_files=8,
        base_bytes=10 * MIB,
        log_bytes=9 * GIB,
        freed_files=9,
        freed_bytes=60 * GIB * partitions,
        buckets=8,
        num_buckets=8,
        largest_bucket=1,
        largest_bucket_bytes=8 * GIB,
    )
    return TableSnapshot(
        table_id,
        taken_at=now,
        table_type=TableType.MERGE_ON_READ,
        partitions=tuple(
            PartitionState(**{**vars(state), "path": f"p{number:03}", "log_bytes": (9 + number) * GIB})
            for number in range(partitions)
        ),
        pending=(
            Pending("003", "compaction", "requested", old, is_plan=True),
            Pending("005", "deltacommit", "inflight", old, old),
        ),
        last_commit_at=now,
        first_commit_at=old,
        since_compaction=Since(40),
        since_cleaning=Since(40),
        num_buckets=8,
        timeline_commits=400,
    )


def looked(engine: sa.Engine, clock: FakeClock) -> tuple[list[HealthProblem], int, float]:
    """Returns the problems, the number of queries and the seconds of the call."""
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    sa.event.listen(engine, "before_cursor_execute", note)
    began = time.perf_counter()
    found = list(ProblemSearch().run(engine, clock()).found.problems)
    took = time.perf_counter() - began
    sa.event.remove(engine, "before_cursor_execute", note)
    return found, len([each for each in statements if each.lstrip().startswith("SELECT")]), took


@pytest.fixture
def lost(engine: sa.Engine, clock: FakeClock) -> None:
    """Adds a lost worker, so that its lost attempts are also searched for."""
    with writing(engine) as connection:
        worker_store.announce(connection, "gone", WorkerInfo(), clock() - timedelta(hours=1))


@pytest.mark.usefixtures("lost")
def test_the_list_of_problems_takes_the_same_queries_for_few_tables_as_for_many(
    engine: sa.Engine, clock: FakeClock
) -> None:
    ill(engine, clock, range(2))
    clock.advance(180)
    found, few, _ = looked(engine, clock)
    assert {each.kind.value for each in found} == KINDS
    assert found == sorted(
        found, key=lambda each: (list(type(each.severity)).index(each.severity), each.since, each.id)
    )
    worst = next(each for each in found if each.kind == "bucket-too-large")
    assert worst.evidence["partition"] == "p000"
    ill(engine, clock, range(2, 20))
    clock.advance(180)
    found, many, _ = looked(engine, clock)
    assert len(found) == 20 * (len(KINDS) - 1) + 1
    assert many == few <= 25


@pytest.mark.exhaustive
@pytest.mark.usefixtures("lost")
def test_a_thousand_tables_of_eleven_problems_each_take_seconds(engine: sa.Engine, clock: FakeClock) -> None:
    ill(engine, clock, range(1000), partitions=20)
    clock.advance(180)
    looked(engine, clock)
    found, queries, seconds = looked(engine, clock)
    print(f"{len(found)} problems, {queries} queries, {seconds * 1000:.0f} ms")
    assert len(found) == 11_001
    assert queries <= 200
    assert seconds < 10
