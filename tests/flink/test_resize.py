"""A Flink job that was stopped for a resize of consistent hashing goes on with the new ranges."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from jobs.errors import RefusedError
from tests.flink import timeline
from tests.flink.check import differences
from tests.flink.job import FlinkJob
from tests.flink.test_flink_writer import BESIDE_OTHERS
from tests.integration.run import run_job
from tests.integration.test_bucket_resize import MERGE, SPLIT
from tests.integration.test_consistent_hashing import findings, num_buckets

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.cluster import FlinkCluster

OPTIONS = {
    **BESIDE_OTHERS,
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.bucket.index.max.num.buckets": "64",
}


@pytest.mark.exhaustive
def test_a_job_is_stopped_for_a_resize_and_goes_on(flink: FlinkCluster, spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "numbers"
    job = FlinkJob(base, last=6_000, rate=100, checkpoint_seconds=1, options=OPTIONS)
    running = flink.start(job)
    flink.wait_for_checkpoints(running, 3)
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "bucket_resize", SPLIT, index=None)
    assert refused.value.problem().type == "flink-may-be-running"
    for params, number in ((SPLIT, 8), (MERGE, 1)):
        saved = flink.stop_with_savepoint(running)
        timeline.wait_until_complete(base)
        run_job(spark, base, "bucket_resize", params, index=None, writers_stopped=True)
        assert num_buckets(base, "p0") == number
        assert findings(spark, base) == {}
        running = flink.start(job, savepoint=saved)
        flink.wait_for_checkpoints(running, flink.checkpoints(running) + 3)
    saved = flink.stop_with_savepoint(running)
    timeline.wait_until_complete(base)
    flink.wait(flink.start(replace(job, rate=10_000), savepoint=saved), "FINISHED")
    timeline.wait_until_complete(base)
    found = differences(spark, base, job.expected())
    assert found.none, found
    assert findings(spark, base) == {}
