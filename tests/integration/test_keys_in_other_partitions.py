"""Writers with a global index keep one row of a key in the whole table. A repair doubles no row that has moved to
another partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import RefusedError
from tests.integration.hidden import hidden
from tests.integration.run import run_job
from tests.integration.tables import newest, rows, texts, upsert, writer_options

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
GLOBAL = {
    "GLOBAL_SIMPLE": {"hoodie.simple.index.update.partition.path": "true"},
    "GLOBAL_BLOOM": {"hoodie.bloom.index.update.partition.path": "true"},
}


def clustered(spark: SparkSession, base: Path, index: str, table_type: str) -> dict[str, str]:
    """Writes a table of 100 rows in two partitions, and clusters it; returns the writer's options."""
    # Hudi lets 60 tasks by default look for the rows that have moved.
    few = {"hoodie.global.index.reconcile.parallelism": "2"}
    own = {"hoodie.index.type": index, **GLOBAL[index], **few, "hoodie.parquet.small.file.limit": "0"}
    options = writer_options(base, num_buckets=None, table_type=table_type, metadata=False, **own)
    for first in (0, 50):
        upsert(rows(spark, first, first + 50, partitions=2), base, options)
    assert run_job(spark, base, "clustering", {}, index=None).details["file_groups"]["after"] == 2
    return options


def moved(spark: SparkSession, ts: int) -> DataFrame:
    """Returns ten rows, each in the other partition."""
    other = F.when(F.col("dt") == "2026-01-01", "2026-01-02").otherwise("2026-01-01")
    return rows(spark, 0, 10, ts=ts, partitions=2).withColumn("dt", other)


def repair(spark: SparkSession, base: Path, stale: str, declared: str | None) -> dict[str, Any]:
    options = {"hudi_options": {"hoodie.index.type": declared}} if declared else {}
    return run_job(spark, base, "repair", {"instants": [stale]}, index=None, declared=options).details


def refusal_of_repair(spark: SparkSession, base: Path, stale: str, declared: str | None) -> bool:
    with pytest.raises(RefusedError) as caught:
        repair(spark, base, stale, declared)
    return {each.type for each in caught.value.reasons} == {"keys-in-other-partitions"}


@pytest.mark.parametrize(
    ("index", "table_type"),
    [
        ("GLOBAL_SIMPLE", COW),
        *(
            pytest.param(index, table_type, marks=pytest.mark.exhaustive)
            for index in GLOBAL
            for table_type in (COW, MOR)
            if (index, table_type) != ("GLOBAL_SIMPLE", COW)
        ),
    ],
)
def test_rows_that_moved_after_a_stale_write_are_not_doubled(
    spark: SparkSession, tmp_path: Path, base: Path, index: str, table_type: str
) -> None:
    options = clustered(spark, base, index, table_type)
    with hidden(base, newest(base), tmp_path / "away"):
        upsert(rows(spark, 0, 20, ts=5, partitions=2), base, options)
    stale = newest(base)
    upsert(moved(spark, 6), base, options)

    done = repair(spark, base, stale, index)

    assert (done["rows"], done["superseded"]) == (10, 10)
    found, wanted = texts(
        spark,
        base,
        moved(spark, 6),
        rows(spark, 10, 20, ts=5, partitions=2),
        rows(spark, 20, 100, partitions=2),
    )
    assert found == wanted


@pytest.mark.exhaustive
@pytest.mark.parametrize("index", GLOBAL)
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_later_row_of_a_key_that_has_moved_before_is_refused(
    spark: SparkSession, tmp_path: Path, base: Path, index: str, table_type: str
) -> None:
    options = clustered(spark, base, index, table_type)
    clustering = newest(base)
    upsert(moved(spark, 6), base, options)
    with hidden(base, clustering, tmp_path / "away"), hidden(base, newest(base), tmp_path / "away too"):
        upsert(rows(spark, 0, 20, ts=7, partitions=2), base, options)
    stale = newest(base)
    before, _ = texts(spark, base, rows(spark, 0, 1))
    assert refusal_of_repair(spark, base, stale, index)
    # Nothing says that the index is a global one.
    assert refusal_of_repair(spark, base, stale, None)
    assert texts(spark, base, rows(spark, 0, 1))[0] == before
    # The owner says that a key may be in several partitions.
    assert repair(spark, base, stale, index.removeprefix("GLOBAL_"))["rows"] == 20
