"""A Flink job writes the rows of one checkpoint in several batches: each writes the base file of a copy-on-write table
anew, and Hudi adds up the sizes and rows of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from tests.flink import timeline
from tests.flink.check import differences
from tests.flink.job import FlinkJob
from tests.flink.test_beside_flink import COW, MOR
from tests.flink.test_flink_writer import BESIDE_OTHERS
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.contract import BucketIndex
    from tests.flink.cluster import FlinkCluster

# In MB; the default is 256.
SMALL_BATCHES = {"write.batch.size": "0.005"}
JOBS: dict[str, dict[str, Any]] = {
    "compaction": {},
    "clustering": {"sort_by": ["num"]},
    "cleaning": {"retain": 1},
    "bucket_expansion": {"num_buckets": 8},
}
CDC, VERSION = {"cdc.enabled": "true"}, {"hoodie.write.table.version": "6"}


def batches(spark: SparkSession, base: Path) -> int:
    """Returns the most batches in which a commit wrote one file group."""
    most = 0
    for commit in hudi_table(spark, base, INDEX).commits():
        for groups in commit.files.values():
            for paths in groups.values():
                names = [path.rpartition("/")[2] for path in paths]
                logs = sum(parse_log_file_name(name) is not None for name in names)
                rolled = [
                    int(parts[3]) + 2
                    for name in names
                    if (parsed := parse_base_file_name(name)) and len(parts := parsed.write_token.split("-")) > 3
                ]
                most = max(most, logs, *rolled)
    return most


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("table_type", "options", "kinds"),
    [
        (COW, {}, [*JOBS][1:]),
        (COW, VERSION, [*JOBS][1:]),
        (COW, CDC, ["cleaning"]),
        (MOR, {}, JOBS),
        (MOR, VERSION, JOBS),
    ],
)
def test_no_check_takes_the_batches_of_a_checkpoint_for_a_damage(
    flink: FlinkCluster,
    spark: SparkSession,
    tmp_path: Path,
    table_type: str,
    options: dict[str, str],
    kinds: Collection[str],
) -> None:
    base = tmp_path / "numbers"
    job = FlinkJob(
        base,
        last=11_999,
        rate=1000,
        table_type=table_type,
        checkpoint_seconds=3,
        options={**BESIDE_OTHERS, **SMALL_BATCHES, "metadata.enabled": "true", **options},
    )
    flink.wait(flink.start(job), "FINISHED")
    timeline.wait_until_complete(base)
    assert batches(spark, base) > 1
    assert audited(spark, base) == []
    if table_type == COW:
        last = hudi_table(spark, base, INDEX).commits()[-1]
        # The file before a commit is the file before the commit's first batch.
        assert "null" != max(last.previous.values()) < last.write.instant
        undone = {"instant": last.write.instant, "table_name": "test"}
        planned = run_job(spark, base, "rollback", undone, writers_stopped=True, dry_run=True)
        assert planned.details["refusals"] == []

    for kind in kinds:
        done = run_job(spark, base, kind, JOBS[kind], writers_stopped=True)
        assert done.details.get("audit", {}).get("findings", []) == [], (kind, done)
    assert audited(spark, base) == []
    for metadata in (True, False):
        found = differences(
            spark, base, job.expected(), num_buckets=8 if "bucket_expansion" in kinds else 4, metadata=metadata
        )
        assert found.none, (metadata, found)


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize("merges", ["false", "true"])
def test_no_check_takes_the_files_of_a_job_that_only_appends_for_a_damage(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, merges: str
) -> None:
    base = tmp_path / "numbers"
    appending = {"index.type": "", "hoodie.bucket.index.num.buckets": "", "write.operation": "insert"}
    options = {
        **BESIDE_OTHERS,
        **SMALL_BATCHES,
        **appending,
        "write.insert.cluster": merges,
        "metadata.enabled": "true",
    }
    job = FlinkJob(
        base, last=3999, keys=4000, late=3000, rate=500, table_type=COW, checkpoint_seconds=2, options=options
    )
    flink.wait(flink.start(job), "FINISHED")
    timeline.wait_until_complete(base)
    assert audited(spark, base, None) == []

    for kind in ("clustering", "cleaning"):
        done = run_job(spark, base, kind, JOBS[kind], index=None, writers_stopped=True)
        assert done.details.get("audit", {}).get("findings", []) == [], (kind, done)
    assert audited(spark, base, None) == []
    found = differences(spark, base, job.expected())
    assert found.none, found


def audited(spark: SparkSession, base: Path, index: BucketIndex | None = INDEX) -> list[Any]:
    details = run_job(spark, base, "audit", index=index).details
    assert details["unchecked"] == [], details
    return list(details["findings"])
