"""parquet-mr, by both of Spark's readers, finds the rows of files whose pages ISA-L has compressed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.dataplane.logical_types import NO_ANNOTATIONS
from jobs.dataplane.parquet_writer import ParquetWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COUNT = 6000
ROWS = pa.table(
    {
        "number": pa.array(range(COUNT), pa.int64()),
        "key": [f"key {row:06d}" for row in range(COUNT)],
        "city": [None if row % 11 == 0 else f"city {row // 500}" for row in range(COUNT)],
        "none": pa.array([None] * COUNT, pa.string()),
        "flag": [row % 3 == 0 for row in range(COUNT)],
        "tags": [[f"t{each}" for each in range(row % 4)] or None for row in range(COUNT)],
        "more": [{"a": row, "b": [{"c": float(row % 5)}] * (row % 3)} for row in range(COUNT)],
        "map": pa.array([[(f"k{row % 5}", row)] for row in range(COUNT)], pa.map_(pa.string(), pa.int64())),
    }
)
# Each filter skips most pages by the page indexes.
FILTERS = {
    "number = 3210": [3210],
    "key >= 'key 005990'": list(range(5990, COUNT)),
    "city = 'city 7' and number < 3510": [row for row in range(3500, 3510) if row % 11],
    "city is null and number between 1995 and 2020": [row for row in range(1995, 2021) if row % 11 == 0],
    "key = 'none of them'": [],
}


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_both_readers_find_all_rows_and_those_of_filters(spark: SparkSession, tmp_path: Path, vectorized: str) -> None:
    options: list[dict[str, Any]] = [
        {"data_page_version": "1.0", "write_page_checksum": True},
        {"data_page_version": "2.0", "dictionary_pagesize_limit": 2000},
        {"data_page_version": "1.0", "use_dictionary": False},
    ]
    wanted = {
        "spark.sql.parquet.enableVectorizedReader": vectorized,
        "spark.sql.parquet.enableNestedColumnVectorizedReader": vectorized,
    }
    before = {name: spark.conf.get(name) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        for number, each in enumerate(options):
            path = tmp_path / f"{number}.parquet"
            with pa.OSFile(str(path), "wb") as stream:
                settings = {"data_page_size": 2000, "write_batch_size": 50, "write_page_index": True, **each}
                with ParquetWriter(stream, ROWS.schema, NO_ANNOTATIONS, compression="gzip", **settings) as writer:
                    writer.write_table(ROWS, row_group_size=2500)
            assert pq.read_metadata(path).row_group(0).column(0).compression == "GZIP"
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
