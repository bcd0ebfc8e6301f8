"""Tests that an expansion starts in a quiet hour before the largest bucket is too large, by the samples of the past."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import JobKind, WriterEngine
from service.catalog import commit_store, sample_store
from service.catalog.registration import Writers
from service.catalog.sample import Sample
from service.db.engine import writing
from service.lake.commit import Commit
from service.lake.snapshot import PartitionState, TableSnapshot
from service.lake.table import TableType
from service.policies import policy_registry
from service.scheduling import bucket_trends
from service.scheduling.admission import KIND_LIMITED, Limits
from service.scheduling.decision import Verdict
from service.scheduling.scheduler import SchedulerConfig
from tests.integration.control_plane.planning import Service, save_poll

if TYPE_CHECKING:
    import sqlalchemy as sa

    from tests.integration.control_plane.conftest import FakeClock

MIB = 1024**2
EXPANSION = JobKind.BUCKET_EXPANSION
QUIET = 4


@pytest.fixture
def service(engine: sa.Engine, clock: FakeClock) -> Service:
    """A table of 8 buckets that grows by 16 MiB a day to 784 MiB, and has commits in each hour but one."""
    found = Service(engine, clock)
    found.register()
    settings = {"bucket_expansion": {"mode": "auto", "max_bucket_bytes": 100 * MIB}}
    policy_registry.put_table(engine, clock, "tbl_1", settings)
    now = clock()
    times = [now - timedelta(hours=each, minutes=30) for each in range(1, 24 * 7)]
    with writing(engine) as connection:
        for hours in range(24 * 10):
            size = int((784 - 16 * hours / 24) * MIB)
            sample = Sample(now - timedelta(hours=hours), 0, size, 0, 8, 8, 0, 0, 0)
            sample_store.record(connection, {"tbl_1": sample})
        commits = [
            Commit("tbl_1", f"{at:%Y%m%d%H%M%S}000", "commit", None, at, at, "UPSERT", 9, 0, MIB)
            for at in times
            if at.hour != QUIET
        ]
        commit_store.record(connection, commits, now)
    return found


def poll(service: Service, largest: int = 98) -> None:
    state = PartitionState(
        "",
        base_bytes=8 * largest * MIB,
        buckets=8,
        num_buckets=8,
        largest_bucket=3,
        largest_bucket_bytes=largest * MIB,
    )
    snapshot = TableSnapshot("tbl_1", service.clock(), TableType.COPY_ON_WRITE, (state,), num_buckets=8)
    with writing(service.engine) as connection:
        save_poll(connection, snapshot)


@pytest.mark.mostly_sqlite
def test_an_expansion_waits_for_the_quiet_hour_and_starts_in_it(service: Service, clock: FakeClock) -> None:
    poll(service)
    assert not service.plan().jobs
    waits = service.decision(EXPANSION)
    assert (waits.verdict, waits.code) == (Verdict.SKIP, "not-quiet")
    assert "best at 2026-01-01 04:00 UTC" in waits.because
    assert waits.because.count("UTC") == 2
    # Time alone makes it due.
    clock.advance(QUIET * 3600 + 60)
    [job_id] = service.plan().jobs
    job = service.job(job_id)
    assert job.kind is EXPANSION
    assert job.params["factor"] == 4
    assert job.reason is not None
    assert job.reason.endswith("4 times as many buckets everywhere, which last for 90 days")


@pytest.mark.mostly_sqlite
def test_the_past_is_read_once_an_hour_and_only_near_the_limit(
    service: Service, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    of_table = sample_store.of_table

    def read_and_record(connection: sa.Connection, table_id: str, *given: Any, **more: Any) -> list[Sample]:
        read.append(table_id)
        return of_table(connection, table_id, *given, **more)

    monkeypatch.setattr(bucket_trends.sample_store, "of_table", read_and_record)
    for largest in (10, 45):
        poll(service, largest)
        service.plan()
    assert not read
    for _ in range(3):
        poll(service)
        service.plan()
        clock.advance(600)
    assert read == ["tbl_1"]
    clock.advance(3600)
    poll(service)
    service.plan()
    assert len(read) == 2


@pytest.mark.mostly_sqlite
def test_an_expansion_that_a_limit_keeps_from_its_quiet_hour_starts_after_it(
    service: Service, clock: FakeClock
) -> None:
    service.config = SchedulerConfig(Limits(per_kind={EXPANSION: 0}))
    poll(service)
    clock.advance(QUIET * 3600 + 60)
    assert not service.plan().jobs
    assert (service.decision(EXPANSION).verdict, service.decision(EXPANSION).code) == (Verdict.WAIT, KIND_LIMITED)
    clock.advance(2 * 3600)
    poll(service)
    assert not service.plan().jobs
    assert service.decision(EXPANSION).verdict is Verdict.WAIT
    service.config = SchedulerConfig(Limits())
    poll(service)
    assert len(service.plan().jobs) == 1


@pytest.mark.mostly_sqlite
def test_a_bucket_of_one_key_is_resized_once(engine: sa.Engine, clock: FakeClock) -> None:
    service = Service(engine, clock)
    service.register()
    service.register("tbl_2", writers=Writers(engines=(WriterEngine.FLINK,)))
    for table_id in ("tbl_1", "tbl_2"):
        policy_registry.put_table(engine, clock, table_id, {"bucket_resize": {"mode": "auto"}})

    def planned(mib: int) -> tuple[str, ...]:
        state = PartitionState("a", base_bytes=mib * MIB, buckets=2, num_buckets=2, largest_range_bytes=mib * MIB)
        with writing(engine) as connection:
            for table_id in ("tbl_1", "tbl_2"):
                save_poll(connection, TableSnapshot(table_id, clock(), TableType.MERGE_ON_READ, (state,)))
        return tuple(service.plan().jobs)

    assert len(planned(2048)) == 1
    # A worker would refuse the table that Flink writes.
    assert service.decision(JobKind.BUCKET_RESIZE, "tbl_2").code == "flink-may-be-running"
    job = service.lease()
    assert job is not None
    change = {"partition": "a", "change": "split", "file_ids": ["f"], "bytes": 2048 * MIB, "because": ""}
    service.end(job, split=1, one_sided=1, merged_away=0, changes=[{**change, "larger_share": 1.0}])
    clock.advance(2 * 24 * 3600)
    assert planned(2048) == ()
    assert service.decision(JobKind.BUCKET_RESIZE).code == "few-keys"
    assert len(planned(2300)) == 1
