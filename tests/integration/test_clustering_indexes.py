"""Tests clustering of tables without a bucket index, with each index that writers use to find rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration import tables
from tests.integration.run import run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_STATISTICS = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
}
_INDEXES = {
    "bloom": {"hoodie.index.type": "BLOOM", "hoodie.metadata.index.bloom.filter.enable": "true"},
    "global bloom": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "simple": {"hoodie.index.type": "SIMPLE"},
    "record": {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true", **_STATISTICS},
    "partitioned record": {
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
        "hoodie.metadata.record.level.index.enable": "true",
    },
}


# `test_indexes` tests a table with all indexes together in each run.
@pytest.mark.exhaustive
@pytest.mark.parametrize("index", _INDEXES)
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_writer_finds_all_rows_after_a_clustering(
    spark: SparkSession, tmp_path: Path, index: str, table_type: str
) -> None:
    base = tmp_path / "plain"
    options = tables.write_table(spark, base, count=300, num_buckets=None, table_type=table_type, **_INDEXES[index])
    tables.upsert(tables.rows(spark, 300, 450), base, {**options, "hoodie.parquet.small.file.limit": "0"})
    tables.upsert(tables.rows(spark, 100, 350, ts=2), base, options)
    before = tables.snapshot(spark, base)

    merged = run_job(spark, base, "clustering", index=None).details
    ordered = run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=None).details

    assert (merged["file_groups"], ordered["rows"]) == ({"before": 6, "after": 3}, 450)
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before
    frame = spark.read.format("hudi").option("hoodie.enable.data.skipping", "true").load(str(base))
    assert frame.where("_hoodie_record_key = 'k333'").count() == 1
    tables.upsert(tables.rows(spark, 0, 500, ts=3), base, options)
    assert len(tables.snapshot(spark, base)) == len(tables.snapshot(spark, base, metadata=False)) == 500
    assert spark.read.format("hudi").load(str(base)).where("ts = 3").count() == 500
    assert tables.duplicates(spark, base) == 0
    assert run_job(spark, base, "audit", index=None).details["clean"]
