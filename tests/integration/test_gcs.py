"""Jobs work on a table on Google Cloud Storage (an emulator, Google's connector for Hadoop) as on a local table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from jobs.contract import Outcome, TableLock
from jobs.storage.paths import of_hadoop
from service.lake.storage import open_storage
from service.model.storage_errors import PathNotFoundError
from service.registration.detection import examine
from tests.integration import tables
from tests.integration.run import run_job
from tests.integration.stored_table import INDEX, PARTITIONS, StoredTable
from tests.support import gcs
from tests.support.session_storage import reached_by

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.gcs import Server

pytestmark = pytest.mark.exhaustive
ODD = "a b/ü+y 50%25&x=1;'"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with gcs.running() as running:
        yield running


def test_listings_show_folders_that_are_no_objects(server: Server) -> None:
    storage = of_hadoop("gs://lake/listed", server.options)
    content = os.urandom(3_000_000)
    output = storage.create(ODD, "file")
    output.stream.write(content)
    assert output.close() == len(content)
    storage.create_empty("top")
    seen = open_storage("gs://lake/listed", server.options)
    assert {(entry.path, entry.is_folder) for entry in seen.list()} == {("a b", True), ("top", False)}
    everything = {entry.path for entry in seen.list(recursive=True)}
    assert everything == {"a b", ODD, f"{ODD}/file", "top"}
    assert seen.read(f"{ODD}/file") == content
    assert seen.list("none") == []
    with pytest.raises(PathNotFoundError):
        seen.names("none")
    assert storage.size([f"gs://lake/listed/{ODD}/file", "gs://lake/listed/none"]) == len(content)
    output = storage.create("abandoned")
    output.stream.write(b"half")
    output.abandon()
    assert not seen.exists("abandoned")


def test_a_table_on_googles_storage_gets_every_service(server: Server, spark: SparkSession, tmp_path: Path) -> None:
    lock = TableLock("filesystem", {"hoodie.write.lock.filesystem.path": f"file://{tmp_path}/locks"})
    table = StoredTable(spark, "gs://lake/trips", server.options, lock)
    base, options = table.base, table.options(metadata=False)
    with reached_by(spark, server.options):
        table.write(0, 200, options)
        table.write(0, 100, options, ts=1)
        before = tables.snapshot(spark, base)
        assert len(before) == 200

        found = examine(f"{base}/", allowed_roots=("gs://lake",), claimed=None, storage_options=server.options)
        assert (found.base_path, found.index) == (base, INDEX)

        for kind, params in {
            "compaction": {},
            "bucket_expansion": {"num_buckets": 4},
            "clustering": {"sort_by": ["city"]},
            "cleaning": {"retain": 1},
        }.items():
            names = table.names()
            done = table.run(kind, params)
            assert done.outcome is Outcome.SUCCEEDED, done
            assert tables.snapshot(spark, base) == before
        gone = {name for name in names - table.names() if name.endswith(".parquet")}
        assert {name.partition("/")[0] for name in gone} == set(PARTITIONS)
        assert table.in_order(4) == before
        table.require_audited()
        table.require_nothing_left()

        answer = run_job(spark, base, "bucket_expansion", {"factor": 2}, index=INDEX, dry_run=True)
        assert [item["type"] for item in answer.details["refusals"]] == ["lock-not-atomic"]
