"""Tests a table on HDFS (a real cluster) with Hudi's filesystem lock: registration, polls and jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex, Outcome
from jobs.errors import CancelledError
from service.lake.active_timeline import read_active_timeline
from service.registration.detection import examine
from tests.integration import tables
from tests.integration.run import run_job
from tests.integration.stored_names import left_behind, names_of_files
from tests.integration.test_s3 import PARTITIONS, rows
from tests.integration.writers import At
from tests.support import hdfs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.support.hdfs import Cluster

INDEX = BucketIndex(2, ("id",))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with hdfs.running() as running:
        yield running


@pytest.fixture(scope="module")
def on_hdfs(spark: SparkSession, cluster: Cluster) -> Iterator[SparkSession]:
    """The session with the cluster's options in Hadoop's configuration, as in a worker."""
    conf: Any = spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    for name, value in cluster.options.items():
        conf.set(name, value)
    yield spark
    for name in cluster.options:
        conf.unset(name)


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_whole", [False, True])
def test_a_table_on_hdfs_is_served(on_hdfs: SparkSession, cluster: Cluster, is_whole: bool) -> None:
    spark, base = on_hdfs, f"{cluster.uri}/lake/trips{is_whole}"
    options = tables.writer_options(base, num_buckets=2, metadata=is_whole)
    tables.upsert(rows(spark, 0, 200), base, options)
    tables.upsert(rows(spark, 0, 100, ts=1), base, options)
    before = tables.snapshot(spark, base)
    assert len(before) == 200

    # The service reads the table by the same options.
    found = examine(f"{base}/", allowed_roots=(cluster.uri,), claimed=None, storage_options=cluster.options)
    assert (found.base_path, found.index) == (base, INDEX)
    assert len(read_active_timeline(base, cluster.options).completed) == 2

    expanded = run_job(spark, base, "bucket_expansion", {"num_buckets": 4}, index=INDEX)
    assert expanded.outcome is Outcome.SUCCEEDED
    assert expanded.details["rows"] == 200
    assert tables.in_order(spark, base, 4) == before
    if is_whole:
        before = _housekeeping(spark, cluster, base, options)

    audit = run_job(spark, base, "audit", index=INDEX).details
    assert audit["clean"], audit
    assert tables.in_order(spark, base, 4) == before
    assert left_behind(base, cluster.options) == []
    assert {name.partition("/")[0] for name in names_of_files(base, cluster.options)} == {".hoodie", *PARTITIONS}
    assert read_active_timeline(base, cluster.options).pending == ()


def _housekeeping(spark: SparkSession, cluster: Cluster, base: str, options: dict[str, str]) -> list[str]:
    """Runs the other services after a writer that still has 2 buckets in its options and leaves logs. Returns the
    rows."""
    tables.upsert(rows(spark, 100, 300, ts=7), base, options)
    before = tables.in_order(spark, base, 4)
    assert len(before) == 300

    compacted = run_job(spark, base, "compaction", index=INDEX)
    assert compacted.outcome is Outcome.SUCCEEDED
    assert compacted.details["file_groups"] > 0
    assert tables.in_order(spark, base, 4) == before

    clustered = run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=INDEX)
    assert clustered.details["inside_buckets"] is True
    assert tables.in_order(spark, base, 4) == before

    names = names_of_files(base, cluster.options)
    assert run_job(spark, base, "cleaning", {"retain": 2}, index=INDEX).outcome is Outcome.SUCCEEDED
    gone = {name for name in names - names_of_files(base, cluster.options) if name.endswith(".parquet")}
    assert {name.partition("/")[0] for name in gone} == set(PARTITIONS)
    return before


@pytest.mark.exhaustive
def test_an_abort_in_the_middle_leaves_nothing_on_hdfs(on_hdfs: SparkSession, cluster: Cluster) -> None:
    base = f"{cluster.uri}/lake/aborted"
    tables.upsert(rows(on_hdfs, 0, 200), base, tables.writer_options(base, num_buckets=2))
    before, names = tables.snapshot(on_hdfs, base), names_of_files(base, cluster.options)
    written: set[str] = set()

    def cancel() -> None:
        written.update(
            name for name in names_of_files(base, cluster.options) - names if name.endswith((".parquet", ".CREATE"))
        )
        raise CancelledError

    with pytest.raises(CancelledError):
        run_job(on_hdfs, base, "bucket_expansion", {"factor": 2}, index=INDEX, context=At("waiting", cancel))
    assert len(written) == 2 * 8  # each of the four slices became two files, each with its marker
    assert left_behind(base, cluster.options) == []
    assert tables.snapshot(on_hdfs, base) == before


@pytest.mark.exhaustive
def test_a_dry_run_on_hdfs_reports_all_obstacles(on_hdfs: SparkSession, cluster: Cluster) -> None:
    base = f"{cluster.uri}/lake/refused"
    tables.upsert(rows(on_hdfs, 0, 20), base, tables.writer_options(base, num_buckets=2, table_type="COPY_ON_WRITE"))
    conf: Any = on_hdfs._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    conf.set("fs.permissions.umask-mode", "u=rwx,g=rx,o=")
    try:
        answer = run_job(on_hdfs, base, "bucket_expansion", {"factor": 2}, index=INDEX, dry_run=True)
    finally:
        conf.unset("fs.permissions.umask-mode")
    assert [(item["type"], item["detail"]) for item in answer.details["refusals"]] == [
        ("storage-not-supported", "fs.permissions.umask-mode = u=rwx,g=rx,o=")
    ]
