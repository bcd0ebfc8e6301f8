"""An audit names what somebody has changed on the storage by hand, although readers read the table without an error."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import RefusedError
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.services.checks.finding import Examined
from jobs.services.compaction import DUE
from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
# A table keeps the commits since the latest compaction of its metadata table.
ARCHIVED = {"hoodie.metadata.compact.max.delta.commits": "2"}


def found(spark: SparkSession, base: Path, kind: str = "audit", *, rows: bool = False) -> dict[str, dict[str, Any]]:
    """Returns the findings by type, after it has asserted that all checks were made."""
    details = run_job(spark, base, kind, {"rows": rows}).details
    assert details["unchecked"] == [], details
    assert details["clean" if kind == "audit" else "healthy"] == (not details["findings"]), details
    return {each["type"]: each for each in details["findings"]}


def without_checksum(path: Path) -> Path:
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    return path


def properties(base: Path, **changed: str) -> None:
    path = without_checksum(base / ".hoodie" / "hoodie.properties")
    lines = [line for line in path.read_text().splitlines() if line.split("=")[0].replace(".", "_") not in changed]
    path.write_text("\n".join([*lines, *(f"{name.replace('_', '.')}={value}" for name, value in changed.items()), ""]))


MODE = "hoodie_record_merge_mode"


@pytest.mark.parametrize(
    ("version", "changed"),
    [
        (8, {MODE: "COMMIT_TIME_ORDERING"}),
        *(
            pytest.param(*each, marks=pytest.mark.exhaustive)
            for each in [
                (8, {MODE: ""}),
                (9, {MODE: ""}),
                (9, {MODE: "CUSTOM"}),
                (9, {"hoodie_table_ordering_fields": "nothing"}),
                (6, {"hoodie_table_ordering_fields": "nothing"}),
                (6, {MODE: "COMMIT_TIME_ORDERING"}),
            ]
        ),
    ],
)
def test_properties_that_contradict_each_other_about_merges_are_found(
    spark: SparkSession, base: Path, version: int, changed: dict[str, str]
) -> None:
    tables.write_table(spark, base, count=60, partitioned=False, updates=1, version=version)
    before = tables.snapshot(spark, base)
    kept = (base / ".hoodie" / "hoodie.properties").read_text()
    properties(base, **changed)
    for kind, params in (("compaction", {}), ("clustering", {"sort_by": ["city"]}), ("repair", {})):
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, kind, params)
        assert "merge-rules-unclear" in [each.type for each in refused.value.reasons], kind
    findings = run_job(spark, base, "audit", {"rows": False}).details["findings"]
    assert "merge-rules-unclear" in [each["type"] for each in findings]
    without_checksum(base / ".hoodie" / "hoodie.properties").write_text(kept)
    assert tables.snapshot(spark, base) == before
    run_job(spark, base, "compaction")
    assert tables.snapshot(spark, base) == before


@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.exhaustive)])
def test_a_log_that_is_cut_off_in_the_midst_of_a_block_is_found(spark: SparkSession, base: Path, version: int) -> None:
    tables.write_table(spark, base, count=60, partitioned=False, updates=1, version=version)
    before = tables.snapshot(spark, base)
    log = without_checksum(max(base.glob(".0000*.log.*_*-*-*")))
    whole = log.read_bytes()
    log.write_bytes(whole[: len(whole) // 2])
    # Hudi takes the block for one of a writer that died, and skips it without an error.
    assert len(tables.snapshot(spark, base)) == len(before)
    assert tables.snapshot(spark, base) != before

    assert found(spark, base)["file-sizes-differ"]["detail"].startswith(f"{log.name} has {len(whole) // 2} bytes, and ")
    # The content shows it, too, where the commit of the file is archived.
    others = [min(base.glob(".0000*.log.*_*-*-*")), min(base.glob("*.parquet"))]
    (short := base / "short.parquet").write_bytes(others[1].read_bytes()[:-10])
    with ExitStack() as opened:
        examined = Examined(hudi_table(spark, base, INDEX), opened)
        assert [examined.is_cut_off(path.name) for path in (log, short, *others)] == [True, True, False, False]
    short.unlink()
    log.write_bytes(whole)
    assert found(spark, base, rows=True) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_a_base_file_that_was_replaced_by_its_earlier_version_is_found(
    spark: SparkSession, base: Path, version: int
) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False, table_type=COW, version=version)
    tables.upsert(tables.rows(spark, 0, 60, ts=5), base, options)
    older, newer = sorted(base.glob("00000001-*.parquet"), key=lambda path: path.name.rpartition("_")[2])
    shutil.copy(older, without_checksum(newer))
    # The rows are as many as the commit says.
    assert {row["ts"] for row in tables.collected(spark, base).rows} == {0, 5}
    assert newer.name in found(spark, base)["file-sizes-differ"]["detail"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_a_merge_on_read_table_that_was_declared_copy_on_write_is_found(
    spark: SparkSession, base: Path, version: int
) -> None:
    tables.write_table(spark, base, count=60, partitioned=False, updates=1, version=version)
    before = tables.snapshot(spark, base)
    assert found(spark, base) == {}
    properties(base, hoodie_table_type=COW)
    assert tables.snapshot(spark, base) != before
    assert "logs-on-copy-on-write" in found(spark, base, rows=True)
    properties(base, hoodie_table_type=MOR)
    assert tables.snapshot(spark, base) == before
    assert found(spark, base, rows=True) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_a_deleted_file_of_a_savepoint_is_found(spark: SparkSession, base: Path, version: int) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False, table_type=COW, version=version)
    saved = run_job(spark, base, "savepoint").details["savepoint"]
    tables.upsert(tables.rows(spark, 0, 60, ts=5), base, options)
    assert found(spark, base) == {}
    older = min(base.glob("00000001-*.parquet"), key=lambda path: path.name.rpartition("_")[2])
    without_checksum(older).unlink()
    for kind in ("audit", "diagnosis"):
        assert found(spark, base, kind)["savepoint-files-gone"]["detail"] == f"{older.name} of {saved}"
    run_job(spark, base, "savepoint", {"action": "delete", "instant": saved})
    assert found(spark, base, rows=True) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_archived", [True, False])
@pytest.mark.parametrize("metadata", [True, False])
def test_a_partition_that_was_copied_under_another_name_is_found(
    spark: SparkSession, base: Path, *, metadata: bool, is_archived: bool
) -> None:
    options = tables.write_table(spark, base, count=60, table_type=COW, metadata=metadata, **ARCHIVED)
    first = hudi_table(spark, base, INDEX).commits()[0].write.instant
    if is_archived:
        for ts in range(1, 6):
            tables.upsert(tables.rows(spark, 0, 1, ts=ts), base, options)
        run_job(spark, base, "archival", {"retain": 2})
        assert first < hudi_table(spark, base, INDEX).commits()[0].write.instant
    assert found(spark, base) == {}
    copied = shutil.copytree(base / "2026-01-02", base / "2026-01-02.bak")
    assert len(tables.snapshot(spark, base, metadata=False)) == 80
    stray = found(spark, base, rows=True).get("files-without-commit")
    if is_archived and not metadata:
        # Nothing tells which of the files is the copy.
        assert stray is None
        assert found(spark, base, rows=True).keys() == {"duplicate-keys"}
        return
    assert stray
    assert stray["detail"].count("2026-01-02.bak/") == 4
    # A rebuild of the metadata table would show the copied rows to all readers.
    assert found(spark, base).keys() == {"files-without-commit"}
    shutil.rmtree(copied)
    assert found(spark, base, rows=True) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 9), (MOR, 6)])
def test_properties_that_name_another_format_of_base_files_are_found(
    spark: SparkSession, base: Path, table_type: str, version: int
) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False, table_type=table_type, version=version)
    tables.upsert(tables.rows(spark, 0, 20, ts=5), base, options)
    if table_type == MOR:
        # While a compaction is pending, the slice of later logs has no base file.
        with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK, DUE) as client:
            assert client.schedule_compaction()
        tables.upsert(tables.rows(spark, 0, 1, ts=6), base, options)
        assert found(spark, base) == {}
        run_job(spark, base, "compaction")
    before = tables.snapshot(spark, base)
    assert found(spark, base) == {}
    kept = (base / ".hoodie" / "hoodie.properties").read_bytes()
    properties(base, hoodie_table_base_file_format="ORC")
    assert tables.snapshot(spark, base) != before
    assert found(spark, base)["commit-files-hidden"]["detail"].count(".parquet of ") == 4
    without_checksum(base / ".hoodie" / "hoodie.properties").write_bytes(kept)
    assert found(spark, base, rows=True) == {}


@pytest.mark.parametrize("metadata", [True, pytest.param(False, marks=pytest.mark.exhaustive)])
def test_a_commit_whose_files_were_deleted_from_the_timeline_is_found(
    spark: SparkSession, base: Path, *, metadata: bool
) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False, metadata=metadata, table_type=COW)
    tables.upsert(tables.rows(spark, 0, 60, ts=5), base, options)
    last = hudi_table(spark, base, INDEX).commits()[-1].write.instant
    kept = {path: path.read_bytes() for path in (base / ".hoodie" / "timeline").glob(f"{last}*")}
    assert len(kept) == 3
    for path in kept:
        without_checksum(path).unlink()
    assert {row["ts"] for row in tables.collected(spark, base).rows} == {0}
    lost = found(spark, base)["commit-missing"]
    assert lost["detail"] == f"{last} (4 files)"
    for path, content in kept.items():
        path.write_bytes(content)
    assert found(spark, base, rows=True) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_a_cut_off_log_of_an_archived_commit_is_found(spark: SparkSession, base: Path, version: int) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False, updates=1, version=version, **ARCHIVED)
    log = min(base.glob(".00000001-*.log.*_*-*-*"))
    for ts in range(6, 11):
        tables.upsert(tables.rows(spark, 0, 1, ts=ts), base, options)  # in bucket 0
    run_job(spark, base, "archival", {"retain": 2})
    assert found(spark, base) == {}
    before = tables.snapshot(spark, base)
    whole = without_checksum(log).read_bytes()
    log.write_bytes(whole[: len(whole) // 2])
    assert tables.snapshot(spark, base) != before
    assert found(spark, base)["file-sizes-differ"]["detail"].startswith(f"{log.name} is cut off")
    log.write_bytes(whole)
    assert found(spark, base, rows=True) == {}


@pytest.mark.exhaustive
def test_properties_that_name_another_layout_of_the_timeline_are_found(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=60, partitioned=False)
    kept = (base / ".hoodie" / "hoodie.properties").read_bytes()
    properties(base, hoodie_table_version="6", hoodie_timeline_layout_version="1")
    assert tables.snapshot(spark, base, metadata=False) == []
    assert "timeline-of-another-layout" in found(spark, base)
    without_checksum(base / ".hoodie" / "hoodie.properties").write_bytes(kept)
    assert found(spark, base, rows=True) == {}


@pytest.mark.exhaustive
def test_a_table_whose_rows_nobody_can_count_has_the_findings_of_the_other_checks(
    spark: SparkSession, base: Path
) -> None:
    tables.write_table(spark, base, count=60, partitioned=False)
    file = without_checksum(next(base.glob("*.parquet")))
    file.write_bytes(file.read_bytes()[:-9])
    properties(base, hoodie_table_partition_fields="dt")
    details = run_job(spark, base, "audit").details
    assert {"rows", "rows in buckets"} <= {each["check"] for each in details["unchecked"]}
    assert {"checks-not-made", "file-sizes-differ"} <= {each["type"] for each in details["findings"]}
