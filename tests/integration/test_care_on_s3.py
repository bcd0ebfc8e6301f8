"""Tests the services that maintain a table's files and timeline on S3 (moto's server, Hadoop's s3a)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import TableLock
from jobs.errors import RefusedError
from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.integration.stored_table import INDEX, PARTITIONS, rows
from tests.support import s3
from tests.support.session_storage import reached_by

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

SHAPES = [("MERGE_ON_READ", 9), ("COPY_ON_WRITE", 9)]


@pytest.fixture(scope="module")
def server() -> Iterator[s3.Server]:
    with s3.running() as running:
        yield running


@pytest.fixture(scope="module")
def on_s3(spark: SparkSession, server: s3.Server) -> Iterator[SparkSession]:
    with reached_by(spark, server.options, "s3a://lake"):
        yield spark


@pytest.mark.exhaustive
@pytest.mark.parametrize(("table_type", "version"), SHAPES)
def test_all_services_on_s3_keep_the_rows_and_leave_no_files(
    on_s3: SparkSession, server: s3.Server, tmp_path: Path, table_type: str, version: int
) -> None:
    spark, base = on_s3, f"s3a://lake/{table_type.lower()}{version}"
    # Hudi's filesystem lock needs atomic creation, which a disk has, but not S3.
    lock = TableLock("filesystem", {"hoodie.write.lock.filesystem.path": f"file://{tmp_path}/locks"})
    job = partial(run_job, spark, base, index=INDEX, lock=lock)
    options = tables.writer_options(base, table_type=table_type, version=version, num_buckets=2, **lock.options)
    for ts in range(3):
        tables.upsert(rows(spark, 0, 200, ts), base, options)

    def require_healthy() -> None:
        details = job("diagnosis").details
        assert (details["findings"], details["unchecked"]) == ([], [])

    def upserted(last: int, ts: int) -> list[str]:
        """Upserts rows by the writer with its original options."""
        tables.upsert(rows(spark, 0, last, ts), base, options)
        found = tables.in_order(spark, base, 2)
        assert len(found) == max(last, 200)
        return found

    before = tables.in_order(spark, base, 2)
    require_healthy()

    if table_type == "MERGE_ON_READ":
        first = job("compaction", {"limit_bytes": 1}).details
        assert (first["file_groups"], first["left"]["file_groups"]) == (1, 3)
        assert tables.in_order(spark, base, 2) == before
        job("compaction", {"partitions": [PARTITIONS[0]]})
        assert job("compaction", {"limit_bytes": 10**9}).details["left"]["file_groups"] == 0
        assert tables.in_order(spark, base, 2) == before
        before = upserted(210, 5)
        require_healthy()

    savepoint = job("savepoint").details["savepoint"]
    upserted(260, 6)
    last = hudi_table(spark, base, INDEX).commits()[-1].write.instant
    saved = before
    before = upserted(270, 7)
    with pytest.raises(RefusedError) as refused:
        job("rollback", {"instant": last, "table_name": "test"})
    assert [reason.type for reason in refused.value.reasons] == ["not-the-latest"]
    last = hudi_table(spark, base, INDEX).commits()[-1].write.instant
    job("rollback", {"instant": last, "table_name": "test"})
    assert len(tables.in_order(spark, base, 2)) == 260
    require_healthy()
    job("restore", {"savepoint": savepoint, "table_name": "test"}, writers_stopped=True)
    assert tables.in_order(spark, base, 2) == saved
    require_healthy()
    assert job("savepoint", {"action": "delete", "instant": savepoint}).details["savepoints"] == []

    _validated_and_rebuilt(job, server, base)
    assert tables.in_order(spark, base, 2) == saved
    require_healthy()

    markers = f"{base.removeprefix('s3a://')}/.hoodie/.temp/20200101000000000"
    with server.files.open_output_stream(f"{markers}/MARKERS.type") as stream:
        stream.write(b"DIRECT")
    assert [each["type"] for each in job("diagnosis").details["findings"]] == ["markers-left"]
    job("repair", {"leftovers": True})
    assert not [name for name in server.names(base.removeprefix("s3a://")) if "20200101000000000" in name]
    require_healthy()

    options["hoodie.metadata.compact.max.delta.commits"] = "2"  # Archival waits for a compaction of the metadata table.
    for ts in range(8, 12):
        before = upserted(280, ts)
    archived = job("archival", {"retain": 2}).details
    assert archived["archived"] > 0, archived
    assert tables.in_order(spark, base, 2) == before
    assert tables.snapshot(spark, base, metadata=True) == tables.snapshot(spark, base, metadata=False)
    upserted(300, 20)
    require_healthy()
    audit = job("audit").details
    assert audit["clean"], audit
    assert audit["pending_instants"] == []


def _validated_and_rebuilt(job: Any, server: s3.Server, base: str) -> None:
    """Validates and compacts the metadata table; then restores an older copy, which the job finds to be outdated, and
    rebuilds it."""
    assert job("metadata_table").details["findings"] == []
    after = job("metadata_table", {"action": "compact"}).details["after"]
    assert (after["commits"], after["log_files"]) == (0, 0)
    done = job("metadata_table", {"action": "rebuild"}, writers_stopped=True).details
    assert "files" in done["partitions"]
    assert job("metadata_table").details["findings"] == []
    folder = f"{base.removeprefix('s3a://')}/.hoodie/metadata"
    assert any(name.startswith("files/") for name in server.names(folder))
