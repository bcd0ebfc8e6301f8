"""Tests a table on HDFS (a real cluster) with Hudi's filesystem lock: registration, polls and jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from service.lake.active_timeline import read_active_timeline
from tests.integration import tables
from tests.integration.run import run_job
from tests.integration.stored_table import INDEX, StoredTable, rows
from tests.support import hdfs
from tests.support.session_storage import reached_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.support.hdfs import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with hdfs.running() as running:
        yield running


@pytest.fixture(scope="module")
def on_hdfs(spark: SparkSession, cluster: Cluster) -> Iterator[SparkSession]:
    """The session with the cluster's options in Hadoop's configuration, as in a worker."""
    with reached_by(spark, cluster.options):
        yield spark


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_whole", [False, True])
def test_a_table_on_hdfs_is_served(on_hdfs: SparkSession, cluster: Cluster, is_whole: bool) -> None:
    table = StoredTable(on_hdfs, f"{cluster.uri}/lake/trips{is_whole}", cluster.options)
    options = table.options(metadata=is_whole)
    table.write(0, 200, options)
    table.write(0, 100, options, ts=1)
    assert len(read_active_timeline(table.base, cluster.options).completed) == 2
    table.expand(cluster.uri)
    if is_whole:
        table.keep_house(options)
    table.require_audited()
    table.require_nothing_left()


@pytest.mark.exhaustive
def test_an_abort_in_the_middle_leaves_nothing_on_hdfs(on_hdfs: SparkSession, cluster: Cluster) -> None:
    StoredTable(on_hdfs, f"{cluster.uri}/lake/aborted", cluster.options).require_nothing_of_an_abort()


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
