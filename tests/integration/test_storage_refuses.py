"""A refusal of the storage has its own error type and hint, and the job is not retried if a retry cannot help."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import HeartbeatAnswer, JobKind, Outcome, Result, Table, WorkOrder
from jobs.errors import JobError
from jobs.hudi import janino
from jobs.hudi.instant_generators import instant_generators
from jobs.hudi.jvm import Jvm, jvm_of, translated
from jobs.hudi.write_probe import require_writable
from jobs.storage.permissions import Permissions
from jobs.storage_errors import (
    StorageDeniedError,
    StorageFullError,
    StorageLoginError,
    StorageReadOnlyError,
    StorageUnknownError,
)
from jobs.worker.attempt import Attempt
from jobs.worker.write_probes import WriteProbes
from service.lake.storage import open_storage
from service.model import storage_errors
from tests.integration import tables
from tests.integration.run import perform_order, proved, run_job, work_order
from tests.integration.writers import At
from tests.support import s3, unwritable
from tests.support.session_storage import reached_by

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def _fails(spark: SparkSession, base: Path, kind: str = "compaction") -> JobError:
    """Returns the error of a job, which must fail at once."""
    started = time.monotonic()
    with pytest.raises(JobError) as failed:
        run_job(spark, base, kind)
    assert time.monotonic() - started < 60
    return failed.value


def test_a_forbidden_lock_file_does_not_count_as_held_by_others(
    spark: SparkSession, base: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tables.write_table(spark, base, count=40, updates=2, partitioned=False)
    before = tables.in_order(spark, base, 4)
    with caplog.at_level(logging.WARNING), unwritable.immutable(base / ".hoodie"):
        failed = _fails(spark, base)
        assert isinstance(failed, StorageDeniedError), failed
        assert "Operation not permitted" in failed.detail
        assert not failed.problem().retriable
    assert "at org.apache.hadoop" not in "".join(each.getMessage() for each in caplog.records if each.name != "jvm")
    assert tables.left_behind(base) == []
    run_job(spark, base, "compaction")
    assert tables.in_order(spark, base, 4) == before


def test_a_table_on_a_disk_that_is_mounted_for_reading_takes_no_jobs_that_write(
    spark: SparkSession, tmp_path: Path, base: Path
) -> None:
    tables.write_table(spark, base, count=40, updates=2, partitioned=False)
    with unwritable.read_only(tmp_path):
        failed = _fails(spark, base)
        assert isinstance(failed, StorageReadOnlyError), failed
        assert not failed.problem().retriable
        assert run_job(spark, base, "audit").details["clean"]


def test_the_reason_why_a_folder_cannot_be_made_is_reported_although_java_gives_none(
    spark: SparkSession, tmp_path: Path, base: Path
) -> None:
    tables.write_table(spark, base, count=40, updates=2, partitioned=False)
    with unwritable.read_only(tmp_path), pytest.raises(StorageReadOnlyError):
        require_writable(Jvm(spark), f"{base}/new/folder")


def test_a_full_disk_is_reported_and_its_table_is_unchanged(spark: SparkSession, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with unwritable.small_disk(disk, "64m"):
        base = disk / "trips"
        options = tables.write_table(spark, base, count=40, updates=2, partitioned=False)
        before = tables.in_order(spark, base, 4)
        unwritable.fill(disk)
        failed = _fails(spark, base)
        assert isinstance(failed, StorageFullError), failed
        assert not failed.problem().retriable
        assert tables.left_behind(base) == []
        (disk / "filling").unlink()
        assert tables.in_order(spark, base, 4) == before
        run_job(spark, base, "compaction")
        tables.upsert(tables.rows(spark, 0, 5, ts=9), base, options)
        assert len(tables.in_order(spark, base, 4)) == 40


@pytest.mark.exhaustive
@pytest.mark.parametrize("pages", [1, 2])
def test_a_commit_that_a_full_disk_would_leave_in_part_is_not_made(
    spark: SparkSession, tmp_path: Path, pages: int
) -> None:
    """Hudi alone would put the file of the commit in its place, empty or with the beginning of its content."""
    disk = tmp_path / "disk"
    shape: dict[str, Any] = {"table_type": "COPY_ON_WRITE", "partitioned": False, "metadata": False}
    with unwritable.small_disk(disk, "64m"):
        base = disk / "trips"
        options = tables.write_table(spark, base, count=40, **shape)
        before = tables.in_order(spark, base, 4)

        def fill() -> None:
            (disk / "room").write_bytes(bytes(4096 * pages))
            unwritable.fill(disk)
            (disk / "room").unlink()

        order = work_order(base, "clustering", {"sort_by": ["city"]})
        with pytest.raises(StorageFullError):
            perform_order(spark, order, context := At("committing", fill))
        assert tables.in_order(spark, base, 4) == before
        (disk / "filling").unlink()
        perform_order(spark, replace(order, attempt=2, earlier_instants=tuple(context.instants)))
        assert tables.left_behind(base) == []
        assert proved(spark, base, 4) == before
        tables.upsert(tables.rows(spark, 0, 50, ts=9), base, options)
        assert len(tables.in_order(spark, base, 4)) == 50


_IMMUTABLE = """
package groundskeeper.test;

import java.io.IOException;
import java.io.OutputStream;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.storage.HoodieInstantWriter;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StoragePath;

public class Immutable implements HoodieInstantWriter {
  private final int bytes;

  public Immutable(HoodieStorage storage, String path, int bytes) {
    this.bytes = bytes;
    storage.createImmutableFileInPath(new StoragePath(path), Option.of(this));
  }

  public void writeToStream(OutputStream stream) throws IOException {
    stream.write(new byte[bytes]);
  }
}
"""


@pytest.mark.parametrize("bytes_written", [100, 20_000])
def test_no_instant_that_could_be_written_only_in_part_comes_to_the_timeline(
    spark: SparkSession, tmp_path: Path, bytes_written: int
) -> None:
    """The small instant file fails when it is closed, the large one while it is written."""
    jvm, disk = jvm_of(spark), tmp_path / "disk"
    instant_generators(jvm)
    storage = jvm.hudi.storage.HoodieStorageUtils.getStorage(str(disk), jvm.storage_conf())

    def write() -> None:
        arguments = storage, str(disk / "1.deltacommit"), bytes_written
        with translated("completing"):
            janino.instance(jvm, _IMMUTABLE, "groundskeeper.test.Immutable", *arguments, beside=beside)

    beside = jvm.hudi.storage.HoodieStorage
    with unwritable.small_disk(disk, "1m"):
        unwritable.fill(disk)
        with pytest.raises(StorageFullError):
            write()
        assert [path.name for path in disk.iterdir()] == ["filling"]
        (disk / "filling").unlink()
        write()
        assert (disk / "1.deltacommit").stat().st_size == bytes_written


def test_the_first_job_of_a_table_finds_out_whether_the_worker_may_write_there(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=40, updates=2, partitioned=False)
    probes = WriteProbes()

    def attempt(kind: JobKind) -> Result:
        declared = Table(str(base), "trips", tables.INDEX)
        order = WorkOrder(f"job_{kind}", 1, kind, declared, {"rows": False} if kind is JobKind.AUDIT else {})
        beat = lambda _: HeartbeatAnswer.CONTINUE  # noqa: E731
        return Attempt(spark, order, 30.0, beat, permissions=Permissions(), probes=probes).run()

    before = sorted(path.name for path in (base / ".hoodie").iterdir())
    with unwritable.immutable(base / ".hoodie"):
        audited = attempt(JobKind.AUDIT)
        assert audited.outcome is Outcome.SUCCEEDED
        assert audited.details["not_writable"]["type"] == "storage-access-denied"
        failed = attempt(JobKind.COMPACTION)
        assert failed.outcome is Outcome.FAILED
        assert failed.error is not None
        assert (failed.error.type, failed.error.retriable) == ("storage-access-denied", False)
        assert failed.details["seconds"] < 10
    assert sorted(path.name for path in (base / ".hoodie").iterdir()) == before
    assert attempt(JobKind.AUDIT).details["not_writable"] is None
    done = attempt(JobKind.COMPACTION)
    assert done.outcome is Outcome.SUCCEEDED, done
    assert "not_writable" not in done.details
    # The JVM has worked for the attempt too.
    assert 0 < done.details["cpu_seconds"] < 100


def test_a_key_that_is_not_known_is_not_a_policy_that_forbids_nor_a_bucket_that_is_not_there(
    spark: SparkSession,
) -> None:
    folder = "s3a://lake/trips/.hoodie"
    with s3.running() as server, reached_by(spark, server.options, "s3a://lake", "s3a://none"):
        require_writable(Jvm(spark), folder)
        assert not server.names("lake/trips")
        for faults, path, error in (
            ({"denies_writes": True}, folder, StorageDeniedError),
            ({}, "s3a://none/trips/.hoodie", StorageUnknownError),
            ({"needs_keys": True}, folder, StorageLoginError),
        ):
            server.counted(**faults)
            with pytest.raises(error) as failed:
                require_writable(Jvm(spark), path)
            assert not failed.value.problem().retriable, failed.value
        with pytest.raises(storage_errors.StorageLoginError):
            open_storage("s3a://lake/trips", server.options).read(".hoodie/hoodie.properties")
