"""Tests that tables wait while few of all reads concern them: across decisions, replicas and changes of reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from jobs.contract import JobKind
from service.catalog import table_store
from service.catalog.registration import Readers
from service.db.engine import reading, writing
from service.lake.snapshot import PartitionState, Since, TableSnapshot
from service.lake.table import TableType
from service.outcome import objective_store, read_share_store, read_store
from service.outcome.reads import ReadSource
from service.policies import policy_registry
from service.scheduling.decision import Verdict
from tests.integration.control_plane.planning import Service, save_poll

if TYPE_CHECKING:
    from datetime import datetime

    import sqlalchemy as sa

    from tests.integration.control_plane.conftest import FakeClock

COMPACTION = JobKind.COMPACTION
MINUTE, MIB = 60, 2**20
OFTEN = {"a": 900.0, "b": 40.0, "c": 30.0, "d": 30.0}

pytestmark = pytest.mark.mostly_sqlite


@pytest.fixture
def service(engine: sa.Engine, clock: FakeClock) -> Service:
    found = Service(engine, clock)
    objective = {"read_overhead": 2.0, "of_reads": 0.95}
    policy_registry.put_pattern(
        engine, clock, "*", precedence=0, settings={"objective": objective, "cleaning": {"enabled": False}}
    )
    for name, per_day in OFTEN.items():
        found.register(name, readers=Readers(reads_per_day=per_day))
        found.poll(name, commits=0)
    found.plan()
    clock.advance(2 * MINUTE)
    return found


def poll(service: Service, table_id: str, began: datetime) -> None:
    """Records a poll of a table that has many logs since a time."""
    files = PartitionState("", base_files=1, base_bytes=1000 * MIB, log_files=9, log_bytes=1000 * MIB)
    now = service.clock()
    found = TableSnapshot(table_id, now, TableType.MERGE_ON_READ, (files,), last_commit_at=now, first_commit_at=began)
    with writing(service.engine) as connection:
        save_poll(connection, replace(found, since_compaction=Since(9)))


def tables_of(service: Service, jobs: tuple[str, ...]) -> list[str]:
    return [service.job(each).table_id for each in jobs]


def test_a_table_waits_until_one_that_costs_more_to_keep_takes_its_place(service: Service, clock: FakeClock) -> None:
    service.poll("b", commits=2)
    assert service.plan().jobs == ()
    decision = service.decision(COMPACTION, "b")
    assert decision.verdict is Verdict.SKIP
    assert decision.because.endswith(
        "this table and those that need more work per read have 4 % of all reads of pattern *, 5 % may cost more"
    )
    with reading(service.engine) as connection:
        assert objective_store.missed(connection, clock()) == {}
    # A costlier table has room only if b has none; a table that many read has none anyway.
    service.poll("c", commits=9)
    service.poll("a", commits=9)
    assert tables_of(service, service.plan().jobs) == ["a"]
    assert "have 3 % of all reads" in service.decision(COMPACTION, "c").because
    # Nobody has written b since.
    assert tables_of(service, service.plan().jobs) == ["b"]
    assert service.decision(COMPACTION, "b").because.startswith("a read costs")
    assert service.plan().tables == 0


@pytest.mark.parametrize("is_other", [False, True])
def test_each_replica_knows_which_tables_wait(service: Service, clock: FakeClock, *, is_other: bool) -> None:
    service.poll("c", commits=9)
    assert service.plan().jobs == ()
    if is_other:
        read_share_store._known.clear()
    clock.advance(2 * MINUTE)
    service.poll("d", commits=2)
    assert tables_of(service, service.plan().jobs) == ["d"]
    assert "have 6 % of all reads" in service.decision(COMPACTION, "d").because


def test_a_table_whose_logs_wait_is_compacted_after_a_day(service: Service, clock: FakeClock) -> None:
    service.poll("c", commits=9)
    assert service.plan().jobs == ()
    began, started = clock(), []
    for hours in range(2, 28, 2):
        clock.advance(2 * 3600)
        poll(service, "c", began)
        if tables_of(service, service.plan().jobs):
            started.append(hours)
    assert started == [24]


def test_reads_that_stop_and_lineage_that_lies_starve_no_table(service: Service, clock: FakeClock) -> None:
    with writing(service.engine) as connection:
        for name in OFTEN:
            table_store.change(connection, table_store.get(connection, name).evolve(readers=Readers()))
        # One table claims nearly all reads, and another one is not read any more.
        read_store.count(connection, {"a": 10**12, "b": 10, "c": 10}, ReadSource.LINEAGE, clock())
    started: dict[str, int] = {}
    began = clock()
    for _ in range(14):
        for name in OFTEN:
            poll(service, name, began)
        for name in tables_of(service, service.plan().jobs):
            started[name] = started.get(name, 0) + 1
        while job := service.lease():
            service.end(job, log_files=20, log_bytes=2000)
        for name in OFTEN:
            assert service.decision(COMPACTION, name).because
        clock.advance(2 * 3600)
    assert started.keys() == OFTEN.keys()
    assert started["a"] == 14
