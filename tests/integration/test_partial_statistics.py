"""Statistics that lack a column of some files or partitions hide rows from queries (Hudi 1.2); those that lack whole
files, or all partitions, do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.hudi import column_stats
from tests.integration import indexed, tables
from tests.integration.long_session import LongSession
from tests.integration.run import hudi_table, run_job
from tests.integration.test_evolved_schemas import ON_READ, RENAME, altering
from tests.integration.test_index_builds import CONDITIONS, COUNT, COW, MOR, job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.hudi.records import FileSlice

ENABLED = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.parquet.small.file.limit": "0"}
BOTH, ALONE = "fare >= -9 and city >= 0", "fare >= -9"


def hidden(spark: SparkSession, base: Path, *conditions: str) -> list[str]:
    """Returns with which of these conditions a query finds other rows than a scan."""
    session = spark.newSession()

    def read(*, by_statistics: bool) -> DataFrame:
        skipping = {"hoodie.enable.data.skipping": str(by_statistics).lower(), ON_READ: "true"}
        return session.read.format("hudi").options(**skipping).load(str(base))

    (scanned,) = read(by_statistics=False).select(*(F.count_if(F.expr(each)) for each in conditions)).collect()
    found = zip(conditions, scanned, strict=True)
    return [each for each, number in found if read(by_statistics=True).where(each).count() != number]


def hiding(spark: SparkSession, base: Path) -> dict[str, set[str]]:
    """Returns the columns of each index by which rows are hidden, as a verification finds them."""
    differences = run_job(spark, base, "index", {}, index=None).details["differences"]
    assert [each["missing"] for each in differences] == [[] for _ in differences]
    return {each["partition"]: {text.partition(" ")[0] for text in each["hiding"]} for each in differences}


def findings(spark: SparkSession, base: Path) -> dict[str, dict[str, Any]]:
    audit = run_job(spark, base, "audit", index=None).details
    assert audit["clean"] is not bool(audit["findings"])
    return {each["type"]: each for each in audit["findings"]}


@pytest.mark.parametrize(
    ("table_type", "partitioned", "is_short"),
    [
        (MOR, True, True),
        *(
            pytest.param(kind, each, False, marks=pytest.mark.exhaustive)
            for kind in (MOR, COW)
            for each in (True, False)
        ),
    ],
)
def test_a_writer_with_other_columns_of_statistics_hides_rows(
    spark: SparkSession, base: Path, table_type: str, *, partitioned: bool, is_short: bool
) -> None:
    """Hudi builds no entries for the columns that the second writer adds, except of the files that it writes."""
    shape = {"table_type": table_type, "partitioned": partitioned}
    options = tables.write_table(spark, base, count=COUNT, updates=1, num_buckets=None, **shape)
    if not partitioned:  # Files that the statements do not write.
        tables.upsert(tables.rows(spark, COUNT, 2 * COUNT), base, {**options, "hoodie.parquet.small.file.limit": "0"})
    done = job(spark, base, "build", "column_stats")
    more = {each["name"]: each["value"] for each in done["writer_options"]}
    statements = LongSession(spark, base, tables.LOCK)

    if not is_short:  # No partition has an entry of the new columns yet, because no row was changed.
        statements.run("UPDATE {table} SET fare = -1 WHERE id = 'nobody'")
        assert hidden(spark, base, BOTH, ALONE) == [BOTH]

    # One partition has entries now.
    statements.run("UPDATE {table} SET fare = -1 WHERE id = 'k7'")
    assert hidden(spark, base, BOTH, ALONE) == ([BOTH, ALONE] if partitioned else [BOTH])
    found = hiding(spark, base)
    assert found.keys() == ({"column_stats", "partition_stats"} if partitioned else {"column_stats"})
    assert all({"fare", "note", "ts"} <= columns and "city" not in columns for columns in found.values())
    incomplete = findings(spark, base)["statistics-incomplete"]
    assert "of the 3 partitions" in incomplete["detail"] or not partitioned

    cure = incomplete["cure"]
    run_job(spark, base, cure["kind"], cure["params"], index=None, declared={"writers_stopped": True})
    assert hidden(spark, base, BOTH, ALONE) == []
    assert findings(spark, base) == {}
    if is_short:
        return

    # A writer with the printed options takes the columns out of the index, but Hudi leaves their entries there.
    newer = tables.rows(spark, 2 * COUNT, 2 * COUNT + 10, ts=5).withColumn("dt", F.lit("2027-01-01"))
    tables.upsert(newer, base, {**options, **more})
    assert hidden(spark, base, BOTH, ALONE, "fare < -1000") == ([ALONE] if partitioned else [])
    assert "fare" in hiding(spark, base)["partition_stats"] if partitioned else hiding(spark, base) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("partitioned", [True, False])
def test_a_column_that_was_added_later_hides_rows_without_it(
    spark: SparkSession, tmp_path: Path, *, partitioned: bool
) -> None:
    base, condition = tmp_path / "trips", "added IS NULL AND city >= 0"
    shape = {"num_buckets": None, "table_type": COW, "partitioned": partitioned}
    options = tables.write_table(spark, base, count=COUNT, **shape, **ENABLED)
    assert findings(spark, base) == {}
    added = F.when(F.col("ts") >= 0, F.lit(5))
    newer = tables.rows(spark, COUNT, COUNT + 20, ts=5).where("dt = '2026-01-01'").withColumn("added", added)
    tables.upsert(newer, base, options)

    assert hidden(spark, base, condition, "added = 5") == [condition]
    assert hiding(spark, base)["column_stats"] == {"added"}
    assert findings(spark, base).keys() == {"statistics-of-added-column"}
    # A rebuilt metadata table lacks the same entries, so the finding names no rebuild as its cure.
    run_job(spark, base, "metadata_table", {"action": "rebuild"}, index=None, declared={"writers_stopped": True})
    assert hidden(spark, base, condition) == [condition]
    assert findings(spark, base)["statistics-of-added-column"]["cure"] is None

    job(spark, base, "drop", "column_stats")
    assert (hidden(spark, base, condition), findings(spark, base)) == ([], {})


@pytest.mark.exhaustive
def test_a_renamed_column_hides_rows_of_files_with_its_old_name(spark: SparkSession, base: Path) -> None:
    shape = {"num_buckets": None, "table_type": COW, "partitioned": False}
    options = tables.write_table(spark, base, count=COUNT, **shape, **ENABLED)
    altering(spark, base, RENAME)()
    newer = tables.rows(spark, COUNT, COUNT + 20, ts=5).withColumnRenamed("city", "town")
    tables.upsert(newer, base, {**options, ON_READ: "true"})

    assert hidden(spark, base, "town >= 0 AND ts >= 0", "town >= 0") == ["town >= 0 AND ts >= 0"]
    found = findings(spark, base)
    assert found.keys() == {"statistics-of-added-column"}
    assert "renamed" in found["statistics-of-added-column"]["effect"]
    job(spark, base, "drop", "column_stats")
    assert (hidden(spark, base, "town >= 0 AND ts >= 0"), findings(spark, base)) == ([], {})


@pytest.mark.exhaustive
def test_statistics_that_lack_all_partitions_hide_nothing(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=COUNT, num_buckets=None, table_type=COW)
    job(spark, base, "build", "column_stats")
    for file in (base / ".hoodie" / "metadata" / "partition_stats").glob("*.hfile"):
        file.unlink()
    (found,) = run_job(spark, base, "index", {}, index=None).details["differences"]
    assert (found["partition"], len(found["missing"]), found["hiding"]) == ("partition_stats", 3, [])
    assert hidden(spark, base, *CONDITIONS) == []


@pytest.mark.exhaustive
def test_statistics_that_a_session_builds_for_the_first_time_are_complete(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=COUNT, updates=1, num_buckets=None, table_type=MOR)
    statements = LongSession(spark, base, tables.LOCK)
    for number in (1, 2):
        statements.run(f"UPDATE {{table}} SET fare = -{number} WHERE id = 'k{number}'")
        assert hiding(spark, base) == {}
        # The next write drops them again.
        tables.upsert(tables.rows(spark, COUNT, COUNT + number, ts=number), base, options)
    assert run_job(spark, base, "index", {}, index=None).details["compared"] == []
    assert indexed.found_by_indexes(spark, base, CONDITIONS)


def cut(base: Path, slices: list[FileSlice]) -> None:
    """Damages the base files of these slices, so that no reader can open them."""
    for item in slices:
        Path(f"{base}/{item.partition}/{item.base_name}").write_bytes(b"PAR1")


@pytest.mark.parametrize("table_type", [MOR, pytest.param(COW, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("named", ["false", pytest.param("true", marks=pytest.mark.exhaustive)])
def test_the_comparison_of_some_partitions_opens_no_file_of_others(
    request: pytest.FixtureRequest, table_type: str, named: str
) -> None:
    spark: SparkSession = request.getfixturevalue("spark")
    monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    base: Path = request.getfixturevalue("tmp_path") / "trips"
    shape = {**ENABLED, "hoodie.datasource.write.hive_style_partitioning": named}
    tables.write_table(spark, base, count=30, updates=1, table_type=table_type, num_buckets=2, **shape)
    table = hudi_table(spark, base, None)
    slices = table.file_slices()
    monkeypatch.setattr(column_stats, "_MOST_FILES", 1)
    first = min(item.partition for item in slices)
    cut(base, [item for item in slices if item.partition != first])
    found = column_stats.of_partitions(table, slices)
    assert (found.places, found.hiding, found.lacking, found.unindexed) == (1, {}, {}, [])

    # The partition is larger than what may be read, so one of its files is read.
    monkeypatch.setattr(column_stats, "_MOST_BYTES", 1)
    without_logs = [replace(item, log_files=()) for item in slices if item.partition == first]
    cut(base, without_logs[1:])
    found = column_stats.of_partitions(table, without_logs)
    assert (found.places, found.hiding, found.lacking, found.unindexed) == (1, {}, {}, [])


@pytest.mark.parametrize("table_type", [COW, pytest.param(MOR, marks=pytest.mark.exhaustive)])
def test_an_audit_compares_files_in_which_a_column_has_different_types(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    base = tmp_path / "trips"
    options = tables.write_table(spark, base, count=30, table_type=table_type, num_buckets=1, **ENABLED)
    wide = tables.rows(spark, 0, 2, ts=1).withColumn("city", F.expr("city + 5000000000"))
    tables.upsert(wide, base, options)
    if table_type == MOR:
        run_job(spark, base, "compaction", index=None)
    table = hudi_table(spark, base, None)
    found = column_stats.of_files(table, table.file_slices())
    assert (found.places, found.hiding, found.lacking, found.added) == (3, {}, {}, {})
    audit = run_job(spark, base, "audit", index=None).details
    assert (audit["findings"], audit["unchecked"]) == ([], [])
