"""A job removes the files that were written after the rollback of their instant, and no similar files."""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.services.compaction import DUE
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import At, HeldWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def write_a_day(spark: SparkSession, base: Path, **shape: Any) -> dict[str, str]:
    """Writes a table of 60 rows in one partition; returns the writer's options."""
    options = tables.writer_options(base, **shape)
    tables.upsert(tables.rows(spark, 0, 60, partitions=1), base, options)
    return options


def fence_a_writer(spark: SparkSession, base: Path, options: dict[str, str]) -> str:
    """Expands the table during a write, and returns the write's instant, which was rolled back."""
    frame = tables.rows(spark, 600, 1000, ts=5).withColumn("dt", F.lit("2026-02-01"))
    writer = HeldWriter(frame, base, options).start()
    params = {"factor": 2, "on_active_writers": "fence", "settle_seconds": 0}
    (fenced,) = run_job(spark, base, "bucket_expansion", params).details["fenced"]
    writer.end()
    return str(fenced)


@pytest.mark.parametrize(
    ("table_type", "version"), [("COPY_ON_WRITE", 9), pytest.param("MERGE_ON_READ", 6, marks=pytest.mark.exhaustive)]
)
def test_cleaning_removes_files_that_a_fenced_writer_wrote_after_the_watch(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch, table_type: str, version: int
) -> None:
    options = write_a_day(spark, base, table_type=table_type, version=version, metadata=False)
    before = tables.snapshot(spark, base)
    fenced = fence_a_writer(spark, base, options)
    # Tasks that were running during the rollback leave a marker first, and then the file.
    model = next(base.glob("2026-01-01/*.parquet"))
    markers = base / ".hoodie" / ".temp" / fenced
    late = [model.with_name(f"0000000{number}-late-0_0-0-0_{fenced}.parquet") for number in range(2)]
    for each in late:
        marker = markers / "2026-01-01" / f"{each.name}.marker.CREATE"
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()

    # The second one's writer is slow.
    for each in late:
        shutil.copy(model, each)
        details = run_job(spark, base, "cleaning", {"retain": 5}).details
        assert details["late_files_deleted"] == 1
        assert not each.exists()
        assert markers.exists()

    monkeypatch.setattr("jobs.protocol.writers.ENDED_AFTER", timedelta(0))
    assert run_job(spark, base, "cleaning", {"retain": 5}).details["late_files_deleted"] == 0
    assert not markers.exists()
    assert proved(spark, base, 8) == before


@pytest.mark.exhaustive
def test_cleaning_removes_files_whose_markers_a_timeline_server_wrote_after_the_rollback(
    spark: SparkSession, base: Path
) -> None:
    options = tables.write_table(spark, base)
    before = tables.snapshot(spark, base)
    fenced = fence_a_writer(spark, base, options)
    model = next(base.glob("2026-01-01/*.parquet"))
    late = model.with_name(f"00000001-late-0_0-0-0_{fenced}.parquet")
    shutil.copy(model, late)
    direct = late.with_name(f"00000002-late-0_0-0-0_{fenced}.parquet")
    shutil.copy(model, direct)
    # Such markers are the default of Spark's writers. If the timeline server goes on after a rollback has deleted all
    # of them, it writes its files of markers again, but not the file that names the type of the markers.
    markers = base / ".hoodie" / ".temp" / fenced / "MARKERS3"
    markers.parent.mkdir(parents=True, exist_ok=True)
    markers.write_text(f"2026-01-01/{late.name}.marker.CREATE\n")
    (markers.parent / "2026-01-01").mkdir()
    (markers.parent / "2026-01-01" / f"{direct.name}.marker.CREATE").touch()

    assert run_job(spark, base, "cleaning", {"retain": 5}).details["late_files_deleted"] == 2

    assert not late.exists()
    assert not direct.exists()
    assert proved(spark, base, 8) == before


def executed_again(client: WriteClient) -> tuple[str, Any]:
    """Returns a compaction that was begun, rolled back and executed, but not committed yet."""
    plan = client.schedule_compaction()
    assert plan is not None
    client.begin_compaction(plan)
    # The next executor rolls back the existing files.
    client.forget_heartbeat(plan)
    begun = client.begin_compaction(plan)
    client.execute_compaction(begun)
    return plan, begun


@pytest.mark.exhaustive
def test_cleaning_leaves_a_plan_alone_that_was_rolled_back_and_is_executed_again(
    spark: SparkSession, base: Path
) -> None:
    tables.write_table(spark, base, table_type="MERGE_ON_READ", updates=1, metadata=False)
    before = tables.snapshot(spark, base)
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK, DUE) as client:
        plan, begun = executed_again(client)
        written = set(base.glob(f"*/*_{plan}.parquet"))
        assert written
        assert list(base.glob(".hoodie/timeline/*.rollback"))

        details = run_job(spark, base, "cleaning", {"retain": 5}).details

        assert details["late_files_deleted"] == 0
        assert set(base.glob(f"*/*_{plan}.parquet")) == written
        client.commit_compaction(plan, begun)
    assert proved(spark, base, 4) == before


@pytest.mark.exhaustive
def test_cleaning_leaves_the_files_of_such_a_plan_alone_when_it_was_archived_before_its_rollback(
    spark: SparkSession, base: Path
) -> None:
    options = tables.write_table(spark, base, table_type="MERGE_ON_READ", updates=1, metadata=False)
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK, DUE) as client:
        plan, begun = executed_again(client)
        client.commit_compaction(plan, begun)
    written = set(base.glob(f"*/*_{plan}.parquet"))
    assert written
    archiving = {
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.archive.automatic": "true",
    }
    for ts in range(2, 7):
        tables.upsert(tables.rows(spark, 0, 20, ts=ts), base, options | archiving)
    assert not list(base.glob(f".hoodie/timeline/{plan}*"))
    assert list(base.glob(".hoodie/timeline/*.rollback"))
    before = tables.snapshot(spark, base)
    # A worker that dies between its commit and the removal of its markers leaves these files.
    for path in written:
        marker = base / ".hoodie" / ".temp" / plan / path.parent.name / f"{path.name}.marker.MERGE"
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()

    assert run_job(spark, base, "cleaning", {"retain": 5}).details["late_files_deleted"] == 0

    assert set(base.glob(f"*/*_{plan}.parquet")) == written
    assert proved(spark, base, 4) == before


def log_files(base: Path) -> set[Path]:
    return {path for path in base.glob("*/.*.log.*") if path.suffix != ".crc"}


@pytest.mark.exhaustive
def test_logs_that_are_named_alike_are_told_by_their_blocks(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, table_type="MERGE_ON_READ", version=6, metadata=False, updates=1)
    before, logs = tables.snapshot(spark, base), log_files(base)
    assert logs
    # The write was rolled back and continued nevertheless, so its files are late.
    tables.upsert(tables.rows(spark, 0, 600, ts=5), base, options)
    late = log_files(base) - logs
    kept = {path: path.read_bytes() for path in late}
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK) as client:
        undone = max(path.name.partition(".")[0] for path in base.glob(".hoodie/*.deltacommit"))
        # Our code does not change a completed instant.
        client._client.rollback(undone)
    for path, content in kept.items():
        path.write_bytes(content)
    assert late
    assert not any(undone in path.name for path in late)
    # A writer that started again may write logs with the names of the rolled-back write's logs.
    for path in logs | late:
        marker = base / ".hoodie" / ".temp" / undone / path.parent.name / f"{path.name}.marker.APPEND"
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()

    details = run_job(spark, base, "cleaning", {"retain": 5}).details

    assert details["late_files_deleted"] == len(late)
    assert late & log_files(base) == set()
    assert logs <= log_files(base)
    assert proved(spark, base, 4) == before


@pytest.mark.parametrize("metadata", [pytest.param(False, marks=pytest.mark.exhaustive), True])
def test_a_file_that_a_fenced_writer_has_announced_is_removed_also_when_it_appears_late(
    spark: SparkSession, base: Path, metadata: bool
) -> None:
    options = write_a_day(spark, base, metadata=metadata)
    before = tables.snapshot(spark, base)
    frame = tables.rows(spark, 600, 1000, ts=5).withColumn("dt", F.lit("2026-02-01"))
    writer = HeldWriter(frame, base, options).start()
    # An object store has the marker, and the file when it is complete.
    (fenced,) = writer.pending()
    model = next(base.glob("2026-01-01/*.parquet"))
    late = model.with_name(f"00000000-late-0_0-0-0_{fenced}.parquet")
    marker = base / ".hoodie" / ".temp" / fenced / "2026-01-01" / f"{late.name}.marker.CREATE"
    marker.parent.mkdir(parents=True)
    marker.touch()

    def the_file_appears() -> None:
        assert not marker.exists()
        shutil.copy(model, late)
        writer.end()

    params = {"factor": 2, "on_active_writers": "fence", "settle_seconds": 1}
    result = run_job(spark, base, "bucket_expansion", params, context=At("watching writers", the_file_appears))

    assert result.details["fenced"] == [fenced]
    assert writer.error is not None
    assert [path for path in base.rglob("*") if fenced in path.name and ".hoodie" not in path.parts] == []
    # The writer is slow: the file appears again after the job, without a marker of the writer.
    shutil.copy(model, late)
    assert run_job(spark, base, "cleaning", {"retain": 5}).details["late_files_deleted"] == 1
    assert not late.exists()
    assert proved(spark, base, 8) == before
    # The writer's retry reads the new number.
    tables.upsert(frame, base, options)
    assert len(proved(spark, base, 8)) == 460
