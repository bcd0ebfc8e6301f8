"""A job rolls back the instant of a dead runner or the latest completed write, and refuses all other instants."""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import RefusedError
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.table import HudiTable
from jobs.services.compaction import DUE
from tests.integration import tables
from tests.integration.dying_job import DyingJob
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.plans import OtherRunner, schedule_clustering
from tests.integration.run import hudi_table, proved, run_job, work_order
from tests.integration.tables import INDEX
from tests.integration.writers import HeldWriter, let_heartbeat_expire

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares

SHAPES = [
    pytest.param({"table_type": "MERGE_ON_READ", "version": 9}, id="mor-9"),
    pytest.param({"table_type": "COPY_ON_WRITE", "version": 9}, id="cow-9", marks=pytest.mark.exhaustive),
    pytest.param({"table_type": "MERGE_ON_READ", "version": 6}, id="mor-6", marks=pytest.mark.exhaustive),
    pytest.param(
        {"table_type": "COPY_ON_WRITE", "version": 6, "metadata": False}, id="cow-6", marks=pytest.mark.exhaustive
    ),
]


def last_commit(spark: SparkSession, base: Path) -> str:
    return hudi_table(spark, base, INDEX).commits()[-1].write.instant


def refusals(spark: SparkSession, base: Path, instant: str, name: str | None = "test") -> set[str]:
    params = {"instant": instant, "table_name": name}
    found = run_job(spark, base, "rollback", params, dry_run=True).details["refusals"]
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "rollback", params)
    assert [each["type"] for each in found] == [each.type for each in refused.value.reasons]
    return {each["type"] for each in found}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_latest_commit_is_rolled_back_and_no_other(spark: SparkSession, base: Path, shape: dict[str, Any]) -> None:
    options = tables.write_table(spark, base, count=60, **shape)
    before, first = proved(spark, base, 4), last_commit(spark, base)
    batch = {"_hudi_streaming_sink_checkpoint": '{"numbers":"7"}'}
    tables.upsert(tables.rows(spark, 30, 90, ts=7, partitions=4), base, options | batch)
    last = last_commit(spark, base)
    assert refusals(spark, base, first) == {"not-the-latest"}
    assert refusals(spark, base, last, name=None) == {"name-not-confirmed"}

    result = run_job(spark, base, "rollback", {"instant": last, "table_name": "test"})

    assert len(result.instants) == 1
    assert result.details["streams"] == ["numbers"]
    assert tables.snapshot(spark, base) == before
    tables.upsert(tables.rows(spark, 0, 70, ts=50), base, options)
    assert len(proved(spark, base, 4)) == 70
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    assert tables.left_behind(base) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_a_metadata_table_that_is_due_for_its_compaction_does_not_stop_a_rollback_in_the_midst(
    spark: SparkSession, base: Path, version: int
) -> None:
    # No writer compacts the metadata table here, but any client with Hudi's default does this first.
    late = {"hoodie.metadata.compact.max.delta.commits": "100"}
    options = tables.write_table(spark, base, count=60, updates=12, version=version, **late)
    before = proved(spark, base, 4)
    tables.upsert(tables.rows(spark, 30, 90, ts=20), base, options)

    run_job(spark, base, "rollback", {"instant": last_commit(spark, base), "table_name": "test"})

    assert proved(spark, base, 4) == before
    assert tables.snapshot(spark, base, metadata=True) == tables.snapshot(spark, base, metadata=False)
    # The next writer compacts the metadata table, and its write succeeds.
    del options["hoodie.metadata.compact.max.delta.commits"]
    tables.upsert(tables.rows(spark, 0, 70, ts=50), base, options)
    assert list((base / ".hoodie" / "metadata" / ".hoodie").rglob("*.commit"))
    assert len(proved(spark, base, 4)) == 70


@pytest.mark.exhaustive
def test_a_dead_writers_instant_is_rolled_back_and_a_living_ones_is_not(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=60)
    before = proved(spark, base, 4)
    writer = HeldWriter(tables.rows(spark, 0, 80, ts=9), base, options).start()
    (instant,) = writer.pending()
    assert refusals(spark, base, instant) == {"writer-active"}
    let_heartbeat_expire(base, instant)

    run_job(spark, base, "rollback", {"instant": instant})

    writer.end()
    assert writer.error is not None
    assert proved(spark, base, 4) == before
    assert tables.left_behind(base) == []


@pytest.mark.exhaustive
def test_only_plans_of_table_services_are_rolled_back_and_their_commits_are_not(
    spark: SparkSession, tmp_path: Path, base: Path
) -> None:
    tables.write_table(spark, base, count=60, updates=1)
    savepoint = run_job(spark, base, "savepoint").details["savepoint"]
    assert refusals(spark, base, savepoint) == {"savepoint"}
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK, DUE) as client:
        plan = client.schedule_compaction()
    assert plan
    assert refusals(spark, base, plan) == {"compaction-plan"}
    run_job(spark, base, "compaction")
    assert refusals(spark, base, plan) == {"not-a-plain-write"}
    run_job(spark, base, "bucket_expansion", {"factor": 2})
    assert refusals(spark, base, last_commit(spark, base)) == {"not-a-plain-write"}

    plain = tmp_path / "plain"
    options = tables.write_table(spark, plain, count=60, table_type="COPY_ON_WRITE", num_buckets=None)
    before = tables.snapshot(spark, plain)
    with WriteClient(hudi_table(spark, plain, None), UNDER_OUR_LOCK) as client:
        clustering = schedule_clustering(client)
    run_job(spark, plain, "rollback", {"instant": clustering}, index=None)
    assert hudi_table(spark, plain, None).pending() == []
    assert tables.snapshot(spark, plain) == before
    tables.upsert(tables.rows(spark, 0, 70, ts=50), plain, options)
    assert len(tables.snapshot(spark, plain)) == 70


@pytest.mark.exhaustive
def test_a_commit_is_not_rolled_back_when_the_version_before_it_was_cleaned(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=60, table_type="COPY_ON_WRITE", metadata=False)
    first = last_commit(spark, base)
    tables.upsert(tables.rows(spark, 0, 60, ts=7), base, options)
    next(base.glob(f"*/*_{first}.parquet")).unlink()
    assert refusals(spark, base, last_commit(spark, base)) == {"versions-gone"}


def kills(version: int) -> dict[str, dict[str, Any]]:
    timeline = ".hoodie/timeline" if version > 6 else ".hoodie"
    return {
        "planned": {"at": "file", "name": f"{timeline}/*.rollback.requested"},
        "begun": {"at": "file", "name": f"{timeline}/*.rollback.inflight"},
        "in the midst": {"at": "file", "name": f"{timeline}/*.rollback.inflight", "delay": 0.3},
        "done": {"at": "after", "name": "the given rollback"},
        "reported": {"at": "end"},
    }


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("table_type", "version"), [("MERGE_ON_READ", 9), ("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 6), ("COPY_ON_WRITE", 6)]
)
@pytest.mark.parametrize("kill", kills(9))
def test_a_rollback_that_was_killed_is_finished_by_the_next_attempt(
    spark: SparkSession, base: Path, spares: Spares, kill: str, table_type: str, version: int
) -> None:
    options = tables.write_table(spark, base, count=60, table_type=table_type, version=version)
    before = proved(spark, base, 4)
    tables.upsert(tables.rows(spark, 30, 90, ts=7), base, options)
    params = {"instant": last_commit(spark, base), "table_name": "test"}
    job = DyingJob(spark, work_order(base, "rollback", params), spares)
    job.die_at(kills(version)[kill])
    assert len(job.instants) == 1
    if kill == "reported":
        tables.upsert(tables.rows(spark, 0, 60, ts=90), base, options)
        before = proved(spark, base, 4)

    known = job.instants
    assert job.finish().instants == known
    assert proved(spark, base, 4) == before
    assert tables.left_behind(base) == []
    tables.upsert(tables.rows(spark, 0, 70, ts=100), base, options)
    assert len(proved(spark, base, 4)) == 70


@pytest.mark.parametrize("is_gone", [pytest.param(True, marks=pytest.mark.exhaustive), False])
def test_a_rollback_that_stays_pending_is_found_and_finished(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch, *, is_gone: bool
) -> None:
    """A user's rollback dies before it has removed the commit's instant from the timeline, or right after that."""
    options = tables.write_table(spark, base, count=60, partitioned=False, updates=2)
    last, timeline = last_commit(spark, base), base / ".hoodie" / "timeline"
    left = {path: path.read_bytes() for path in timeline.glob(f"{last}.*")}
    assert OtherRunner(spark, base, options).client.rollback(last)
    (done,) = timeline.glob("*.rollback")
    rollback = done.name.partition("_")[0]
    done.unlink()
    if not is_gone:
        for path, content in left.items():
            path.write_bytes(content)
    before = tables.snapshot(spark, base)
    params = {"instant": last, "table_name": "test"}

    assert run_job(spark, base, "audit", {"rows": False}).details["findings"] == []
    with pytest.raises(RefusedError):
        run_job(spark, base, "rollback", params)
    monkeypatch.setattr(HudiTable, "now", lambda table: table.clock.now() + timedelta(hours=2))
    (found,) = run_job(spark, base, "audit", {"rows": False}).details["findings"]
    assert (found["type"], found["detail"]) == ("rollback-unfinished", f"{rollback} of {last}")

    run_job(spark, base, found["cure"]["kind"], found["cure"]["params"])
    audit = run_job(spark, base, "audit").details
    assert (audit["clean"], audit["pending_instants"]) == (True, []), audit
    assert tables.snapshot(spark, base) == before


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_a_rollback_helps_after_a_bulk_insert_into_buckets_that_had_rows(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    """Hudi 1.2 gives each bucket a second file group then, and all later upserts fail."""
    options = tables.write_table(spark, base, count=60, table_type=table_type, partitioned=False)
    before = proved(spark, base, 4)
    bulk = {**options, "hoodie.datasource.write.operation": "bulk_insert"}
    tables.upsert(tables.rows(spark, 60, 90), base, bulk)
    copied = shutil.copytree(base, base.parent / "copied" / "trips")
    with pytest.raises(Exception, match="belong to the same bucket id"):
        tables.upsert(tables.rows(spark, 0, 60, ts=7), copied, options)
    for kind, params in (("diagnosis", {}), ("audit", {}), ("audit", {"rows": False})):
        [found] = run_job(spark, base, kind, params).details["findings"]
        assert found["type"] == "several-file-groups-in-bucket"
        assert "bulk_insert" in found["hint"]
        assert "rollback" in found["hint"]

    run_job(spark, base, "rollback", {"instant": last_commit(spark, base), "table_name": "test"})

    assert proved(spark, base, 4) == before
    tables.upsert(tables.rows(spark, 0, 90, ts=9), base, options)
    assert len(proved(spark, base, 4)) == 90
