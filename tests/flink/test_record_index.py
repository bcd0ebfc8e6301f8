"""A Flink job finds its rows by the record index. While it has an instant in flight, an instant of the metadata table
is in flight too. Jobs of this service must not touch either: if one is rolled back, the Flink job fails for ever and
its rows are lost."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.flink import timeline
from tests.flink.job import FlinkJob
from tests.flink.test_beside_flink import COW, MOR
from tests.flink.test_flink_writer import BESIDE_OTHERS
from tests.flink.test_goes_on import goes_on, stopped
from tests.flink.test_state_index import PAUSE
from tests.integration.run import hudi_table, run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.cluster import FlinkCluster

BY_RECORDS = {
    **BESIDE_OTHERS,
    "index.type": "GLOBAL_RECORD_LEVEL_INDEX",
    "hoodie.bucket.index.num.buckets": "",
    "metadata.enabled": "true",
}


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_a_job_goes_on_beside_services_that_commit_while_its_instant_is_open(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    base = tmp_path / "numbers"
    job = FlinkJob(base, last=30_000, keys=600, late=450, rate=60, table_type=table_type, checkpoint_seconds=4)
    job = replace(job, more_settings={PAUSE: "4 s"}, options=BY_RECORDS)
    running = flink.start(job)
    flink.wait_for_checkpoints(running, 3)
    cleaned = 0
    for _ in range(4):
        if table_type == MOR:
            run_job(spark, base, "compaction", index=None)
        while not timeline.pending(base):
            time.sleep(0.01)
        cleaned += len(run_job(spark, base, "cleaning", {"retain": 1}, index=None).instants)
        run_job(spark, base, "metadata_table", {"action": "compact"}, index=None)
        flink.wait_for_checkpoints(running, flink.checkpoints(running) + 1)
    assert cleaned > 1
    assert flink.exceptions(running) == []
    saved = stopped(flink, job, running)
    assert "record_index" in hudi_table(spark, base, None).metadata_partitions

    run_job(spark, base, "clustering", {"sort_by": ["num"]}, index=None, writers_stopped=True)

    goes_on(flink, spark, job, saved, None)
    verified = run_job(spark, base, "index", index=None).details
    assert (verified["compared"], verified["differences"]) == (["record_index"], []), verified
