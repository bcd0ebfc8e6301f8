"""Tests changes of the version of odd tables: tables with typed partition fields, copies whose files have times in
another order, and tables with a history of their schema or of their instants."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from tests.integration import tables
from tests.integration.old_writer import OldWriter
from tests.integration.run import hudi_table, run_job
from tests.integration.test_evolved_schemas import ON_READ, RENAME, altering, values
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
    places = keys_and_partitions(spark, base)
    for number, to in enumerate((6, 9, 8, 6), 1):
        rows = tables.snapshot(spark, base)
        change(spark, base, to, None)
        assert hudi_table(spark, base, None).version == to
        assert tables.snapshot(spark, base) == rows
        tables.upsert(rows_of(spark, 60, number), base, options)
        assert keys_and_partitions(spark, base) == places
        assert spark.read.format("hudi").load(str(base)).where(f"ts = {number}").count() == 60
        assert run_job(spark, base, "audit", index=None).details["clean"]


def keys_and_partitions(spark: SparkSession, base: Path) -> list[tuple[str, str]]:
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


@pytest.mark.parametrize("version", [9, 8])
def test_hudi_0_15_archives_the_replacements_of_a_later_version(spark: SparkSession, base: Path, version: int) -> None:
    shape = {"table_type": "COPY_ON_WRITE", "partitioned": False, "num_buckets": None, "hoodie.index.type": "SIMPLE"}
    options = tables.writer_options(base, version=version, **shape)  # type: ignore[arg-type]
    overwriting = {**options, "hoodie.datasource.write.operation": "insert_overwrite"}
    frame = tables.rows(spark, 0, 20).select("id", "ts", "city")
    tables.upsert(frame, base, options)
    run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=None)
    for each in (overwriting, options):
        tables.upsert(frame, base, each)
    change(spark, base, 6, None)

    archiving = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
    options = {**tables.writer_options(base, version=6, **shape), **archiving}  # type: ignore[arg-type]
    options |= {"hoodie.clean.automatic": "true", "hoodie.archive.fail.on.error": "true"}
    with OldWriter("0.15.0") as old:
        old.write(base, options, [["k99", 5, 502]], "id string, ts long, city int")
    assert {action for _, action in hudi_table(spark, base, None).archived()} >= {"commit", "replacecommit"}
    tables.upsert(frame, base, tables.writer_options(base, version=6, **shape))  # type: ignore[arg-type]
    change(spark, base, version, None)
    assert len(tables.snapshot(spark, base)) == 21
    assert run_job(spark, base, "audit", index=None).details["clean"]


@pytest.mark.parametrize("version", [9, 8])
def test_hudi_0_15_finds_the_values_of_columns_that_schema_on_read_has_renamed(
    spark: SparkSession, base: Path, version: int
) -> None:
    shape = {"table_type": "COPY_ON_WRITE", "partitioned": False, "num_buckets": None, "hoodie.index.type": "SIMPLE"}
    tables.upsert(
        tables.rows(spark, 0, 20).select("id", "ts", "city"),
        base,
        tables.writer_options(base, version=version, **shape),  # type: ignore[arg-type]
    )
    altering(spark, base, RENAME)()
    before = dict(values(spark, base, "town"))
    assert None not in before.values()
    change(spark, base, 6, None)

    options = {**tables.writer_options(base, version=6, **shape), ON_READ: "true"}  # type: ignore[arg-type]
    with OldWriter("0.15.0") as old:
        old.sql(f"SET {ON_READ}=true")
        assert dict(old.read(base, ["id", "town"])) == before
        rows = [["k1", 5, 501], ["k99", 5, 502]]
        old.write(base, options, rows, "id string, ts long, town int")
        expected = {**before, "k1": 501, "k99": 502}
        assert dict(old.read(base, ["id", "town"])) == expected
    assert dict(values(spark, base, "town")) == expected
    newer = tables.rows(spark, 0, 1, ts=9).select("id", "ts", F.lit(503).alias("town"))
    tables.upsert(newer, base, options)
    change(spark, base, version, None)
    assert dict(values(spark, base, "town")) == {**expected, "k0": 503}
    assert run_job(spark, base, "audit", index=None).details["clean"]


@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_archived_instants_are_there_in_each_version(spark: SparkSession, base: Path, table_type: str) -> None:
    shape = {"table_type": table_type, "partitioned": False, "num_buckets": None, "hoodie.index.type": "SIMPLE"}
    options = tables.write_table(spark, base, count=60, updates=4, metadata=False, **shape)  # type: ignore[arg-type]
    if table_type == "MERGE_ON_READ":
        run_job(spark, base, "compaction", index=None)
        tables.upsert(tables.rows(spark, 0, 20, ts=5), base, options)
    run_job(spark, base, "archival", {"retain": 2}, index=None)
    archived, rows = hudi_table(spark, base, None).archived(), tables.snapshot(spark, base)
    assert archived
    for to in (6, 9):
        change(spark, base, to, None)
        assert hudi_table(spark, base, None).archived() == archived
        assert tables.snapshot(spark, base) == rows
    tables.upsert(tables.rows(spark, 0, 30, ts=7), base, options)
    assert run_job(spark, base, "audit", index=None).details["clean"]
