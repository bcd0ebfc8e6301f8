"""A table that a Flink job writes by its state index adopts a bucket index, and gives it up; the job goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.flink import timeline
from tests.flink.check import differences
from tests.flink.test_flink_writer import BESIDE_OTHERS
from tests.flink.test_state_index import COW, LAST, LOADED, MOR, STATE, Lake, daemon

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.acceptance.daemon import Daemon
    from tests.flink.cluster import FlinkCluster
    from tests.flink.job import FlinkJob

__all__ = ["daemon"]


def finished(lake: Lake, spark: SparkSession, job: FlinkJob, buckets: int) -> None:
    lake.flink.wait(lake.flink.start(job), "FINISHED", seconds=180)
    timeline.wait_until_complete(lake.base)
    for metadata in (True, False):
        found = differences(spark, lake.base, job.expected(), num_buckets=buckets, metadata=metadata)
        assert found.none, (metadata, found)
    audit = lake.daemon.succeed(lake.table, "audit")
    assert (audit["clean"], audit["stale_writes"]) == (True, []), audit


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_a_flink_job_goes_on_with_the_bucket_index_that_its_table_adopts_and_without_it(
    flink: FlinkCluster, daemon: Daemon, spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    lake = Lake(flink, daemon, tmp_path / "numbers", table_type)
    flink.wait_for_checkpoints(lake.running, flink.checkpoints(lake.running) + 1)

    done = daemon.run(lake.table, "bucket_index", action="adopt", num_buckets=3)

    assert done["state"] == "succeeded", (done, daemon.log.read_text()[-4000:])
    assert flink.state(lake.running) == "FINISHED"
    printed: Any = daemon.call("GET", f"/v1/tables/{lake.table}/writer-options", params={"engine": "flink"}).json()
    options = printed["options"]
    assert (options["index.type"], options["hoodie.bucket.index.num.buckets"]) == ("BUCKET", "3"), options
    top = max(row["ver"] for row in spark.read.format("hudi").load(str(lake.base)).select("ver").collect())
    bucketed = {**BESIDE_OTHERS, **{name: value for name, value in options.items() if "index" in name}}
    job = replace(lake.job, first=top - 100, rate=1000, buckets=3, options=bucketed)
    finished(lake, spark, job, 3)

    done = daemon.run(lake.table, "bucket_index", action="drop")

    assert done["state"] == "succeeded", (done, daemon.log.read_text()[-4000:])
    anew = replace(lake.job, first=LAST - 300, last=LAST + 1500, rate=500, options={**STATE, LOADED: "true"})
    finished(lake, spark, anew, 0)
