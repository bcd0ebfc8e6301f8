"""parquet-mr, by both of Spark's readers, finds the rows of files whose pages ISA-L has compressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import paged_rows
from tests.support.paged_rows import FILTERS, ROWS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize("vectorized", ["true", pytest.param("false", marks=pytest.mark.exhaustive)])
def test_both_readers_find_all_rows_and_those_of_filters(spark: SparkSession, tmp_path: Path, vectorized: str) -> None:
    wanted = {
        "spark.sql.parquet.enableVectorizedReader": vectorized,
        "spark.sql.parquet.enableNestedColumnVectorizedReader": vectorized,
    }
    before = {name: spark.conf.get(name) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        for number, options in enumerate(paged_rows.OPTIONS):
            path = tmp_path / f"{number}.parquet"
            paged_rows.write(path, ROWS, options)
            require_rows(spark, path)
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def require_rows(spark: SparkSession, path: Path) -> None:
    frame = spark.read.option("parquet.page.verify-checksum.enabled", "true").parquet(str(path))
    found = sorted((row.asDict(recursive=True) for row in frame.collect()), key=lambda row: row["number"])
    for row in found:
        row["map"] = list(row["map"].items())
    assert found == ROWS.to_pylist()
    for condition, numbers in FILTERS.items():
        assert sorted(row["number"] for row in frame.where(condition).collect()) == numbers, condition
