"""The version of a table with typed partition fields, or of a copy whose files have times in another order, changes."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING

import pytest

from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.integration.test_repaired_keys import GENERATORS
from tests.integration.test_repaired_keys import rows as rows_of
from tests.integration.test_upgrade import change

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.exhaustive


@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
@pytest.mark.parametrize("generator", ["custom", "time"])
def test_a_writer_finds_keys_and_partitions_in_each_version(
    spark: SparkSession, base: Path, table_type: str, generator: str
) -> None:
    options = tables.writer_options(base, table_type=table_type, num_buckets=None, **GENERATORS[generator])
    tables.upsert(rows_of(spark, 60), base, options)
    places = placed(spark, base)
    for number, to in enumerate((6, 9, 8, 6), 1):
        rows = tables.snapshot(spark, base)
        change(spark, base, to, None)
        assert hudi_table(spark, base, None).version == to
        assert tables.snapshot(spark, base) == rows
        tables.upsert(rows_of(spark, 60, number), base, options)
        assert placed(spark, base) == places
        assert spark.read.format("hudi").load(str(base)).where(f"ts = {number}").count() == 60
        assert run_job(spark, base, "audit", index=None).details["clean"]


def placed(spark: SparkSession, base: Path) -> list[tuple[str, str]]:
    found = spark.read.format("hudi").load(str(base)).select("_hoodie_record_key", "_hoodie_partition_path")
    return sorted((str(row[0]), str(row[1])) for row in found.collect())


@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_copy_with_times_in_another_order_keeps_rows_for_writers_and_cleans(
    spark: SparkSession, base: Path, table_type: str, seed: int
) -> None:
    shape = {"table_type": table_type, "version": 6, "num_buckets": None}
    options = tables.writer_options(base, **shape)  # type: ignore[arg-type]
    tables.upsert(tables.rows(spark, 0, 60), base, options)
    tables.upsert(tables.rows(spark, 0, 40, ts=1), base, options)
    run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=None)
    overwritten = tables.rows(spark, 0, 60, ts=2).where("dt = '2026-01-02'")
    tables.upsert(overwritten, base, {**options, "hoodie.datasource.write.operation": "insert_overwrite"})
    tables.upsert(tables.rows(spark, 20, 70, ts=3), base, options)
    names = [path for path in (base / ".hoodie").rglob("*") if path.is_file()]
    random.Random(seed).shuffle(names)
    for number, path in enumerate(names):
        os.utime(path, (time.time() - 600 + number * 0.1,) * 2)
    rows = tables.snapshot(spark, base)

    change(spark, base, 9, None)

    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == rows
    tables.upsert(tables.rows(spark, 0, 80, ts=5), base, options)
    expected = tables.snapshot(spark, base)
    assert (len(expected), tables.duplicates(spark, base)) == (80, 0)
    run_job(spark, base, "compaction", index=None) if table_type == "MERGE_ON_READ" else None
    run_job(spark, base, "cleaning", {"retain": 1}, index=None)
    run_job(spark, base, "archival", {"retain": 2}, index=None)
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == expected
    assert run_job(spark, base, "audit", index=None).details["clean"]
