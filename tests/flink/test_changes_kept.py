"""A Flink job keeps all changes of rows (`changelog.enabled`): a delete is a row of a log with the operation D."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.flink import timeline
from tests.flink.check import differences
from tests.flink.job import FlinkJob
from tests.flink.test_flink_writer import BESIDE_OTHERS, change
from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.cluster import FlinkCluster

CHANGES = {**BESIDE_OTHERS, "changelog.enabled": "true"}


@pytest.mark.parametrize("version", ["9", pytest.param("6", marks=pytest.mark.exhaustive)])
def test_a_compaction_brings_no_deleted_row_back(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, version: str
) -> None:
    base = tmp_path / "numbers"
    options = {**CHANGES, "hoodie.write.table.version": version}
    job = FlinkJob(base, last=2000, keys=300, late=250, rate=1000, checkpoint_seconds=1, deletes=True, options=options)
    flink.wait(flink.start(job), "FINISHED")
    timeline.wait_until_complete(base)
    before = tables.snapshot(spark, base)

    done = run_job(spark, base, "compaction").details

    assert [(each["engine"], each["reasons"][0]["type"]) for each in done["engines"]] == [("hudi", "operation-field")]
    assert tables.snapshot(spark, base) == before
    found = differences(spark, base, job.expected(), num_buckets=4)
    assert found.none, found
    # Hudi's readers look for the operation in the newest file.
    assert hudi_table(spark, base, INDEX).records_operations


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_a_repair_deletes_what_stale_writes_have_deleted(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "numbers"
    job = FlinkJob(
        base,
        last=60_000,
        keys=300,
        late=250,
        rate=60,
        checkpoint_seconds=2,
        parallelism=1,
        deletes=True,
        options=CHANGES,
    )
    running = flink.start(job)
    flink.wait_for_checkpoints(running, 3)
    change(spark, base, 8)
    flink.wait_for_checkpoints(running, flink.checkpoints(running) + 4)
    flink.stop_with_savepoint(running)
    timeline.wait_until_complete(base)
    audit = run_job(spark, base, "audit").details
    assert {each["type"] for each in audit["findings"]} == {"deletes-in-wrong-bucket"}, audit

    repaired = run_job(spark, base, "repair", writers_stopped=True).details

    assert repaired["deletes"] > 0, repaired
    frame = spark.read.format("hudi").load(str(base))
    newest = max(row["ver"] for row in frame.select("ver").collect())
    # The number after it may have been a delete.
    found = [differences(spark, base, job.expected(last), num_buckets=8) for last in (newest, newest + 1)]
    assert any(each.none for each in found), found
    assert run_job(spark, base, "audit").details["clean"]
    before = tables.snapshot(spark, base)
    run_job(spark, base, "compaction")
    assert tables.snapshot(spark, base) == before
