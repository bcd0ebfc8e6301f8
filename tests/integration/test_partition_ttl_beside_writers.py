"""While a job drops partitions beside writers, no acknowledged row of a writer is lost."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import RefusedError
from tests.integration import tables
from tests.integration.long_session import LongSession
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.test_partition_ttl import COW, FRESH, MOR, OLD, PARTITIONS, aged, lines, listed, rows_of, ttl
from tests.integration.writers import At, HeldWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.exhaustive

FIRST, SECOND = OLD


def held(spark: SparkSession, base: Path, options: dict[str, str], *partitions: str, ts: int = 20) -> HeldWriter:
    return HeldWriter(rows_of(spark, *partitions, ts=ts), base, options).start()


def written(spark: SparkSession, base: Path, partition: str, ts: int) -> int:
    """Returns the number of rows in this partition with this version."""
    frame = spark.read.format("hudi").load(str(base))
    return frame.where((F.col("dt") == partition) & (F.col("ts") == ts)).count()


def drop_as_hudi_does(spark: SparkSession, base: Path, options: dict[str, str], *partitions: str) -> None:
    """Drops partitions by a writer's own statement, which does not wait for other writers."""
    deletion = {
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": ",".join(partitions),
    }
    tables.upsert(rows_of(spark, *partitions, ts=0).limit(0), base, {**options, **deletion})


@pytest.mark.parametrize("table_type", [MOR, COW])
def test_hudi_itself_fails_the_batch_of_a_write_in_flight(spark: SparkSession, base: Path, table_type: str) -> None:
    """The job waits for this reason."""
    options = aged(spark, base, table_type=table_type)
    writer = held(spark, base, options, FIRST)
    drop_as_hudi_does(spark, base, options, FIRST)
    writer.end()
    assert "conflict" in str(writer.error).lower(), writer.error
    assert run_job(spark, base, "audit").details["stale_writes"] == []


@pytest.mark.parametrize("table_type", [MOR, COW])
def test_a_partition_that_is_being_written_is_withheld_and_the_others_go(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    options = aged(spark, base, table_type=table_type)
    kept = lines(spark, base, FRESH)
    writer = held(spark, base, options, FIRST)
    # A write names its partitions only when it becomes inflight with its first rows; until then it may write to any
    # partition.
    with pytest.raises(RefusedError, match="deltacommit" if table_type == MOR else "commit"):
        ttl(spark, base)
    writer.finish()
    done = ttl(spark, base)
    assert (listed(done), done["withheld"]) == ([SECOND], [])
    assert lines(spark, base, FRESH) == kept
    assert lines(spark, base, SECOND) == []
    assert written(spark, base, FIRST, 20) == 20
    assert len(proved(spark, base, 4)) == 40


def test_the_job_waits_for_a_write_and_finds_its_partition_modified(spark: SparkSession, base: Path) -> None:
    options = aged(spark, base)
    writer = held(spark, base, options, FIRST)
    context = At("waiting for writes", lambda: writer.let_go_after(1))
    done = run_job(spark, base, "partition_ttl", {"days_retain": 30, "wait_seconds": 120}, context=context).details
    writer.finish()
    assert listed(done) == [SECOND]
    assert written(spark, base, FIRST, 20) == 20
    assert len(proved(spark, base, 4)) == 40


def test_writers_continue_meanwhile_and_lose_no_row(spark: SparkSession, base: Path) -> None:
    options = aged(spark, base)
    stopped, versions = threading.Event(), [20]

    def write() -> None:
        while not stopped.is_set():
            versions.append(versions[-1] + 1)
            tables.upsert(rows_of(spark, FRESH, ts=versions[-1]), base, options)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        done = ttl(spark, base, wait_seconds=120)
    finally:
        stopped.set()
        writer.join()
    assert listed(done) == OLD
    assert written(spark, base, FRESH, versions[-1]) == 20
    assert len(proved(spark, base, 4)) == 20


@pytest.mark.parametrize("table_type", [MOR, COW])
def test_a_stale_statement_to_a_dropped_partition_is_found_and_repaired(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    options = aged(spark, base, table_type=table_type)
    session = LongSession(spark, base, options)
    ttl(spark, base)
    session.run(f"UPDATE {{table}} SET fare = -1.0, ts = 99 WHERE dt = '{FIRST}'")

    (stale,) = run_job(spark, base, "audit").details["stale_writes"]
    assert stale["operation"] == "UPSERT_PREPPED"
    assert run_job(spark, base, "repair").details["repaired"] == [stale["instant"]]

    # The rows that the writer updated had been dropped before.
    assert written(spark, base, FIRST, 99) == 0
    assert len(proved(spark, base, 4)) == 20
    tables.upsert(tables.rows(spark, 0, 70, ts=100), base, options)
    assert len(proved(spark, base, 4)) == 70
    run_job(spark, base, "cleaning", {"retain": 1})
    assert len(proved(spark, base, 4)) == 70


def test_a_stream_that_is_paused_in_a_batch_is_waited_for(spark: SparkSession, tmp_path: Path) -> None:
    base, source, gate = tmp_path / "trips", tmp_path / "source", str(tmp_path / "gate")
    options = aged(spark, base)
    rows_of(spark, FIRST, ts=20).coalesce(1).write.parquet(str(source))

    def hold(batches: Any) -> Any:
        import time
        from pathlib import Path

        while not Path(gate).exists():
            time.sleep(0.05)
        yield from batches

    frame = spark.readStream.schema(tables.rows(spark, 0, 1).schema).parquet(str(source))
    query = (
        frame.mapInPandas(hold, frame.schema)
        .writeStream.format("hudi")
        .options(**options)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .option("hoodie.datasource.write.streaming.checkpoint.identifier", "stream")
        .outputMode("append")
        .start(str(base))
    )
    try:
        held_up = hudi_table(spark, base, INDEX)
        for _ in range(600):
            if held_up.pending():
                break
            query.awaitTermination(0.1)
        with pytest.raises(RefusedError, match="deltacommit"):
            ttl(spark, base)
        (tmp_path / "gate").touch()
        query.processAllAvailable()
    finally:
        (tmp_path / "gate").touch()
        query.stop()
    assert listed(ttl(spark, base)) == [SECOND]
    assert written(spark, base, FIRST, 20) == 20
    assert len(proved(spark, base, 4)) == 40


def test_a_clean_does_not_delete_the_folder_of_a_partition_that_is_filled_anew(spark: SparkSession, base: Path) -> None:
    options = aged(spark, base)
    ttl(spark, base)
    tables.upsert(rows_of(spark, FRESH, ts=10), base, options)
    writer = held(spark, base, options, FIRST)
    context = At("waiting for writes to dropped partitions", lambda: writer.let_go_after(1))

    cleaned = run_job(spark, base, "cleaning", {"retain": 1}, context=context).details

    writer.finish()
    assert cleaned["files_deleted"] > 0
    assert written(spark, base, FIRST, 20) == 20
    assert len(proved(spark, base, 4)) == 40
    assert not (base / SECOND).exists()
    assert {item.partition for item in hudi_table(spark, base, INDEX).file_slices()} == {FRESH, FIRST}
    assert set(PARTITIONS) >= {FRESH, FIRST}
