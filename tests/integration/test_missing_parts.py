"""Tests tables with a missing part other than data files: the diagnosis names part and remedy, jobs are refused before
they plan anything, and the remedy keeps all rows."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import RefusedError
from jobs.table_errors import MetadataTableError, TableGoneError
from tests.integration import indexed, tables
from tests.integration.run import run_job

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

STOPPED = {"writers_stopped": True}
WRITING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("compaction", {}),
    ("clustering", {"sort_by": ["city"]}),
    ("cleaning", {"policy": "KEEP_LATEST_COMMITS", "retain": 1}),
    ("archival", {"retain": 2}),
)


def write(spark: SparkSession, base: Path, **shape: Any) -> dict[str, str]:
    return tables.write_table(spark, base, count=40, updates=2, **{"num_buckets": None, **shape})


def by_both_readers(spark: SparkSession, base: Path) -> list[str]:
    found = tables.snapshot(spark, base, metadata=False)
    assert tables.snapshot(spark, base, metadata=True) == found
    return found


def state_of(base: Path) -> dict[str, int]:
    """Returns all files of the table with their sizes."""
    return {str(path.relative_to(base)): path.stat().st_size for path in base.rglob("*") if path.is_file()}


def findings(spark: SparkSession, base: Path) -> dict[str, dict[str, Any]]:
    details = run_job(spark, base, "diagnosis", index=None).details
    assert details["unchecked"] == []
    return {each["type"]: each for each in details["findings"]}


def refused_by_all(spark: SparkSession, base: Path, kinds: Any = WRITING) -> set[str]:
    """Returns the types of the refusals of these jobs and their dry runs, and asserts that nothing was written."""
    before = state_of(base)
    types = set()
    for kind, params in kinds:
        planned = run_job(spark, base, kind, params, index=None, dry_run=True)
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, kind, params, index=None)
        assert [each.to_json() for each in refused.value.reasons] == planned.details["refusals"]
        assert planned.details["nothing_to_do"] is False
        types |= {each.type for each in refused.value.reasons}
    assert state_of(base) == before
    return types


def works(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    """Asserts that every service runs and keeps the rows, and that a writer can continue."""
    expected = by_both_readers(spark, base)
    kinds = WRITING if options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ" else WRITING[1:]
    for kind, params in kinds:
        run_job(spark, base, kind, params, index=None)
        assert tables.snapshot(spark, base, metadata=True) == expected, kind
    assert by_both_readers(spark, base) == expected
    require_services_work(spark, base, options)


def require_services_work(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    tables.upsert(tables.rows(spark, 30, 50, ts=9), base, options)
    assert len(by_both_readers(spark, base)) == 50
    assert run_job(spark, base, "audit", index=None).details["clean"]


def delete_metadata_table(metadata: Path) -> None:
    shutil.rmtree(metadata)


def delete_list_of_files(metadata: Path) -> None:
    shutil.rmtree(metadata / "files")


def delete_files_of_the_list(metadata: Path) -> None:
    for path in (metadata / "files").iterdir():
        if ".hoodie_partition_metadata" not in path.name:
            path.unlink()


def delete_its_instants(metadata: Path) -> None:
    for path in (metadata / ".hoodie").rglob("*deltacommit*"):
        path.unlink()


def delete_its_properties(metadata: Path) -> None:
    for path in (metadata / ".hoodie").glob("*hoodie.properties*"):
        path.unlink()


@pytest.mark.parametrize(
    ("damage", "version", "table_type", "partitioned"),
    [
        (delete_metadata_table, 9, "MERGE_ON_READ", False),
        *(
            pytest.param(damage, version, table_type, True, marks=pytest.mark.exhaustive)
            for damage, version, table_type in (
                (delete_metadata_table, 9, "MERGE_ON_READ"),
                (delete_list_of_files, 9, "MERGE_ON_READ"),
                (delete_files_of_the_list, 9, "MERGE_ON_READ"),
                (delete_its_instants, 9, "MERGE_ON_READ"),
                (delete_its_properties, 9, "COPY_ON_WRITE"),
                (delete_metadata_table, 8, "COPY_ON_WRITE"),
                (delete_metadata_table, 6, "MERGE_ON_READ"),
                (delete_metadata_table, 6, "COPY_ON_WRITE"),
                (delete_list_of_files, 6, "MERGE_ON_READ"),
                (delete_its_instants, 6, "MERGE_ON_READ"),
                (delete_its_properties, 6, "MERGE_ON_READ"),
            )
        ),
    ],
)
def test_a_missing_or_incomplete_metadata_table_is_reported_and_rebuilt(
    spark: SparkSession,
    base: Path,
    damage: Callable[[Path], None],
    version: int,
    table_type: str,
    *,
    partitioned: bool,
) -> None:
    options = write(spark, base, version=version, table_type=table_type, partitioned=partitioned)
    expected = by_both_readers(spark, base)
    damage(base / ".hoodie" / "metadata")
    found = findings(spark, base)["metadata-table-gone"]
    assert found["cure"] == {"kind": "metadata_table", "params": {"action": "rebuild"}}
    audit = run_job(spark, base, "audit", index=None).details
    assert (audit["rows"], audit["duplicates"], audit["clean"]) == (40, 0, False)
    kinds = WRITING if table_type == "MERGE_ON_READ" else WRITING[1:]
    assert refused_by_all(spark, base, kinds) == {"metadata-table-gone"}
    run_job(spark, base, found["cure"]["kind"], found["cure"]["params"], index=None, declared=STOPPED)
    assert by_both_readers(spark, base) == expected
    assert findings(spark, base) == {}
    if partitioned:
        works(spark, base, options)
    else:
        require_services_work(spark, base, options)


@pytest.mark.exhaustive
def test_a_file_of_the_metadata_table_that_is_gone_is_found(spark: SparkSession, base: Path) -> None:
    write(spark, base)
    max((base / ".hoodie" / "metadata" / "files").glob(".files-*.log.*")).unlink()
    details = run_job(spark, base, "diagnosis", {"rows": False}, index=None).details
    found = [each for each in details["findings"] if each["type"] == "metadata-table-gone"]
    assert [each["cure"]["kind"] for each in found] == ["metadata_table"]


@pytest.mark.exhaustive
def test_an_index_that_hudis_own_restore_has_left_without_files_is_found_and_cured(
    spark: SparkSession, base: Path
) -> None:
    """Hudi's procedure builds column statistics by default, and then takes their first commit back."""
    options = write(spark, base, partitioned=False)
    expected = by_both_readers(spark, base)
    saved = run_job(spark, base, "savepoint", index=None).details["savepoint"]
    tables.upsert(tables.rows(spark, 0, 10, ts=8), base, options)
    spark.sql(f"CALL rollback_to_savepoint(path => '{base}', instant_time => '{saved}')").collect()
    assert by_both_readers(spark, base) == expected
    found = findings(spark, base)["metadata-table-gone"]
    assert found["detail"] == "column_stats"
    with pytest.raises(MetadataTableError):
        run_job(spark, base, "compaction", index=None)
    run_job(spark, base, found["cure"]["kind"], found["cure"]["params"], index=None, declared=STOPPED)
    assert findings(spark, base) == {}
    works(spark, base, options)


@pytest.mark.exhaustive
@pytest.mark.parametrize("partitioned", [True, False])
def test_a_metadata_table_is_not_built_if_a_listing_would_miss_a_partition(
    spark: SparkSession, base: Path, partitioned: bool
) -> None:
    write(spark, base, partitioned=partitioned)
    expected = by_both_readers(spark, base)
    gone = min(path for path in base.rglob(".hoodie_partition_metadata") if ".hoodie/" not in str(path))
    content = gone.read_bytes()
    gone.unlink()
    assert tables.snapshot(spark, base, metadata=True) == expected
    assert "partition-metadata-gone" in findings(spark, base)
    rebuild = {"action": "rebuild"}
    planned = run_job(spark, base, "metadata_table", rebuild, index=None, declared=STOPPED, dry_run=True)
    assert "partition-metadata-gone" in {each["type"] for each in planned.details["refusals"]}
    # Without the metadata table, the job takes the partitions from the folders.
    delete_metadata_table(base / ".hoodie" / "metadata")
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "metadata_table", rebuild, index=None, declared=STOPPED)
    assert {each.type for each in refused.value.reasons} == {"partition-metadata-gone"}
    gone.write_bytes(content)
    run_job(spark, base, "metadata_table", rebuild, index=None, declared=STOPPED)
    # The tests above show that services and writers go on with a rebuilt table.
    assert by_both_readers(spark, base) == expected


def test_a_job_for_all_partitions_leaves_none_out(spark: SparkSession, base: Path) -> None:
    write(spark, base, metadata=False)
    gone, there, *_ = sorted(base.rglob(".hoodie_partition_metadata"))
    gone.unlink()
    assert refused_by_all(spark, base, WRITING[:1]) == {"partition-metadata-gone"}
    assert findings(spark, base).keys() == {"partition-metadata-gone"}
    shutil.copy(there, gone)
    assert findings(spark, base) == {}
    assert len(tables.snapshot(spark, base)) == 40


@pytest.mark.exhaustive
def test_missing_definitions_of_indexes_are_reported(spark: SparkSession, base: Path) -> None:
    index = {**indexed.GLOBAL, **indexed.STATISTICS, **indexed.FEW_FILES}
    write(spark, base, **index)
    expected = by_both_readers(spark, base)
    definitions = base / ".hoodie" / ".index_defs" / "index.json"
    content = definitions.read_bytes()
    definitions.unlink()
    definitions.with_name(f".{definitions.name}.crc").unlink(missing_ok=True)
    assert "index-definitions-gone" in findings(spark, base)
    assert refused_by_all(spark, base, WRITING[1:3]) == {"index-definitions-gone"}
    with pytest.raises(RefusedError):
        run_job(spark, base, "metadata_table", {"action": "rebuild"}, index=None, declared=STOPPED)
    definitions.write_bytes(content)
    assert findings(spark, base) == {}
    assert by_both_readers(spark, base) == expected


@pytest.mark.exhaustive
def test_missing_definitions_of_statistics_prevent_no_job(spark: SparkSession, base: Path) -> None:
    options = write(spark, base, **{"hoodie.metadata.index.column.stats.enable": "true"})
    shutil.rmtree(base / ".hoodie" / ".index_defs")
    assert "index-definitions-gone" in findings(spark, base)
    works(spark, base, options)
    assert findings(spark, base) == {}


@pytest.mark.exhaustive
def test_a_table_whose_properties_are_only_a_backup_is_served_and_reported(spark: SparkSession, base: Path) -> None:
    options = write(spark, base)
    expected = by_both_readers(spark, base)
    properties = base / ".hoodie" / "hoodie.properties"
    properties.rename(f"{properties}.backup")
    assert findings(spark, base).keys() == {"properties-only-as-backup"}
    for kind, params in WRITING:
        run_job(spark, base, kind, params, index=None)
        assert by_both_readers(spark, base) == expected, kind
    shutil.copy(f"{properties}.backup", properties)
    works(spark, base, options)


# Hudi tries for five seconds to read the properties.
@pytest.mark.parametrize("gone", ["hoodie.properties", pytest.param(".", marks=pytest.mark.exhaustive)])
def test_a_table_without_its_properties_counts_as_gone(spark: SparkSession, base: Path, gone: str) -> None:
    tables.write_table(spark, base, count=60, partitioned=False)
    path = base / ".hoodie" / gone
    if path.is_file():
        path.unlink()
    else:
        shutil.rmtree(path)
    with pytest.raises(TableGoneError):
        run_job(spark, base, "diagnosis", index=None)
