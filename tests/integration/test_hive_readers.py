"""Hive reads the tables by the input formats of older Hudi, before and after each service."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from tests.integration import hive_reader, tables
from tests.integration.independent import rows_of
from tests.integration.run import run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.2.0"])
def test_hive_reads_lists_of_structs_beside_timestamps_after_each_service(
    spark: SparkSession, tmp_path: Path, version: str
) -> None:
    states: dict[Path, str] = {}
    expected: dict[Path, list[str]] = {}
    columns: dict[str, str] = {}

    def rows(first: int, last: int, ts: int = 0) -> DataFrame:
        return tables.rows(spark, first, last, ts=ts).withColumn("at", F.date_trunc("millisecond", "at"))

    def copy_state(base: Path, kind: str) -> None:
        state = tmp_path / f"{base.name}_{len(states)}"
        shutil.copytree(base, state)
        frame = spark.read.format("hudi").load(str(state))
        states[state], expected[state] = kind, rows_of(frame)
        columns.update(frame.dtypes)

    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        base = tmp_path / kind.lower()
        options = tables.writer_options(base, table_type=kind, version=6, partitioned=False)
        tables.upsert(rows(0, 300), base, options)
        tables.upsert(rows(0, 100, ts=1), base, options)
        copy_state(base, kind)
        run_job(spark, base, "bucket_expansion", {"num_buckets": 8})
        copy_state(base, kind)
        eight = BucketIndex(8, ("id",))
        tables.upsert(rows(200, 350, ts=2), base, {**options, "hoodie.bucket.index.num.buckets": "8"})
        service = ("compaction", {}) if kind == "MERGE_ON_READ" else ("clustering", {"sort_by": ["id"]})
        run_job(spark, base, *service, index=eight)
        copy_state(base, kind)

    assert hive_reader.read(version, columns, states, tmp_path) == expected
