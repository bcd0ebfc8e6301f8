"""An audit finds values that readers by schema on read do not see, and nothing on healthy tables whose columns have
changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from jobs.errors import RefusedError
from jobs.format.schema_history import SchemaHistory
from jobs.hudi import plan_checks
from jobs.protocol import preflight
from tests.integration import tables
from tests.integration.run import run_job
from tests.integration.test_evolved_schemas import ON_READ, RENAME, altering, values
from tests.integration.writers import At

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
FLAT: dict[str, Any] = {"partitioned": False, "num_buckets": 2}
INDEX = BucketIndex(2, ("id",))
MISREAD, LOST = "columns-misread", "replacement-values-lost"
FORGOTTEN, GONE = "schema-on-read-forgotten", "renamed-columns-lost"


def found(spark: SparkSession, base: Path, kind: str = "audit", index: Any = INDEX) -> dict[str, str]:
    """Returns types and texts of the findings, after it has asserted that all checks were made."""
    details = run_job(spark, base, kind, index=index).details
    assert details["unchecked"] == []
    return {each["type"]: each["detail"] for each in details["findings"]}


def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets jobs rewrite files with old columns, as they did before they knew of schema on read."""
    monkeypatch.setattr(preflight, "columns_changed", lambda *_: [])
    monkeypatch.setattr(plan_checks, "history_of", lambda _: SchemaHistory())


def test_renamed_columns_without_values_are_found(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.write_table(spark, base, count=40, table_type=COW, **FLAT)
    altering(spark, base, RENAME)()
    assert found(spark, base) == {}
    as_before(monkeypatch)
    run_job(spark, base, "bucket_expansion", {"factor": 2}, index=INDEX)
    assert {town for _, town in values(spark, base, "town")} == {None}

    seen = found(spark, base)
    assert seen.keys() == {MISREAD, LOST}
    assert seen[MISREAD].count(": town (stored as city)") == 4
    assert seen[LOST].endswith(": town (0 for 40)")


SWAPPED = [f"RENAME COLUMN {old} TO {new}" for old, new in [("note", "x"), ("region", "note"), ("x", "region")]]
CHANGES = {
    "renamed": ([RENAME], ["town"], {MISREAD: "town (stored as city)", LOST: ": town (0 for 40)"}),
    "inside": (
        ["RENAME COLUMN items.element.a TO number"],
        ["items"],
        {MISREAD: "items.element.number (stored as items.element.a)", LOST: "items.element.number (0 for 40)"},
    ),
    "added again": (
        ["DROP COLUMN city", "ADD COLUMNS (city int)"],
        ["city"],
        {MISREAD: "values of another column)"},
    ),
    "given away": (
        [RENAME, "ADD COLUMNS (city int)"],
        ["town", "city"],
        {MISREAD: "values of another column), town (stored as city)", LOST: ": town (0 for 40)"},
    ),
    "swapped": (SWAPPED, ["note", "region"], {LOST: ": note (32 for 40)"}),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (COW, 6), (MOR, 9), (MOR, 6)])
def test_each_change_whose_values_were_lost_is_found(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, table_type: str, version: int, change: str
) -> None:
    spark, tmp_path = request.getfixturevalue("spark"), request.getfixturevalue("tmp_path")
    base = tmp_path / "trips"
    tables.write_table(spark, base, count=40, table_type=table_type, version=version, **FLAT)
    statements, columns, said = CHANGES[change]
    # Hudi's vectorized reader refuses changes inside of structs.
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", str(change != "inside").lower())
    request.addfinalizer(lambda: spark.conf.unset("spark.sql.parquet.enableVectorizedReader"))
    for each in statements:
        altering(spark, base, each)()
    right = values(spark, base, *columns)
    assert found(spark, base) == {}
    as_before(monkeypatch)
    run_job(spark, base, "clustering", {"sort_by": ["ts"]}, index=INDEX)
    assert values(spark, base, *columns) != right

    seen = found(spark, base)
    assert seen.keys() == said.keys()
    assert all(text in seen[kind] for kind, text in said.items())
    assert found(spark, base, "diagnosis").keys() == said.keys() - {LOST}


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_values_that_an_old_compaction_plan_took_are_found(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    tables.write_table(spark, base, count=40, updates=1, version=version, **FLAT)
    right = values(spark, base, "city")
    as_before(monkeypatch)
    run_job(spark, base, "compaction", context=At("compacting", altering(spark, base, RENAME)), index=INDEX)
    assert values(spark, base, "town") != right

    seen = found(spark, base)
    assert seen.keys() == {MISREAD}
    assert "city (stored as town)" in seen[MISREAD]


@pytest.mark.exhaustive
def test_the_old_columns_of_such_files_heal_the_table(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = tables.write_table(spark, base, count=40, table_type=COW, **FLAT)
    right = values(spark, base, "city")
    altering(spark, base, RENAME)()
    as_before(monkeypatch)
    run_job(spark, base, "bucket_expansion", {"factor": 2}, index=INDEX)
    assert MISREAD in found(spark, base)

    rows = spark.read.format("hudi").option(ON_READ, "true").load(str(base))
    files = [path for (path,) in rows.select(F.input_file_name()).distinct().collect()]
    old = spark.read.parquet(*files).select("_hoodie_record_key", F.col("city").alias("town"))
    healed = rows.drop("town").join(old, "_hoodie_record_key").drop(*[name for name in rows.columns if name[0] == "_"])
    tables.upsert(healed.localCheckpoint(), base, {**options, ON_READ: "true"})

    assert values(spark, base, "town") == right
    assert found(spark, base).keys() == {LOST}
    run_job(spark, base, "cleaning", {"policy": "KEEP_LATEST_COMMITS", "retain": 1}, index=INDEX)
    assert found(spark, base) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("on_read", ["true", "false"])
def test_a_clustering_of_hudi_loses_the_values_of_a_renamed_column_without_schema_on_read(
    spark: SparkSession, base: Path, on_read: str
) -> None:
    options = tables.write_table(spark, base, count=40, table_type=COW, partitioned=False, num_buckets=None)
    altering(spark, base, RENAME)()
    right = values(spark, base, "town")
    inline = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    alone = {**inline, ON_READ: on_read, "hoodie.parquet.small.file.limit": "0"}
    more = tables.rows(spark, 100, 110).withColumnRenamed("city", "town")
    tables.upsert(more, base, {**options, **alone})

    kept = set(right) <= set(values(spark, base, "town"))
    seen = found(spark, base, index=None)
    assert (kept, seen.keys()) == ((True, set()) if on_read == "true" else (False, {LOST}))
    assert kept or seen[LOST].endswith(": town (10 for 50)")


@pytest.mark.parametrize(
    ("table_type", "version"),
    [(MOR, 9), *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in [(MOR, 6), (COW, 9)])],
)
def test_a_writer_without_schema_on_read_hides_renamed_columns_until_the_next_alteration(
    request: pytest.FixtureRequest, table_type: str, version: int
) -> None:
    spark: SparkSession = request.getfixturevalue("spark")
    base: Path = request.getfixturevalue("tmp_path") / "trips"
    options = tables.write_table(spark, base, count=40, table_type=table_type, version=version, **FLAT)
    altering(spark, base, RENAME)()
    right = values(spark, base, "town")
    tables.upsert(tables.rows(spark, 0, 1, ts=1).withColumnRenamed("city", "town"), base, options)
    assert values(spark, base, "town") != right
    seen = found(spark, base)
    if table_type == COW:
        # The writer has rewritten one of the two files.
        assert seen.keys() == {FORGOTTEN, GONE}
        return
    assert seen.keys() == {FORGOTTEN}
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "compaction", index=INDEX)
    assert [each.type for each in refused.value.reasons] == [FORGOTTEN]
    altering(spark, base, "ALTER COLUMN note COMMENT 'healed'")()
    assert values(spark, base, "town") == right
    run_job(spark, base, "compaction", index=INDEX)
    assert values(spark, base, "town") == right
    assert found(spark, base) == {}


@pytest.mark.exhaustive
def test_renamed_columns_that_a_compaction_without_schema_on_read_has_lost_are_found(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = tables.write_table(spark, base, count=40, **FLAT)
    altering(spark, base, RENAME)()
    tables.upsert(tables.rows(spark, 0, 40, ts=1).withColumnRenamed("city", "town"), base, options)
    monkeypatch.setattr(preflight, "of_forgotten_columns", lambda *_: [])
    monkeypatch.setattr(plan_checks, "forgotten_changes", lambda _: {})
    run_job(spark, base, "compaction", index=INDEX)
    assert found(spark, base).keys() == {GONE}


EVOLUTION = [
    "ADD COLUMNS (tip double)",
    RENAME,
    "ALTER COLUMN ts AFTER dt",
    "ADD COLUMNS (items.element.c string)",
    "RENAME COLUMN items.element.a TO number",
    "DROP COLUMN note",
    "ADD COLUMNS (note string)",
    "ALTER COLUMN town TYPE bigint",
    "RENAME COLUMN fare TO cost",
    "ADD COLUMNS (fare string)",
]


def evolved(rows: DataFrame) -> DataFrame:
    """Returns rows of `tables.rows` with the columns after `EVOLUTION`."""
    items = "transform(items, each -> named_struct('number', each.a, 'b', each.b, 'c', 'new'))"
    return rows.select(
        "id",
        "dt",
        "ts",
        "region",
        F.col("city").cast("long").alias("town"),
        F.col("fare").alias("cost"),
        "price",
        "day",
        "at",
        F.expr(items).alias("items"),
        "scores",
        "blob",
        F.lit(1.5).alias("tip"),
        F.lit("again").alias("note"),
        F.lit("free").alias("fare"),
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (COW, 6), (MOR, 9), (MOR, 6)])
def test_nothing_is_found_on_healthy_tables_with_changed_columns(
    spark: SparkSession, base: Path, table_type: str, version: int
) -> None:
    options = tables.write_table(spark, base, count=40, updates=1, table_type=table_type, version=version, **FLAT)
    options[ON_READ] = "true"
    for number, each in enumerate(EVOLUTION):
        altering(spark, base, each)()
        if number == 4:
            assert found(spark, base) == {}
    columns = ["town", "cost", "items", "note", "fare", "tip"]
    assert found(spark, base) == {}
    tables.upsert(evolved(tables.rows(spark, 10, 50, ts=5)), base, options)
    after = values(spark, base, *columns)
    assert found(spark, base) == {}
    if table_type == MOR:
        run_job(spark, base, "compaction", index=INDEX)
        assert values(spark, base, *columns) == after
        assert found(spark, base) == {}
    # Every file has the new columns by now.
    tables.upsert(evolved(tables.rows(spark, 0, 50, ts=6)), base, options)
    after = values(spark, base, *columns)
    if table_type == MOR:
        run_job(spark, base, "compaction", index=INDEX)
    run_job(spark, base, "clustering", {"sort_by": ["town"]}, index=INDEX)
    run_job(spark, base, "bucket_expansion", {"factor": 2}, index=INDEX)
    assert values(spark, base, *columns) == after
    assert found(spark, base) == {}
