"""Tests a sync to a real Hive metastore: its changes, a second sync without changes, and its refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import CancelledError, MetastoreUnavailableError, RefusedError
from jobs.job_context import JobContext
from tests.integration import metastore_reader, tables
from tests.integration.independent import rows_by_spark
from tests.integration.run import run_job
from tests.support import hive_metastore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.hive_metastore import Server

PLAIN = {"table_type": "COPY_ON_WRITE", "num_buckets": None, "metadata": False}
KEYGEN = "hoodie.datasource.write.keygenerator.class"
FIELDS = "hoodie.datasource.write.partitionpath.field"
HIVE_STYLE = {"hoodie.datasource.write.hive_style_partitioning": "true"}


@pytest.fixture(scope="module")
def metastore(spark: SparkSession) -> Iterator[Server]:
    with hive_metastore.running(spark) as server:
        yield server


def params_into(metastore: Server, database: str, **more: Any) -> dict[str, Any]:
    return {"metastore_uris": metastore.uris, "database": database, **more}


def in_metastore(spark: SparkSession, metastore: Server, name: str) -> tuple[dict[str, str], dict[str, str], str]:
    """Returns columns, partitions (name -> folder below the table) and the synced commit, by Hive's own client."""
    jvm: Any = spark._jvm
    hive = jvm.org.apache.hadoop.hive
    conf = hive.conf.HiveConf()
    conf.set("hive.metastore.uris", metastore.uris)
    client = hive.metastore.HiveMetaStoreClient(conf)
    try:
        table = client.getTable(*name.split("."))
        root = str(table.getSd().getLocation())
        columns = {each.getName(): each.getType() for each in table.getSd().getCols()}
        listed = client.listPartitions(*name.split("."), -1) if table.getPartitionKeys() else []
        partitions = {
            "/".join(each.getValues()): str(each.getSd().getLocation()).removeprefix(root).strip("/") for each in listed
        }
        return columns, partitions, str(table.getParameters()["last_commit_time_sync"])
    finally:
        client.close()


def delete_partition(spark: SparkSession, base: Path, options: dict[str, str], path: str) -> None:
    deleting = {
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": path,
    }
    tables.upsert(tables.rows(spark, 0, 1), base, {**options, **deleting})


@pytest.mark.exhaustive
def test_a_sync_brings_the_metastore_up_to_the_table(spark: SparkSession, metastore: Server, base: Path) -> None:
    options = tables.write_table(spark, base, count=30, **PLAIN)
    planned = run_job(spark, base, "sync", params_into(metastore, "lake"), dry_run=True).details
    assert planned["refusals"] == []
    [table] = planned["tables"]
    assert (table["table"], table["created"], table["partitions_added"]) == ("lake.trips", True, 3)
    assert table["synced"] == {"before": None, "after": None}

    done = run_job(spark, base, "sync", params_into(metastore, "lake")).details

    columns, partitions, synced = in_metastore(spark, metastore, "lake.trips")
    assert partitions == {f"2026-01-0{day}": f"2026-01-0{day}" for day in (1, 2, 3)}
    assert done["tables"][0]["synced"] == {"before": None, "after": synced}
    assert columns["city"] == "int"
    assert "dt" not in columns
    # A writer drops a partition, and another one adds a column and a partition.
    delete_partition(spark, base, options, "2026-01-02")
    new = tables.rows(spark, 30, 33).withColumn("dt", F.lit("2026-02-01")).withColumn("extra", F.expr("nullif(7, 0)"))
    tables.upsert(new, base, options)
    planned = run_job(spark, base, "sync", params_into(metastore, "lake"), dry_run=True).details
    done = run_job(spark, base, "sync", params_into(metastore, "lake")).details
    for [table] in (planned["tables"], done["tables"]):
        assert table["columns_added"] == ["extra int"]
        assert table["added_partitions"] == ["2026-02-01"]
        assert table["dropped_partitions"] == ["2026-01-02"]
        assert table["synced"]["before"] == synced
    columns, partitions, synced = in_metastore(spark, metastore, "lake.trips")
    assert set(partitions) == {"2026-01-01", "2026-01-03", "2026-02-01"}
    assert columns["extra"] == "int"
    assert done["tables"][0]["synced"]["after"] == synced == done["last_instant"]
    again = run_job(spark, base, "sync", params_into(metastore, "lake")).details
    assert (again["changed"], again["tables"][0]["synced"]) == (False, {"before": synced, "after": synced})


BY_TWO_FIELDS = {
    FIELDS: "region,dt",
    KEYGEN: "org.apache.hudi.keygen.ComplexKeyGenerator",
    # Older versions of Hudi wrote such tables.
    "hoodie.write.complex.keygen.validation.enable": "false",
}
SHAPES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "plain": ({**PLAIN, "partitioned": False}, set()),
    "hive_style": ({**PLAIN, **HIVE_STYLE}, {f"2026-01-0{day}" for day in (1, 2, 3)}),
    "two_fields": (
        {**PLAIN, **HIVE_STYLE, **BY_TWO_FIELDS},
        {f"r{number % 4}/2026-01-0{number % 3 + 1}" for number in range(12)},
    ),
    "two_bare_fields": (
        {"version": 6, **BY_TWO_FIELDS},
        {f"r{number % 4}/2026-01-0{number % 3 + 1}" for number in range(12)},
    ),
    "merged": ({"version": 9}, {f"2026-01-0{day}" for day in (1, 2, 3)}),
}


@pytest.mark.exhaustive
def test_spark_sql_reads_the_same_rows_through_the_metastore(
    spark: SparkSession, metastore: Server, tmp_path: Path
) -> None:
    bases = {name: tmp_path / name for name in SHAPES}
    for name, (shape, values) in SHAPES.items():
        tables.write_table(spark, bases[name], count=30, updates=1, **shape)
        run_job(spark, bases[name], "sync", params_into(metastore, "shapes"))
        assert set(in_metastore(spark, metastore, f"shapes.{name}")[1]) == values
    days = tmp_path / "days"
    options = tables.writer_options(days, **PLAIN)
    frame = tables.rows(spark, 0, 30).withColumn("dt", F.regexp_replace("dt", "-", "/"))
    frame.write.format("hudi").options(**options).save(str(days))
    run_job(spark, days, "sync", params_into(metastore, "shapes"))
    partitions = in_metastore(spark, metastore, "shapes.days")[1]
    assert partitions == {f"2026-01-0{day}": f"2026/01/0{day}" for day in (1, 2, 3)}

    read = metastore_reader.read(metastore.uris, [f"shapes.{name}" for name in bases], tmp_path)

    for name, base in bases.items():
        assert read[f"shapes.{name}"] == rows_by_spark(spark, base), name
        assert len(read[f"shapes.{name}"]) == 30


@pytest.mark.exhaustive
def test_after_each_change_of_the_table_a_sync_shows_the_same_rows(
    spark: SparkSession, metastore: Server, tmp_path: Path
) -> None:
    base = tmp_path / "life"
    options = tables.write_table(spark, base, count=60, updates=1)
    target = params_into(metastore, "life")
    run_job(spark, base, "sync", target)
    run_job(spark, base, "bucket_expansion", {"factor": 2})
    assert run_job(spark, base, "sync", target, dry_run=True).details["changed"] is False
    run_job(spark, base, "sync", target)
    expanded = {**options, "hoodie.bucket.index.num.buckets": "8"}
    delete_partition(spark, base, expanded, "2026-01-01")
    done = run_job(spark, base, "sync", target).details
    assert [each["dropped_partitions"] for each in done["tables"]] == [["2026-01-01"]] * 3
    # Between two syncs one partition is written again, and another one is overwritten.
    delete_partition(spark, base, expanded, "2026-01-02")
    tables.upsert(tables.rows(spark, 60, 90, ts=9).withColumn("extra", F.expr("nullif(1.5D, 0D)")), base, expanded)
    overwriting = {**expanded, "hoodie.datasource.write.operation": "insert_overwrite"}
    overwritten = (
        tables.rows(spark, 90, 93).withColumn("dt", F.lit("2026-01-03")).withColumn("extra", F.expr("nullif(2.5D, 0D)"))
    )
    tables.upsert(overwritten, base, overwriting)
    run_job(spark, base, "compaction")
    done = run_job(spark, base, "sync", target).details
    assert [each["added_partitions"] for each in done["tables"]] == [["2026-01-01"]] * 3
    assert all("dropped_partitions" not in each for each in done["tables"])
    assert run_job(spark, base, "sync", target).details["changed"] is False
    names = ["life.life", "life.life_rt", "life.life_ro"]
    read = metastore_reader.read(metastore.uris, names, tmp_path)
    by_path = rows_by_spark(spark, base)
    assert len(by_path) == 23
    # All logs are compacted, so the table without logs has the same rows.
    assert [read[name] == by_path for name in names] == [True] * 3


@pytest.mark.exhaustive
@pytest.mark.parametrize(("strategy", "merged"), [("RT", True), ("RO", False)])
def test_a_sync_can_make_a_single_metastore_table_of_a_merge_on_read_table(
    spark: SparkSession, metastore: Server, tmp_path: Path, strategy: str, merged: bool
) -> None:
    base = tmp_path / "single"
    tables.write_table(spark, base, count=60, updates=1)
    target = params_into(metastore, f"single_{strategy.lower()}", strategy=strategy)
    [done] = run_job(spark, base, "sync", target).details["tables"]
    name = f"single_{strategy.lower()}.single"
    assert done["table"] == name
    read = metastore_reader.read(metastore.uris, [name], tmp_path)
    assert (read[name] == rows_by_spark(spark, base)) is merged
    assert len(read[name]) == 60


@pytest.mark.exhaustive
def test_a_sync_goes_on_when_the_metastore_is_back(spark: SparkSession, metastore: Server, tmp_path: Path) -> None:
    base = tmp_path / "away"
    tables.write_table(spark, base, count=30, **PLAIN)
    with metastore.away(), pytest.raises(MetastoreUnavailableError) as caught:
        run_job(spark, base, "sync", params_into(metastore, "away"))
    assert caught.value.problem().retriable
    assert "refused" in caught.value.detail

    class ContextWithoutMetastore(JobContext):
        def step(self, name: str, *, bytes_total: int = 0) -> None:
            super().step(name, bytes_total=bytes_total)
            if name == "syncing with the metastore":
                metastore.process._kill()

    try:
        with pytest.raises(MetastoreUnavailableError) as caught:
            run_job(spark, base, "sync", params_into(metastore, "away"), context=ContextWithoutMetastore())
        assert "\tat " not in caught.value.detail
    finally:
        metastore.process._start()
    assert run_job(spark, base, "sync", params_into(metastore, "away")).details["tables"][0]["partitions_added"] == 3


class ContextThatDiesAt(JobContext):
    def __init__(self, last: str) -> None:
        super().__init__()
        self._last = last

    def step(self, name: str, *, bytes_total: int = 0) -> None:
        super().step(name, bytes_total=bytes_total)
        if name == self._last:
            raise CancelledError


@pytest.mark.exhaustive
def test_the_next_attempt_completes_the_sync_of_a_dead_one(
    spark: SparkSession, metastore: Server, tmp_path: Path
) -> None:
    base, target = tmp_path / "halves", params_into(metastore, "halves")
    options = tables.write_table(spark, base, count=30, **PLAIN)
    delete_partition(spark, base, options, "2026-01-02")
    with pytest.raises(CancelledError):
        run_job(spark, base, "sync", target, context=ContextThatDiesAt("comparing the partitions"))
    # Only Hudi's tool takes the folder for a partition.
    assert set(in_metastore(spark, metastore, "halves.halves")[1]) == {f"2026-01-0{day}" for day in (1, 2, 3)}
    [done] = run_job(spark, base, "sync", target).details["tables"]
    assert done["dropped_partitions"] == ["2026-01-02"]
    assert set(in_metastore(spark, metastore, "halves.halves")[1]) == {"2026-01-01", "2026-01-03"}


@pytest.mark.exhaustive
def test_a_sync_that_the_metastore_would_refuse_is_refused_before_anything_changes(
    spark: SparkSession, metastore: Server, tmp_path: Path
) -> None:
    base, other = tmp_path / "one" / "trips", tmp_path / "two" / "trips"
    tables.write_table(spark, base, count=30, **PLAIN)
    tables.write_table(spark, other, count=30, **PLAIN)
    run_job(spark, base, "sync", params_into(metastore, "refused"))
    before = in_metastore(spark, metastore, "refused.trips")
    retyped = tmp_path / "three" / "trips"
    frame = tables.rows(spark, 0, 9).withColumn("note", F.lit(1))
    frame.write.format("hudi").options(**tables.writer_options(retyped, **PLAIN)).save(str(retyped))
    cases = [
        (other, {}, "metastore-table-elsewhere"),
        (base, {"partition_fields": ["region"]}, "metastore-partitioning-differs"),
        (base, {"partition_fields": ["region", "dt"]}, "partition-values-unsuited"),
        (base, {"partition_fields": ["city"]}, "partition-values-unsuited"),
        (base, {"partition_extractor": "day"}, "partition-values-unsuited"),
        (base, {"database": "none", "create_database": False}, "metastore-database-missing"),
    ]
    for path, params, reason in cases:
        target = params_into(metastore, "refused") | params
        [refusal] = run_job(spark, path, "sync", target, dry_run=True).details["refusals"]
        assert refusal["type"] == reason
        with pytest.raises(RefusedError) as caught:
            run_job(spark, path, "sync", target)
        assert caught.value.problem().type == reason
    # Now another table lies at the path, in which one column has another type.
    base.rename(tmp_path / "gone")
    retyped.rename(base)
    [refusal] = run_job(spark, base, "sync", params_into(metastore, "refused"), dry_run=True).details["refusals"]
    assert refusal["type"] == "metastore-columns-incompatible"
    assert "note string to int" in refusal["detail"]
    assert in_metastore(spark, metastore, "refused.trips") == before
