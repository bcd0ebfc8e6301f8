"""Jobs on tables whose columns have become wider, or have got a part more: all readers find the same rows as before, or
the job is refused."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from jobs.errors import RefusedError
from tests.integration import tables
from tests.integration.independent import rows_by_hudi_rs, rows_of
from tests.integration.run import run_job
from tests.integration.test_bucket_resize import SPLIT
from tests.integration.test_consistent_hashing import ENGINE
from tests.integration.test_evolved_schemas import ON_READ, altering

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
WIDENED, INSIDE = "widened", "inside"
ALTERS = {
    WIDENED: ["ALTER COLUMN city TYPE bigint", "ALTER COLUMN fare TYPE double"],
    INSIDE: ["ADD COLUMNS (items.element.c string)"],
}


def with_narrow_columns(rows: DataFrame) -> DataFrame:
    return rows.withColumns(
        {
            "fare": F.expr("cast(cast(substring(id, 2) as int) * 0.1 as float)"),
        }
    )


def wide(rows: DataFrame, change: str) -> DataFrame:
    """Returns rows with values that do not fit into the narrow columns."""
    if change == INSIDE:
        # Hudi needs a column that may be null.
        part = "if(each.a >= 0, concat('c', each.b), null)"
        items = f"transform(items, each -> named_struct('a', each.a, 'b', each.b, 'c', {part}))"
        return with_narrow_columns(rows).withColumn("items", F.expr(items))
    return rows.withColumns(
        {
            "city": F.expr("city + 5000000000"),
            "fare": F.expr("cast(substring(id, 2) as int) * 0.1D"),
        }
    )


def write(spark: SparkSession, base: Path, change: str, on_read: bool, **shape: Any) -> dict[str, str]:
    """Writes a table in which two file groups of four have a file of the new form, beside files of the old one."""
    options = tables.writer_options(base, **{"partitioned": False, **shape})
    rows = with_narrow_columns(tables.rows(spark, 0, 60))
    tables.upsert(rows, base, options)
    if not shape.get("num_buckets", 4):
        alone = {**options, "hoodie.parquet.small.file.limit": "0"}
        tables.upsert(with_narrow_columns(tables.rows(spark, 60, 90)), base, alone)
    change_columns(spark, base, change, on_read, options)
    tables.upsert(wide(tables.rows(spark, 0, 2, ts=1), change), base, options)
    return options


def change_columns(spark: SparkSession, base: Path, change: str, on_read: bool, options: dict[str, str]) -> None:
    """Changes the columns by schema on read, or lets the next write do it."""
    if on_read:
        for each in ALTERS[change]:
            altering(spark, base, each)()
        options[ON_READ] = "true"


def by_readers(spark: SparkSession, base: Path) -> dict[str, list[str]]:
    """Returns the rows as Spark finds them without and with schema on read, and hudi-rs if it can read them."""
    reader = spark.read.format("hudi")
    found = {f"on read: {on}": rows_of(reader.option(ON_READ, on).load(str(base))) for on in ("false", "true")}
    # hudi-rs refuses schema on read, and cannot merge a narrow base file with wide logs.
    with suppress(Exception):
        found["hudi-rs"] = rows_by_hudi_rs(base)
    return found


KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "bucket count": ("bucket_count", {"num_buckets": 3}, {}),
    "expansion": ("bucket_expansion", {"factor": 2}, {}),
    "sorted in buckets": ("clustering", {"sort_by": ["ts"]}, {}),
    "resize": ("bucket_resize", SPLIT, ENGINE),
    "compaction": ("compaction", {}, {}),
    "stitching": ("clustering", {}, {"num_buckets": None}),
}
CASES = [
    (kind, change, on_read, table_type)
    for kind in KINDS
    for change in (WIDENED, INSIDE)
    for on_read in (False, True)
    for table_type in (MOR, COW)
    if not (kind in ("resize", "compaction") and table_type == COW)
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "change", "on_read", "table_type"), CASES)
def test_rows_with_changed_columns_are_the_same_for_all_readers(
    request: pytest.FixtureRequest, kind: str, change: str, on_read: bool, table_type: str
) -> None:
    spark: SparkSession = request.getfixturevalue("spark")
    base: Path = request.getfixturevalue("tmp_path") / "trips"
    # Hudi's vectorized reader refuses changes inside of structs.
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", str(change != INSIDE).lower())
    request.addfinalizer(lambda: spark.conf.unset("spark.sql.parquet.enableVectorizedReader"))
    job, params, shape = KINDS[kind]
    options = write(spark, base, change, on_read, table_type=table_type, **shape)
    buckets = shape.get("num_buckets", 4) and job != "bucket_resize"
    index = BucketIndex(4, ("id",)) if buckets else None
    before = by_readers(spark, base)
    refused = on_read and change == WIDENED and job != "compaction"
    if refused:
        with pytest.raises(RefusedError) as error:
            run_job(spark, base, job, params, index=index)
        assert "columns-changed" in [each.type for each in error.value.reasons]
        assert by_readers(spark, base) == before
        return

    run_job(spark, base, job, params, index=index)
    after = by_readers(spark, base)
    for reader, rows in before.items():
        assert after[reader] == rows, reader
    audit = run_job(spark, base, "audit", index=index).details
    assert audit["clean"], audit
    tables.upsert(wide(tables.rows(spark, 1, 100, ts=5), change), base, options)
    found = spark.read.format("hudi").load(str(base))
    assert (found.count(), found.where("ts = 5").count()) == (100, 99)
