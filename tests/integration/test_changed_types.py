"""Columns whose type schema on read has changed: jobs that would rewrite their files are refused, and an audit finds
files that were rewritten all the same."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from jobs.errors import RefusedError
from tests.integration import tables
from tests.integration.independent import rows_by_hudi_rs, rows_of
from tests.integration.run import run_job
from tests.integration.test_evolved_schemas import ON_READ, altering, values
from tests.integration.test_misread_columns import MISREAD, as_before, found

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
INDEX = BucketIndex(4, ("id",))
CHANGES = {
    "int": ["bigint", "float", "double", "string"],
    "bigint": ["double", "string"],
    "float": ["double", "string"],
    "double": ["decimal(22,2)", "string"],
    "decimal(20,4)": ["decimal(24,4)", "decimal(24,6)", "string"],
    "decimal(8,2)": ["decimal(9,2)", "decimal(20,2)"],
    "date": ["string"],
    "string": ["date"],
}
COLUMNS = {f"c{number}": each for number, each in enumerate((old, new) for old in CHANGES for new in CHANGES[old])}
JOBS: dict[str, tuple[str, dict[str, Any]]] = {
    "sorted in buckets": ("clustering", {"sort_by": ["ts"]}),
    "bucket count": ("bucket_count", {"num_buckets": 3}),
    "expansion": ("bucket_expansion", {"factor": 2}),
    "contraction": ("bucket_contraction", {"num_buckets": 2}),
}
REFUSED = [
    ["RENAME COLUMN items.element.a TO number"],
    ["ALTER COLUMN items.element.a TYPE bigint"],
    ["ALTER COLUMN c0 TYPE string"],
    ["ADD COLUMNS (items.element.c int)", "ALTER COLUMN items.element.c TYPE bigint"],
]


def write(spark: SparkSession, base: Path, changes: Sequence[str], table_type: str = COW, version: int = 9) -> None:
    """Writes a table with columns of the old types, and then changes them."""

    def write(path: Path) -> None:
        number, day = F.expr("cast(substring(id, 2) as int)"), F.expr("date_add(date'2020-01-01', length(id))")
        items = F.expr("transform(items, each -> named_struct('a', cast(each.a as int), 'b', each.b))").alias("items")
        made = [(day if "date" in pair else number).cast(pair[0]).alias(name) for name, pair in COLUMNS.items()]
        options = tables.writer_options(path, partitioned=False, table_type=table_type, version=version)
        tables.upsert(tables.rows(spark, 0, 24).select("id", "ts", "dt", items, *made), path, options)
        for each in changes:
            altering(spark, path, each)()

    tables.prepared(base, f"types {table_type} {version} {changes}", write)


def by_readers(spark: SparkSession, base: Path) -> list[list[str]]:
    """Returns the rows by Spark with and without schema on read, and by hudi-rs, where these can read them."""
    found = []
    for read in (
        lambda: rows_of(spark.read.format("hudi").option(ON_READ, "true").load(str(base))),
        lambda: rows_of(spark.read.format("hudi").load(str(base))),
        lambda: rows_by_hudi_rs(base),
    ):
        with suppress(Exception):
            found.append(read())
    return found


@pytest.mark.parametrize(
    ("job", "changes"),
    [
        pytest.param(
            job, changes, marks=[] if (job, changes) == ("bucket count", REFUSED[1]) else pytest.mark.exhaustive
        )
        for job in JOBS
        for changes in REFUSED
    ],
)
def test_files_with_old_columns_are_not_rewritten(
    request: pytest.FixtureRequest, base: Path, job: str, changes: list[str]
) -> None:
    spark: SparkSession = request.getfixturevalue("spark")
    # Hudi's vectorized reader refuses changes inside of structs.
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    request.addfinalizer(lambda: spark.conf.unset("spark.sql.parquet.enableVectorizedReader"))
    write(spark, base, changes)
    before = by_readers(spark, base)
    assert before
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, *JOBS[job], index=INDEX)
    assert [each.type for each in refused.value.reasons] == ["columns-changed"]
    assert by_readers(spark, base) == before
    assert found(spark, base, index=INDEX) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("job", "table_type", "version", "columns"),
    [
        *((job, COW, 9, [*COLUMNS]) for job in JOBS),
        *(("sorted in buckets", *each, [*COLUMNS]) for each in [(COW, 6), (MOR, 9), (MOR, 6)]),
    ],
)
def test_exactly_the_columns_that_readers_lose_are_found(
    request: pytest.FixtureRequest, job: str, table_type: str, version: int, columns: list[str]
) -> None:
    spark: SparkSession = request.getfixturevalue("spark")
    base: Path = request.getfixturevalue("tmp_path") / "trips"
    write(spark, base, [f"ALTER COLUMN {name} TYPE {COLUMNS[name][1]}" for name in columns], table_type, version)
    right = {name: readable(spark, base, name) for name in columns}
    assert None not in right.values()
    assert found(spark, base, index=INDEX) == {}
    as_before(request.getfixturevalue("monkeypatch"))
    run_job(spark, base, *JOBS[job], index=INDEX)
    lost = {name for name in columns if readable(spark, base, name) != right[name]}
    assert 0 < len(lost) < len(columns)

    for kind in ("audit", "diagnosis"):
        seen = found(spark, base, kind, INDEX)
        assert seen.keys() == {MISREAD}
        assert set(re.findall(r"(\w+) \([^()]+(?:\([^()]+\)[^()]*)* instead of", seen[MISREAD])) == lost
    assert "c0 (int instead of long)" in seen[MISREAD]


def readable(spark: SparkSession, base: Path, name: str) -> list[tuple[Any, ...]] | None:
    """Returns the values of a column by schema on read, None if readers fail."""
    try:
        return values(spark, base, name)
    except Py4JJavaError:
        return None


@pytest.mark.exhaustive
def test_reading_without_schema_on_read_heals_such_files(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(spark, base, ["ALTER COLUMN c0 TYPE bigint", "ALTER COLUMN c3 TYPE string"])
    right = values(spark, base, "c0", "c3", "items")
    as_before(monkeypatch)
    run_job(spark, base, "clustering", {"sort_by": ["ts"]}, index=INDEX)
    assert MISREAD in found(spark, base, index=INDEX)
    rows = spark.read.format("hudi").load(str(base))
    healed = rows.drop(*[name for name in rows.columns if name[0] == "_"]).localCheckpoint()
    options = tables.writer_options(base, partitioned=False, table_type=COW)
    tables.upsert(healed, base, options)
    assert values(spark, base, "c0", "c3", "items") == right
    assert found(spark, base, index=INDEX) == {}
