"""A contraction merges the slices of several buckets into one base file, and changes nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from jobs.errors import WritersActiveError
from jobs.protocol.writer_engines import PRUNING
from tests.integration import tables
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.long_session import LongSession
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import left_behind
from tests.integration.writers import At, HeldWriter, let_heartbeats_expire

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, SparkSession

MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"
INDEX = BucketIndex(8, ("id",))
EACH_TYPE = [pytest.param(MOR, 9), pytest.param(COW, 9), pytest.param(MOR, 6), pytest.param(COW, 6)]


def test_eight_buckets_become_two_with_the_same_rows_and_writers_go_on(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=300, num_buckets=8, table_type=MOR, partitioned=False)
    # Only some buckets have logs.
    tables.upsert(tables.rows(spark, 0, 4, ts=1), base, options)
    before = tables.snapshot(spark, base)

    # The job need not wait for a pause of the writer.
    result = run_job(spark, base, "bucket_contraction", {"factor": 4, "settle_seconds": 0}, index=INDEX).details

    assert result["file_groups"] == {"before": 8, "after": 2}
    assert (result["rows"], result["buckets"], result["files_written"]) == (300, [8, 2], 2)
    assert tables.in_order(spark, base, 2) == before
    audit = run_job(spark, base, "audit", index=INDEX).details
    assert (audit["clean"], audit["key_digest"]) == (True, result["key_digest"])
    assert len(rows_by_hudi_rs(base)) == 300
    assert left_behind(base) == []
    # The writer's options still have eight buckets.
    tables.upsert(tables.rows(spark, 200, 400, ts=2), base, options)
    assert len(tables.in_order(spark, base, 2)) == 400


@pytest.mark.exhaustive
@pytest.mark.parametrize(("table_type", "version"), EACH_TYPE)
@pytest.mark.parametrize("partitioned", [True, False])
def test_an_expansion_and_a_contraction_give_the_rows_that_were_there(
    spark: SparkSession, base: Path, table_type: str, version: int, partitioned: bool
) -> None:
    shape = {"table_type": table_type, "version": version, "partitioned": partitioned}
    options = tables.write_table(spark, base, count=300, num_buckets=4, updates=1, **shape)
    index = BucketIndex(4, ("id",))
    before = tables.snapshot(spark, base)

    expanded = run_job(spark, base, "bucket_expansion", {"factor": 3}, index=index).details
    plan = run_job(spark, base, "bucket_contraction", {"num_buckets": 2}, index=index, dry_run=True).details
    contracted = run_job(spark, base, "bucket_contraction", {"num_buckets": 2}, index=index).details

    assert (expanded["buckets"], contracted["buckets"]) == ([4, 12], [12, 2])
    assert (plan["refusals"], plan["file_groups"]) == ([], contracted["file_groups"])
    assert (contracted["rows"], contracted["key_digest"]) == (expanded["rows"], expanded["key_digest"])
    assert tables.in_order(spark, base, 2) == before
    # Every service still works on the merged files, and so do a writer's updates and deletes.
    tables.upsert(tables.rows(spark, 0, 100, ts=7), base, options)
    gone = tables.rows(spark, 100, 150, ts=8)
    tables.upsert(gone, base, {**options, "hoodie.datasource.write.operation": "delete"})
    if table_type == MOR:
        run_job(spark, base, "compaction", index=index)
    run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=index)
    run_job(spark, base, "cleaning", {"retain": 1}, index=index)
    assert len(tables.in_order(spark, base, 2)) == 250
    assert run_job(spark, base, "audit", index=index).details["clean"]
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    run_job(spark, base, "bucket_expansion", {"factor": 2}, index=index)
    assert len(proved(spark, base, 4, index)) == 250


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_partitions_with_different_numbers_of_buckets_get_the_same_number_again(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    options = tables.write_table(spark, base, count=300, num_buckets=4, table_type=table_type)
    index = BucketIndex(4, ("id",))
    run_job(spark, base, "bucket_expansion", {"factor": 2, "partitions": ["2026-01-01"]}, index=index)
    before = tables.snapshot(spark, base)

    some = {"num_buckets": 2, "partitions": [{"prefix": "2026-01-02"}]}
    run_job(spark, base, "bucket_contraction", some, index=index)
    table = hudi_table(spark, base, index)
    rules = table.bucket_rules()
    assert rules is not None
    paths = ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert [rules.buckets_of(path) for path in paths] == [8, 2, 4]
    assert {path: len(slices(table, path)) for path in paths} == {paths[0]: 8, paths[1]: 2, paths[2]: 4}
    refused = run_job(spark, base, "bucket_contraction", {"num_buckets": 4}, index=index, dry_run=True).details
    assert refused["refusals"][0]["type"] == "num-buckets-not-a-divisor"
    tables.upsert(tables.rows(spark, 0, 40, ts=0), base, options)

    result = run_job(spark, base, "bucket_contraction", {"num_buckets": 2}, index=index).details

    # The partition that already has two buckets is not changed.
    assert result["partitions"] == 2
    assert len(tables.in_order(spark, base, 2)) == len(before) == 300
    tables.upsert(tables.rows(spark, 0, 350, ts=6), base, options)
    assert len(proved(spark, base, 2, index)) == 350
    # All partitions have one number now, so the hashing config may go once every writer has it.
    told = BucketIndex(2, ("id",))
    run_job(spark, base, "finish_expansion", index=told)
    tables.upsert(tables.rows(spark, 300, 360, ts=7), base, {**options, "hoodie.bucket.index.num.buckets": "2"})
    assert len(proved(spark, base, 2, told)) == 360


def slices(table: object, partition: str) -> list[object]:
    return [item for item in table.file_slices() if item.partition == partition]  # type: ignore[attr-defined]


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_files_of_several_schemas_are_merged_as_hudi_reads_them(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    options = tables.write_table(spark, base, count=300, num_buckets=8, table_type=table_type)
    wider = tables.rows(spark, 0, 6, ts=1).withColumn("tip", F.when(F.col("ts") == 1, 1.5))
    tables.upsert(wider, base, options)
    if table_type == MOR:
        run_job(spark, base, "compaction", index=INDEX)
    schemas = {tuple(pq.read_schema(path).names) for path in base.glob("2026*/*.parquet")}
    assert len(schemas) == 2
    before = tables.snapshot(spark, base)

    result = run_job(spark, base, "bucket_contraction", {"num_buckets": 1}, index=INDEX).details

    assert result["file_groups"]["after"] == 3
    assert tables.in_order(spark, base, 1) == before
    assert spark.read.format("hudi").load(str(base)).where("tip = 1.5").count() == 6
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    assert left_behind(base) == []
    tables.upsert(tables.rows(spark, 0, 350, ts=6).withColumn("tip", F.when(F.col("ts") == 6, 2.5)), base, options)
    assert len(proved(spark, base, 1, INDEX)) == 350


@pytest.mark.exhaustive
@pytest.mark.parametrize("retries", [True, False])
def test_a_write_to_buckets_that_will_be_gone_is_waited_for_though_hudi_sees_no_conflict(
    spark: SparkSession, base: Path, retries: bool
) -> None:
    """Hudi's conflict detection considers only the files that a commit writes, and the job writes none in bucket 5."""
    options = tables.write_table(spark, base, count=300, num_buckets=8)
    high = tables.rows(spark, 0, 300, ts=5).where(in_buckets(spark, 8, {4, 5, 6, 7}))
    many = high.count()
    writer = HeldWriter(high, base, options).start()
    params = {"factor": 2, "wait_seconds": 3}
    with pytest.raises(WritersActiveError, match="in flight"):
        run_job(spark, base, "bucket_contraction", params, index=INDEX, writers_retry_conflicts=retries)
    assert left_behind(base) == []

    context = At("waiting for writers", lambda: writer.let_go_after(2))
    params = {"factor": 2, "wait_seconds": 100}
    run_job(spark, base, "bucket_contraction", params, index=INDEX, writers_retry_conflicts=retries, context=context)

    writer.finish()
    assert len(proved(spark, base, 4, INDEX)) == 300
    assert spark.read.format("hudi").load(str(base)).where("ts = 5").count() == many


def in_buckets(spark: SparkSession, number: int, wanted: set[int]) -> Column:
    identifier = spark._jvm.org.apache.hudi.index.bucket.BucketIdentifier  # type: ignore[union-attr]
    keys = [f"k{each}" for each in range(300) if identifier.getBucketId(f"k{each}", "id", number) in wanted]
    return F.col("id").isin(keys)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("table_type", "version"), [(MOR, 9), (COW, 9), (MOR, 6)])
def test_an_update_of_an_open_session_is_repaired_or_fails(
    spark: SparkSession, base: Path, table_type: str, version: int
) -> None:
    options = tables.write_table(spark, base, count=300, num_buckets=8, table_type=table_type, version=version)
    session = LongSession(spark, base, {**options, PRUNING: "false"})
    run_job(spark, base, "bucket_contraction", {"factor": 4}, index=INDEX)
    before = tables.snapshot(spark, base)
    update = "UPDATE {table} SET fare = -1.0, ts = 5 WHERE city IN (%s)"

    # Hudi cannot write rows whose locations are in removed buckets, so nothing is committed.
    with pytest.raises(Py4JJavaError, match="out of bounds"):
        session.run(update % cities_in(spark, {3, 5}))
    assert tables.snapshot(spark, base) == before
    # The other rows go to replaced file groups.
    low = cities_in(spark, {0, 1})
    session.run(update % low)

    audit = run_job(spark, base, "audit", index=INDEX).details
    assert not audit["clean"]
    (stale,) = audit["stale_writes"]
    let_heartbeats_expire(base)
    result = run_job(spark, base, "repair", index=INDEX)

    assert result.details["repaired"] == [stale["instant"]]
    assert len(tables.in_order(spark, base, 2)) == 300
    assert run_job(spark, base, "audit", index=INDEX).details["clean"]
    is_updated = F.expr(f"city IN ({low})")
    expected = tables.rows(spark, 0, 300).withColumn("fare", F.when(is_updated, -1.0).otherwise(F.col("fare")))
    expected = expected.withColumn("ts", F.when(is_updated, 5).otherwise(F.col("ts")).cast("long"))
    found = spark.read.format("hudi").load(str(base)).select(*expected.columns)
    assert sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)


def cities_in(spark: SparkSession, buckets: set[int]) -> str:
    """Returns the cities, which are as unique as the keys, of the rows in these of eight buckets."""
    frame = tables.rows(spark, 0, 300).where(in_buckets(spark, 8, buckets)).select("city")
    return ", ".join(str(row[0]) for row in frame.collect())
