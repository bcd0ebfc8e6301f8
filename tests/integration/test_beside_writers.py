"""Replacing file groups while writers are at work: no batch of theirs fails, and no row is lost or misplaced."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812

from jobs.compaction import DUE
from jobs.errors import (
    CommitLostError,
    LeaseLostError,
    PlanTakenError,
    RefusedError,
    TableLockedError,
    WritersActiveError,
)
from jobs.hudi import hashing_config
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock, for_at_most
from jobs.hudi.options import UNDER_OUR_LOCK
from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX, left_behind
from tests.integration.writers import At, HeldWriter, let_heartbeat_expire

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

WAITING = "waiting for writers"
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]


def proved(spark: SparkSession, base: Path, num_buckets: int) -> list[str]:
    assert tables.misplaced(spark, base, num_buckets) == 0
    assert tables.duplicates(spark, base) == 0
    audit = run_job(spark, base, "audit").details
    assert audit["clean"], audit
    assert audit["pending_instants"] == []
    return tables.snapshot(spark, base)


@pytest.mark.parametrize("table_type", TYPES)
def test_what_writers_commit_during_the_split_is_split_as_well(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    base = tmp_path / "trips"
    options = tables.write_table(spark, base, table_type=table_type)

    def writers_commit() -> None:
        tables.upsert(tables.rows(spark, 0, 300, ts=5), base, options)
        tables.upsert(tables.rows(spark, 600, 900, ts=5).withColumn("dt", F.lit("2026-02-01")), base, options)

    result = run_job(spark, base, "bucket_expansion", {"factor": 2}, report=At(WAITING, writers_commit))

    assert result.details["rewritten_again"] > 0
    proved(spark, base, 8)
    frame = spark.read.format("hudi").load(str(base))
    assert frame.count() == 900
    assert frame.where("ts = 5").count() == 600
    tables.upsert(tables.rows(spark, 0, 1000, ts=6), base, options)
    proved(spark, base, 8)


@pytest.mark.parametrize("table_type", TYPES)
def test_an_expansion_waits_for_a_writer_that_creates_a_new_partition(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    base = tmp_path / "trips"
    options = tables.write_table(spark, base, table_type=table_type)
    frame = tables.rows(spark, 600, 900, ts=5).withColumn("dt", F.lit("2026-02-01"))
    writer = HeldWriter(frame, base, options, tmp_path / "gate")
    writer.start()

    report = At(WAITING, lambda: writer.let_go_after(2))
    result = run_job(spark, base, "bucket_expansion", {"factor": 2}, report=report)

    writer.finish()
    assert result.details["waited_seconds"] > 0.5
    proved(spark, base, 8)
    assert spark.read.format("hudi").load(str(base)).count() == 900


@pytest.mark.parametrize("params", [{"on_active_writers": "abort"}, {"wait_seconds": 2}])
def test_an_expansion_gives_up_and_leaves_nothing_when_a_writer_stays_in_flight(
    spark: SparkSession, tmp_path: Path, params: dict[str, object]
) -> None:
    base = tmp_path / "trips"
    options = tables.write_table(spark, base)
    writer = HeldWriter(tables.rows(spark, 0, 700, ts=5), base, options, tmp_path / "gate").start()

    with pytest.raises(WritersActiveError, match="in flight"):
        run_job(spark, base, "bucket_expansion", {"factor": 2, **params})

    writer.finish()
    proved(spark, base, 4)
    assert left_behind(base) == []
    assert spark.read.format("hudi").load(str(base)).where("ts = 5").count() == 700


@pytest.mark.parametrize("table_type", TYPES)
def test_a_writer_that_read_the_old_number_before_the_commit_and_starts_after_it_is_stopped(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    base = tmp_path / "trips"
    options = tables.write_table(spark, base, table_type=table_type)
    gate = tmp_path / "gate"
    gate.touch()
    writer = HeldWriter(tables.rows(spark, 0, 700, ts=5), base, options, gate)

    def writer_prepares_and_waits_for_the_lock() -> None:
        writer.begin()
        time.sleep(6)

    report = At("committing", writer_prepares_and_waits_for_the_lock)
    result = run_job(spark, base, "bucket_expansion", {"factor": 2, "settle_seconds": 8}, report=report)

    writer.end()
    assert writer.error is not None
    assert len(result.details["fenced"]) == 1
    assert len(proved(spark, base, 8)) == 600
    # Its retry reads the new number.
    tables.upsert(tables.rows(spark, 0, 700, ts=5), base, options)
    assert len(proved(spark, base, 8)) == 700


@pytest.mark.parametrize(("table_type", "version"), [(TYPES[0], 9), (TYPES[1], 9), (TYPES[1], 6)])
def test_fencing_rolls_a_live_write_back_and_nothing_of_it_comes_later(
    spark: SparkSession, tmp_path: Path, table_type: str, version: int
) -> None:
    base = tmp_path / "trips"
    options = tables.write_table(spark, base, table_type=table_type, version=version, metadata=False)
    frame = tables.rows(spark, 600, 1000, ts=5).withColumn("dt", F.lit("2026-02-01"))
    writer = HeldWriter(frame.union(tables.rows(spark, 0, 50, ts=5)), base, options, tmp_path / "gate").start()

    report = At("watching writers", writer.end)
    params = {"factor": 2, "on_active_writers": "fence", "settle_seconds": 2}
    result = run_job(spark, base, "bucket_expansion", params, report=report)

    (fenced,) = result.details["fenced"]
    assert [path for path in base.rglob("*") if fenced in path.name and ".hoodie" not in path.parts] == []
    assert not (base / ".hoodie" / ".temp" / fenced).exists()
    assert writer.error is not None
    assert len(proved(spark, base, 8)) == 600
    # Its retry reads the new number.
    tables.upsert(frame, base, options)
    assert len(proved(spark, base, 8)) == 1000


@pytest.mark.parametrize("table_type", TYPES)
def test_a_writer_that_starts_right_after_the_expansion_goes_on_undisturbed(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    base = tmp_path / "trips"
    options = tables.write_table(spark, base, table_type=table_type)
    gate = tmp_path / "gate"
    gate.touch()
    writer = HeldWriter(tables.rows(spark, 0, 700, ts=5), base, options, gate)

    report = At("watching writers", lambda: writer.begin() and None)
    result = run_job(spark, base, "bucket_expansion", {"factor": 2, "settle_seconds": 8}, report=report)

    writer.finish()
    assert result.details["fenced"] == []
    assert len(proved(spark, base, 8)) == 700


@pytest.mark.parametrize(("lock_seconds", "left_out"), [(600, 0), (0, 4)])
def test_clustering_does_again_or_leaves_out_what_writers_changed_meanwhile(
    spark: SparkSession, tmp_path: Path, lock_seconds: int, left_out: int
) -> None:
    base = tmp_path / "trips"
    options = tables.write_table(spark, base, table_type="COPY_ON_WRITE")

    def writer_commits() -> None:
        tables.upsert(tables.rows(spark, 0, 600, ts=5).where("dt = '2026-01-01'"), base, options)

    # Without any time under the lock, what changes is done again before it, once; after that it is left out.
    report = At(WAITING, writer_commits, ("catching up", writer_commits))
    result = run_job(spark, base, "clustering", {"sort_by": ["city"], "lock_seconds": lock_seconds}, report=report)

    assert result.details["left_out"] == left_out
    assert result.details["rewritten_again"] == 4
    assert result.details["file_groups"] == {"before": 12 - left_out, "after": 12 - left_out}
    proved(spark, base, 4)
    assert spark.read.format("hudi").load(str(base)).where("ts = 5").count() == 200


def test_a_dead_writers_instant_does_not_hold_an_expansion_up(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    tables.write_table(spark, base)
    before = tables.snapshot(spark, base)
    table = hudi_table(spark, base, INDEX)
    client = WriteClient(table, UNDER_OUR_LOCK)._client
    instant = client.startCommit("deltacommit", table.meta)
    client.getHeartbeatClient().stopHeartbeatTimers()
    let_heartbeat_expire(base, instant)

    run_job(spark, base, "bucket_expansion", {"factor": 2})

    assert proved(spark, base, 8) == before


def test_an_expansion_whose_instant_was_rolled_back_commits_nothing(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    tables.write_table(spark, base)
    before = tables.snapshot(spark, base)

    def somebody_rolls_it_back() -> None:
        table = hudi_table(spark, base, INDEX)
        with WriteClient(table, UNDER_OUR_LOCK) as client:
            client.rollback(table.pending()[0].requested)

    with pytest.raises(CommitLostError):
        run_job(spark, base, "bucket_expansion", {"factor": 2}, report=At(WAITING, somebody_rolls_it_back))

    assert proved(spark, base, 4) == before
    assert left_behind(base) == []


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("step", ["rewriting", WAITING, "committing"])
def test_the_next_attempt_undoes_what_a_lost_one_left_and_starts_over(
    spark: SparkSession, tmp_path: Path, table_type: str, step: str
) -> None:
    base = tmp_path / "trips"
    options = tables.write_table(spark, base, table_type=table_type)
    before = tables.snapshot(spark, base)
    report = At(step, _lose_the_lease)
    with pytest.raises(LeaseLostError):
        run_job(spark, base, "bucket_expansion", {"factor": 2}, report=report, job_id="job_lost")
    assert len(report.instants) == 1
    assert hudi_table(spark, base, INDEX).pending() != []
    # Meanwhile a writer goes on in the old layout.
    tables.upsert(tables.rows(spark, 600, 700, ts=5), base, options)

    result = run_job(
        spark, base, "bucket_expansion", {"factor": 2}, job_id="job_lost", earlier_instants=tuple(report.instants)
    )

    assert result.details["rows"] == 700
    assert set(before) < set(proved(spark, base, 8))
    assert left_behind(base) == []
    tables.upsert(tables.rows(spark, 0, 800, ts=6), base, options)
    proved(spark, base, 8)


def test_a_writer_that_goes_first_makes_hudis_clustering_start_over(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "plain"
    options = tables.write_table(spark, base, table_type="COPY_ON_WRITE", num_buckets=None)
    options |= {
        "hoodie.clustering.updates.strategy": (
            "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
        ),
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
    }

    def writer_updates() -> None:
        tables.upsert(tables.rows(spark, 0, 700, ts=5), base, options)

    with pytest.raises(CommitLostError):
        run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=None, report=At("clustering", writer_updates))

    assert len(tables.snapshot(spark, base)) == 700
    assert left_behind(base) == []
    run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=None)
    assert spark.read.format("hudi").load(str(base)).where("ts = 5").count() == 700


def test_an_attempt_whose_report_was_lost_is_found_completed(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    tables.write_table(spark, base)
    first = run_job(spark, base, "bucket_expansion", {"factor": 2})
    again = run_job(spark, base, "bucket_expansion", {"factor": 2}, earlier_instants=first.instants)
    assert again.details == {"found_completed": first.instants[0], "fenced": []}
    proved(spark, base, 8)


def test_a_hashing_config_without_a_completed_commit_is_removed_first(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    options = tables.write_table(spark, base)
    table = hudi_table(spark, base, INDEX)
    rules = table.bucket_rules()
    assert rules is not None
    hashing_config.write(table, rules, rules.whole_table(num_buckets=None, factor=2), "20260101000000000")
    assert run_job(spark, base, "audit").details["dangling_hashing_configs"] == ["20260101000000000"]

    run_job(spark, base, "bucket_expansion", {"num_buckets": 8})

    tables.upsert(tables.rows(spark, 0, 800, ts=6), base, options)
    proved(spark, base, 8)


def test_only_the_job_that_left_a_lock_breaks_it(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    tables.write_table(spark, base)
    table = hudi_table(spark, base, INDEX)
    holder = TableLock(table, "job_dead")
    context = holder.held(lambda: None)
    context.__enter__()
    assert (base / ".hoodie" / "lock").exists()

    assert not TableLock(table, "job_other").break_stale()
    with pytest.raises(TableLockedError), TableLock(table, "job_other").held(for_at_most(0.5)):
        pass
    assert TableLock(table, "job_dead").break_stale()
    with TableLock(table, "job_other").held(lambda: None):
        pass
    assert not (base / ".hoodie" / "lock").exists()


def test_a_lock_whose_process_is_no_more_is_broken_by_any_job(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    tables.write_table(spark, base)
    before = tables.snapshot(spark, base)
    lock = TableLock(hudi_table(spark, base, INDEX), "job_dead")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (base / ".hoodie" / "lock").write_text(json.dumps({**lock._note, "pid": gone.pid}))

    run_job(spark, base, "bucket_expansion", {"factor": 2})

    assert proved(spark, base, 8) == before


def test_a_replacecommit_whose_worker_died_unheard_is_rolled_back(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    tables.write_table(spark, base)
    before = tables.snapshot(spark, base)
    client = WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK)
    instant = client.new_instant()
    client.start_replacement(instant, "BUCKET_RESCALE")
    with pytest.raises(RefusedError, match=instant):
        run_job(spark, base, "bucket_expansion", {"factor": 2})
    client._client.getHeartbeatClient().stopHeartbeatTimers()
    let_heartbeat_expire(base, instant)

    run_job(spark, base, "bucket_expansion", {"factor": 2})

    assert proved(spark, base, 8) == before


def test_a_compaction_plan_that_another_runner_executes_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    tables.write_table(spark, base, updates=1)
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK, DUE) as other:
        instant = other.schedule_compaction()
        assert instant is not None
        begun = other.begin_compaction(instant)
        with pytest.raises(PlanTakenError):
            run_job(spark, base, "compaction")
        other.execute_compaction(begun)
        other.commit_compaction(instant, begun)
    proved(spark, base, 4)


def _lose_the_lease() -> None:
    raise LeaseLostError
