"""A streaming query of Flink catches up with a table whose file groups jobs of this service have replaced."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.flink import timeline
from tests.flink.job import FlinkJob
from tests.flink.test_beside_flink import COW, MOR
from tests.flink.test_flink_writer import BESIDE_OTHERS
from tests.integration.run import run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.cluster import FlinkCluster

KEYS = 3000
PATIENCE_SECONDS, QUIET_SECONDS = 60.0, 8.0


@dataclass(frozen=True)
class Query(FlinkJob):
    """Prints each row of the table with a mark of its own, from its first commit on, and never ends."""

    mark: str = ""

    def statements(self) -> list[str]:
        columns = "id STRING, ver BIGINT, val STRING, num DOUBLE, part STRING"
        printed = f"'connector' = 'print', 'print-identifier' = '{self.mark}'"
        return [
            self.table(),
            f"CREATE TEMPORARY TABLE printed ({columns}) WITH ({printed})",
            f"INSERT INTO printed SELECT id, ver, val, num, part FROM {self.table_name}",
        ]


def rows_of(flink: FlinkCluster, job: FlinkJob, name: str, **options: str) -> list[tuple[Any, ...]]:
    """Returns the rows that a streaming query prints until it prints no more, in the order of their keys."""
    base: Any = job.base
    mark = f"{name} of {job.table_type}"
    reads = {"read.streaming.enabled": "true", "read.start-commit": timeline.commits(base)[0].instant}
    query = Query(base, job.last, parallelism=1, table_type=job.table_type, mark=mark)
    running = flink.start(
        replace(query, options={**job.options, "read.streaming.check-interval": "1"} | reads | options)
    )
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    since = time.monotonic()
    while len(found) < KEYS or time.monotonic() < since + QUIET_SECONDS:
        assert time.monotonic() < deadline, len(found)
        before = len(found)
        found = re.findall(rf"^{mark}> \+I\[(\w+), (\d+), (\w+), ([^,]+), (\w+)\]$", flink.printed(), re.M)
        since = since if len(found) == before else time.monotonic()
        time.sleep(0.2)
    flink.cancel(running)
    return sorted((key, int(ver), val, float(num), part) for key, ver, val, num, part in found)


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_a_streaming_query_reads_each_row_once_unless_it_skips_clusterings(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    base = tmp_path / "numbers"
    options = {**BESIDE_OTHERS, "metadata.enabled": "true"}
    job = FlinkJob(base, last=KEYS - 1, keys=KEYS, late=KEYS * 3 // 4, rate=400, checkpoint_seconds=1, options=options)
    job = replace(job, table_type=table_type)
    changes: tuple[tuple[str, dict[str, Any]], ...] = (
        ("bucket_expansion", {"num_buckets": 8}),
        ("clustering", {"sort_by": ["num"]}),
    )
    third = KEYS // 3
    for number in range(3):
        flink.wait(flink.start(replace(job, first=number * third, last=(number + 1) * third - 1)), "FINISHED")
        timeline.wait_until_complete(base)
        for kind, params in changes[number : number + 1]:
            run_job(spark, base, kind, params, writers_stopped=True)
    if table_type == MOR:
        run_job(spark, base, "compaction")
    expected = sorted((key, row.ver, row.val, row.num, row.part) for key, row in job.expected().items())

    assert rows_of(flink, job, "all", **{"read.streaming.skip_clustering": "false"}) == expected

    # The option is `true` by default: the query then reads the replaced files and those with the same rows.
    found = rows_of(flink, job, "default")
    assert sorted(set(found)) == expected
    assert (len(found) > KEYS) == (table_type == COW)
