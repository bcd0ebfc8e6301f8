"""Repairs of tables whose columns have changed before or after a stale write, or while its rows are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import RefusedError
from tests.integration import tables
from tests.integration.hidden import hidden, write_stale
from tests.integration.run import proved, run_job
from tests.integration.tables import newest, texts
from tests.integration.test_bucket_count import count_buckets, index_of
from tests.integration.test_evolved_schemas import ON_READ, RENAME, altering
from tests.integration.writers import At

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
Change = tuple[list[str], "Callable[[DataFrame], DataFrame]", "Callable[[DataFrame], DataFrame]"]
_TOWN = {"city": "town"}
# Each change has its statements and two functions: the first gives an earlier writer's rows the new columns, the second
# makes the rows of a writer that knows the change.
CHANGES: dict[str, Change] = {
    "renamed": ([RENAME], lambda rows: rows.withColumnsRenamed(_TOWN), lambda rows: rows.withColumnsRenamed(_TOWN)),
    "added again": (
        ["DROP COLUMN region", "ADD COLUMNS (region string)"],
        lambda rows: rows.withColumn("region", F.lit(None).cast("string")),
        lambda rows: rows.withColumn("region", F.lit("again")),
    ),
    "wider": (
        ["ALTER COLUMN city TYPE bigint"],
        lambda rows: rows.withColumn("city", F.col("city").cast("long")),
        lambda rows: rows.withColumn("city", F.col("city") + 5_000_000_000),
    ),
    "added": (
        ["ADD COLUMNS (tip double)"],
        lambda rows: rows.withColumn("tip", F.lit(None).cast("double")),
        lambda rows: rows.withColumn("tip", F.lit(1.5)),
    ),
    "dropped": (["DROP COLUMN region"], lambda rows: rows.drop("region"), lambda rows: rows.drop("region")),
    "moved": (["ALTER COLUMN city AFTER note"], lambda rows: rows, lambda rows: rows),
    "wider by a writer": (
        [],
        lambda rows: rows.withColumn("city", F.col("city").cast("long")),
        lambda rows: rows.withColumn("city", F.col("city") + 5_000_000_000),
    ),
    "added by a writer": (
        [],
        lambda rows: rows.withColumn("tip", F.lit(None).cast("double")),
        lambda rows: rows.withColumn("tip", F.expr("if(ts > 0, 1.5D, null)")),
    ),
    "moved by a writer": ([], lambda rows: rows, lambda rows: rows.select(*reversed(rows.columns))),
}
TYPES = [(COW, 9), (MOR, 9), (COW, 8), (MOR, 8), (COW, 6), (MOR, 6)]


@pytest.mark.parametrize(
    ("change", "table_type", "version", "stale_first"),
    [
        pytest.param(
            change,
            *each,
            first,
            marks=[] if (change, each, first) == ("renamed", (COW, 9), True) else pytest.mark.exhaustive,
        )
        for change in CHANGES
        for each in TYPES
        for first in (True, False)
    ],
)
def test_a_stale_write_to_replaced_file_groups_has_the_columns_of_now(
    request: pytest.FixtureRequest, change: str, table_type: str, version: int, *, stale_first: bool
) -> None:
    spark: SparkSession = request.getfixturevalue("spark")
    folder: Path = request.getfixturevalue("tmp_path")
    base = folder / "trips"
    shape: dict[str, Any] = {"table_type": table_type, "version": version, "partitioned": False}
    # Both ways of finding files are used by the cases together.
    options = tables.write_table(spark, base, count=60, **shape, metadata=not stale_first)
    statements, old, new = CHANGES[change]
    (clustering,) = run_job(spark, base, "clustering", {"sort_by": ["city"]}).instants
    stale = tables.rows(spark, 0, 20, ts=5)

    def write(rows: DataFrame) -> str:
        with hidden(base, clustering, folder / "away"):
            tables.upsert(rows, base, options)
        return newest(base)

    instant = write(stale) if stale_first else ""
    for each in statements:
        altering(spark, base, each)()
    options |= {ON_READ: "true"} if statements else {}
    instant = instant or write(new(stale))
    # No file that readers see has from now on the old columns.
    rest = new(tables.rows(spark, 20, 60, ts=3))
    tables.upsert(rest.union(new(tables.rows(spark, 0, 20, ts=3))), base, options)
    if table_type == MOR:
        run_job(spark, base, "compaction")

    result = run_job(spark, base, "repair").details

    assert (result["repaired"], result["rows"]) == ([instant], 20)
    kept = old(stale) if stale_first else new(stale)
    found, expected = texts(spark, base, kept, rest.select(kept.columns))
    assert found == expected
    assert rows_on_read(spark, base, kept.columns) == expected
    assert len(proved(spark, base, 4)) == 60
    tables.upsert(late := new(tables.rows(spark, 10, 70, ts=9)), base, options)
    found, expected = texts(spark, base, kept.where("int(substring(id, 2)) < 10"), late.select(kept.columns))
    assert found == expected


def rows_on_read(spark: SparkSession, base: Path, names: list[str]) -> list[str]:
    frame = spark.read.format("hudi").option(ON_READ, "true").load(str(base))
    return sorted(str([*row]) for row in frame.select(*names).collect())


@pytest.mark.exhaustive
@pytest.mark.parametrize("stale_first", [True, False])
@pytest.mark.parametrize(("table_type", "version"), TYPES)
@pytest.mark.parametrize("change", CHANGES)
def test_rows_in_wrong_buckets_are_moved_with_the_columns_of_now(
    request: pytest.FixtureRequest, change: str, table_type: str, version: int, *, stale_first: bool
) -> None:
    spark: SparkSession = request.getfixturevalue("spark")
    base: Path = request.getfixturevalue("tmp_path") / "trips"
    shape: dict[str, Any] = {"table_type": table_type, "version": version, "partitioned": False}
    options = tables.write_table(spark, base, count=60, **shape)
    statements, old, new = CHANGES[change]
    count_buckets(spark, base, 4, 7)
    stale = tables.rows(spark, 0, 20, ts=5)
    instant = write_stale(stale, base, options) if stale_first else ""
    for each in statements:
        altering(spark, base, each)()
    options |= {ON_READ: "true"} if statements else {}
    instant = instant or write_stale(new(stale), base, options)
    rest = new(tables.rows(spark, 20, 60, ts=3))
    tables.upsert(rest, base, options)
    if table_type == MOR:
        run_job(spark, base, "compaction", index=index_of(4))

    result = run_job(spark, base, "repair", {"instants": [instant]}, index=index_of(4)).details

    assert (result["repaired"], result["rows"]) == ([instant], 20)
    kept = old(stale) if stale_first else new(stale)
    if (change, table_type) == ("added again", COW) and stale_first:
        # Hudi's own upsert of the other rows has kept these values of the dropped column in the new one (1.2.0).
        kept = stale
    found, expected = texts(spark, base, kept, rest.select(kept.columns))
    assert found == expected
    assert rows_on_read(spark, base, kept.columns) == expected
    assert len(proved(spark, base, 7, index_of(4))) == 60
    tables.upsert(late := new(tables.rows(spark, 10, 70, ts=9)), base, options)
    found, expected = texts(spark, base, kept.where("int(substring(id, 2)) < 10"), late.select(kept.columns))
    assert found == expected


@pytest.mark.parametrize(
    ("table_type", "step"),
    [
        (MOR, "writing the rows of stale writes"),
        pytest.param(COW, "writing the rows of stale writes", marks=pytest.mark.exhaustive),
        pytest.param(MOR, "verifying the repair", marks=pytest.mark.exhaustive),
        pytest.param(COW, "verifying the repair", marks=pytest.mark.exhaustive),
    ],
)
def test_a_column_that_is_renamed_beside_the_repair_keeps_its_values(
    spark: SparkSession, tmp_path: Path, table_type: str, step: str
) -> None:
    base = tmp_path / "trips"
    options = tables.write_table(spark, base, count=60, partitioned=False, table_type=table_type)
    (clustering,) = run_job(spark, base, "clustering", {"sort_by": ["city"]}).instants
    with hidden(base, clustering, tmp_path / "away"):
        tables.upsert(tables.rows(spark, 0, 20, ts=5), base, options)
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "repair", context=At(step, altering(spark, base, RENAME)))
    assert [each.type for each in refused.value.reasons] == ["columns-changed"]
    names = [{**_TOWN}.get(name, name) for name in tables.rows(spark, 0, 1).columns]
    assert rows_on_read(spark, base, names) == sorted(str([*row]) for row in tables.rows(spark, 0, 60).collect())


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_a_column_that_comes_beside_the_repair_stays(spark: SparkSession, tmp_path: Path, table_type: str) -> None:
    base = tmp_path / "trips"
    options = tables.write_table(spark, base, count=60, partitioned=False, table_type=table_type)
    (clustering,) = run_job(spark, base, "clustering", {"sort_by": ["city"]}).instants
    with hidden(base, clustering, tmp_path / "away"):
        tables.upsert(tables.rows(spark, 0, 20, ts=5), base, options)
    adds = altering(spark, base, "ADD COLUMNS (tip double)", {ON_READ: "false"})
    run_job(spark, base, "repair", context=At("verifying the repair", adds))
    assert "tip" in spark.read.format("hudi").load(str(base)).columns
    tables.upsert(tables.rows(spark, 50, 70, ts=9).withColumn("tip", F.expr("if(ts > 0, 1.5D, null)")), base, options)
    found = spark.read.format("hudi").load(str(base))
    assert (found.count(), found.where("tip = 1.5").count(), found.where("ts = 5").count()) == (70, 20, 20)
