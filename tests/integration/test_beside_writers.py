"""Jobs replace file groups while writers run: no batch of the writers fails, and no row is lost or misplaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from jobs.errors import CommitLostError, WritersActiveError
from jobs.hudi import hashing_metadata
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.lock_errors import LockLostError
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX, left_behind
from tests.integration.writers import At, Cancelled, HeldWriter, let_heartbeat_expire

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

WAITING = "waiting for writers"
COW_FIRST = ["COPY_ON_WRITE", pytest.param("MERGE_ON_READ", marks=pytest.mark.exhaustive)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", COW_FIRST)
def test_an_expansion_waits_for_a_writer_that_creates_a_new_partition(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    options = tables.write_table(spark, base, table_type=table_type)
    frame = tables.rows(spark, 600, 900, ts=5).withColumn("dt", F.lit("2026-02-01"))
    writer = HeldWriter(frame, base, options)
    writer.start()

    context = At(WAITING, lambda: writer.let_go_after(2))
    result = run_job(spark, base, "bucket_expansion", {"factor": 2}, context=context)

    writer.finish()
    assert result.details["waited_seconds"] > 0.5
    proved(spark, base, 8)
    assert spark.read.format("hudi").load(str(base)).count() == 900


@pytest.mark.exhaustive
@pytest.mark.parametrize("params", [{"on_active_writers": "abort"}, {"wait_seconds": 2}])
def test_an_expansion_gives_up_and_leaves_nothing_when_a_writer_stays_in_flight(
    spark: SparkSession, base: Path, params: dict[str, object]
) -> None:
    options = tables.write_table(spark, base)
    writer = HeldWriter(tables.rows(spark, 0, 700, ts=5), base, options).start()

    with pytest.raises(WritersActiveError, match="in flight"):
        run_job(spark, base, "bucket_expansion", {"factor": 2, **params})

    writer.finish()
    proved(spark, base, 4)
    assert left_behind(base) == []
    assert spark.read.format("hudi").load(str(base)).where("ts = 5").count() == 700


@pytest.mark.parametrize(
    ("table_type", "version"),
    [
        pytest.param(*each, marks=pytest.mark.exhaustive)
        for each in [("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 9), ("MERGE_ON_READ", 6)]
    ],
)
def test_fencing_rolls_a_live_write_back_and_nothing_of_it_comes_later(
    spark: SparkSession, base: Path, table_type: str, version: int
) -> None:
    options = tables.write_table(spark, base, table_type=table_type, version=version, metadata=False)
    frame = tables.rows(spark, 600, 1000, ts=5).withColumn("dt", F.lit("2026-02-01"))
    writer = HeldWriter(frame.union(tables.rows(spark, 0, 50, ts=5)), base, options).start()

    context = At("watching writers", writer.end)
    params = {"factor": 2, "on_active_writers": "fence", "settle_seconds": 2}
    result = run_job(spark, base, "bucket_expansion", params, context=context)

    (fenced,) = result.details["fenced"]
    assert [path for path in base.rglob("*") if fenced in path.name and ".hoodie" not in path.parts] == []
    assert writer.error is not None
    assert len(proved(spark, base, 8)) == 600
    # The writer's retry reads the new number.
    tables.upsert(frame, base, options)
    assert len(proved(spark, base, 8)) == 1000


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", COW_FIRST)
def test_a_writer_that_starts_right_after_the_expansion_goes_on_undisturbed(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    options = tables.write_table(spark, base, table_type=table_type)
    writer = HeldWriter(tables.rows(spark, 0, 700, ts=5), base, options)
    writer.let_go()

    context = At("watching writers", lambda: writer.begin() and None)
    result = run_job(spark, base, "bucket_expansion", {"factor": 2, "settle_seconds": 8}, context=context)

    writer.finish()
    assert result.details["fenced"] == []
    assert len(proved(spark, base, 8)) == 700


@pytest.mark.exhaustive
def test_watching_a_writer_that_does_not_tell_where_it_goes_ends_when_the_job_is_cancelled(
    spark: SparkSession, base: Path
) -> None:
    options = tables.write_table(spark, base)
    writer = HeldWriter(tables.rows(spark, 0, 700, ts=5), base, options)

    context = Cancelled(after=1, step="watching writers", action=lambda: writer.start() and None)
    result = run_job(spark, base, "bucket_expansion", {"factor": 2, "settle_seconds": 600}, context=context)

    assert result.details["fenced"] == []
    writer.finish()
    assert len(proved(spark, base, 8)) == 700


@pytest.mark.exhaustive
@pytest.mark.parametrize(("lock_seconds", "left_out"), [(600, 0), (0, 4)])
def test_clustering_does_again_or_leaves_out_what_writers_changed_meanwhile(
    spark: SparkSession, base: Path, lock_seconds: int, left_out: int
) -> None:
    options = tables.write_table(spark, base, table_type="COPY_ON_WRITE")

    def writer_commits() -> None:
        tables.upsert(tables.rows(spark, 0, 600, ts=5).where("dt = '2026-01-01'"), base, options)

    # Without any time under the lock the job rewrites changed file groups once before it takes the lock; those that
    # change again are left out.
    context = At(WAITING, writer_commits, ("catching up", writer_commits))
    result = run_job(spark, base, "clustering", {"sort_by": ["city"], "lock_seconds": lock_seconds}, context=context)

    assert result.details["left_out"] == left_out
    assert result.details["rewritten_again"] == 4
    assert result.details["file_groups"] == {"before": 12 - left_out, "after": 12 - left_out}
    proved(spark, base, 4)
    assert spark.read.format("hudi").load(str(base)).where("ts = 5").count() == 200


@pytest.mark.exhaustive
def test_a_dead_writers_instant_does_not_hold_an_expansion_up(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, partitioned=False)
    before = tables.snapshot(spark, base)
    table = hudi_table(spark, base, INDEX)
    client = WriteClient(table, UNDER_OUR_LOCK)._client
    instant = client.startCommit("deltacommit", table.meta)
    client.getHeartbeatClient().stopHeartbeatTimers()
    let_heartbeat_expire(base, instant)

    run_job(spark, base, "bucket_expansion", {"factor": 2})

    assert proved(spark, base, 8) == before


@pytest.mark.exhaustive
def test_an_expansion_whose_instant_was_rolled_back_commits_nothing(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, partitioned=False)
    before = tables.snapshot(spark, base)

    def somebody_rolls_it_back() -> None:
        table = hudi_table(spark, base, INDEX)
        with WriteClient(table, UNDER_OUR_LOCK) as client:
            client.rollback(table.pending()[0].requested)

    with pytest.raises(CommitLostError):
        run_job(spark, base, "bucket_expansion", {"factor": 2}, context=At(WAITING, somebody_rolls_it_back))

    assert proved(spark, base, 4) == before
    assert left_behind(base) == []


@pytest.mark.exhaustive
def test_a_job_that_was_frozen_before_it_fences_a_writer_leaves_its_commit_alone(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = tables.write_table(spark, base, count=60, table_type="COPY_ON_WRITE")
    writer = HeldWriter(tables.rows(spark, 60, 90, ts=5), base, options).start()
    forget = hashing_metadata.forget

    def frozen(*arguments: Any) -> None:
        forget(*arguments)
        monkeypatch.undo()
        # Somebody has broken the lock.
        (base / ".hoodie" / "lock").unlink()
        writer.finish()

    monkeypatch.setattr(hashing_metadata, "forget", frozen)
    with pytest.raises(LockLostError):
        run_job(spark, base, "bucket_expansion", {"factor": 2, "on_active_writers": "fence"})

    assert len(proved(spark, base, 4)) == 90
    assert left_behind(base) == []


@pytest.mark.parametrize(
    ("kind", "params", "step", "metadata"),
    [
        ("bucket_expansion", {"factor": 2}, WAITING, False),
        pytest.param("bucket_expansion", {"factor": 2}, WAITING, True, marks=pytest.mark.exhaustive),
        pytest.param("clustering", {"sort_by": ["city"]}, WAITING, True, marks=pytest.mark.exhaustive),
        pytest.param("compaction", {}, "comparing the record keys", True, marks=pytest.mark.exhaustive),
        pytest.param("compaction", {}, "comparing the record keys", False, marks=pytest.mark.exhaustive),
    ],
)
def test_a_table_that_a_writer_makes_anew_keeps_no_file_of_the_job(
    spark: SparkSession, base: Path, kind: str, params: dict[str, object], step: str, *, metadata: bool
) -> None:
    """Spark's mode `overwrite` deletes the table's folder. The files of tasks that end after this are older than the
    new timeline, so readers that list the storage would take their rows for committed ones."""
    options = tables.write_table(spark, base, count=60, updates=1, partitioned=False, metadata=metadata)
    before = set(base.glob("*.parquet"))

    def make_anew() -> None:
        late = {path: path.read_bytes() for path in set(base.glob("*.parquet")) - before}
        assert late
        tables.rows(spark, 30, 70, ts=9).write.format("hudi").options(**options).mode("overwrite").save(str(base))
        for path, content in late.items():
            path.write_bytes(content)

    with pytest.raises(CommitLostError):
        run_job(spark, base, kind, params, context=At(step, make_anew))

    assert left_behind(base) == []
    assert len(tables.snapshot(spark, base, metadata=False)) == 40
    tables.upsert(tables.rows(spark, 0, 60, ts=10), base, options)
    assert len(proved(spark, base, 4)) == 70
