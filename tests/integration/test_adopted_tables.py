"""Tables of odd keys, ages and layouts adopt a bucket index: rows in all columns, and each writer afterwards."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from jobs.errors import RefusedError
from tests.integration import tables
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.old_writer import OldWriter
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import left_behind
from tests.integration.test_bucket_index import COW, MOR, STOPPED, adopt, bucketed, drop, proved

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_KEYGEN = "hoodie.datasource.write.keygenerator.class"
_COMPLEX = "org.apache.hudi.keygen.ComplexKeyGenerator"


def _with_person(rows: DataFrame) -> DataFrame:
    return rows.withColumn("person", F.struct(F.col("id").alias("name"), F.col("city").alias("age")))


def _with_time(rows: DataFrame) -> DataFrame:
    return rows.withColumn("time", F.concat(F.lit("10:"), F.substring("id", 2, 9)))


# The record key, the hash fields, more options of the writer, and the columns that the key needs.
_KEYS: dict[str, tuple[str, str | None, dict[str, str], Callable[[DataFrame], DataFrame]]] = {
    "nested": ("person.name", None, {}, _with_person),
    "nested of a composite": ("person.name,region", "person.name", {_KEYGEN: _COMPLEX}, _with_person),
    "composite": ("id,region", None, {}, lambda rows: rows),
    "the last of a composite": ("id,region", "region", {}, lambda rows: rows),
    "complex of one field": ("id", None, {_KEYGEN: _COMPLEX}, lambda rows: rows),
    "with separators": ("id", None, {}, lambda rows: rows.withColumn("id", F.expr("concat('a:b,c:', id, ',:')"))),
    "number": ("number", None, {}, lambda rows: rows.withColumn("number", F.expr("cast(substring(id, 2) as bigint)"))),
    "date": ("day", None, {}, lambda rows: rows),
    "time": ("at", None, {}, lambda rows: rows),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("key", _KEYS)
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_odd_keys_are_routed_as_a_writer_routes_them(
    spark: SparkSession, base: Path, table_type: str, key: str
) -> None:
    record_key, hashed, more, shaped = _KEYS[key]
    old = tables.writer_options(base, table_type=table_type, num_buckets=None, record_key=record_key, **more)
    tables.upsert(shaped(tables.rows(spark, 0, 200)), base, old)
    tables.upsert(shaped(tables.rows(spark, 50, 100, ts=1)), base, old)
    before = tables.snapshot(spark, base)
    fields = (hashed or record_key).split(",")

    done = adopt(spark, base, num_buckets=3, **({"hash_fields": fields} if hashed else {}))

    index = BucketIndex(3, tuple(fields))
    assert (done["hash_fields"], done["rows"]) == (fields, 200)
    assert tables.in_order(spark, base, 3, ",".join(fields)) == before
    new = bucketed(old, done)
    tables.upsert(shaped(tables.rows(spark, 80, 230, ts=5)), base, new)
    assert len(tables.in_order(spark, base, 3, ",".join(fields))) == 230
    assert run_job(spark, base, "audit", index=index).details["clean"]


@pytest.mark.exhaustive
def test_no_column_is_mistaken_for_that_of_the_bucket(spark: SparkSession, base: Path) -> None:
    old = tables.writer_options(base, table_type=COW, num_buckets=None, partitioned=False, metadata=False)
    tables.upsert(tables.rows(spark, 0, 60).withColumn("groundskeeper_bucket", F.col("city")), base, old)
    before = tables.snapshot(spark, base)
    adopt(spark, base, num_buckets=3)
    assert tables.snapshot(spark, base) == before


@pytest.mark.timeout(120)
def test_keys_that_hudi_cannot_hash_are_refused_before_hudi_loops_on_them(spark: SparkSession, base: Path) -> None:
    old = tables.writer_options(base, table_type=COW, num_buckets=None, record_key="id,time", partitioned=False)
    old[_KEYGEN] = _COMPLEX
    tables.upsert(
        _with_time(tables.rows(spark, 0, 20)), base, {**old, "hoodie.datasource.write.partitionpath.field": ""}
    )
    given = {"action": "adopt", "num_buckets": 3, "hash_fields": ["id"]}
    plan = run_job(spark, base, "bucket_index", given, index=None, declared=STOPPED, dry_run=True).details
    assert [each["type"] for each in plan["refusals"]] == ["keys-without-bucket"]
    with pytest.raises(RefusedError) as caught:
        run_job(spark, base, "bucket_index", given, index=None, declared=STOPPED)
    assert "10:" in caught.value.problem().detail
    assert left_behind(base) == []
    assert adopt(spark, base, num_buckets=3)["rows"] == 20


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("more", "refusal"),
    [
        ({"hoodie.populate.meta.fields": "false"}, "no-meta-fields"),
        ({"hoodie.datasource.write.drop.partition.columns": "TRUE"}, "partition-columns-dropped"),
    ],
)
def test_tables_whose_rows_lack_a_needed_column_are_refused(
    spark: SparkSession, base: Path, more: dict[str, str], refusal: str
) -> None:
    old = tables.writer_options(base, table_type=COW, num_buckets=None, **more)
    tables.upsert(tables.rows(spark, 0, 60), base, {**old, "hoodie.datasource.write.operation": "insert"})
    with pytest.raises(RefusedError) as caught:
        adopt(spark, base, num_buckets=3)
    assert refusal in [each.type for each in caught.value.reasons]
    # Hudi itself would cluster: it writes the partition columns that the table leaves out, and fails without keys.
    for params in ({"sort_by": ["city"]}, {}):
        with pytest.raises(RefusedError) as caught:
            run_job(spark, base, "clustering", params, index=None)
        assert [each.type for each in caught.value.reasons] == [refusal]


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", [MOR, COW])
@pytest.mark.parametrize("version", [9, 6])
def test_a_table_with_a_past_keeps_rows_history_and_statistics(
    spark: SparkSession, base: Path, table_type: str, version: int
) -> None:
    """The table has a column more and a wider one since its first files, file groups and partitions that were replaced,
    a partition without rows, and column statistics."""
    statistics = {"hoodie.metadata.index.column.stats.enable": "true"}
    old = tables.writer_options(base, table_type=table_type, version=version, num_buckets=None, **statistics)
    narrow = tables.rows(spark, 0, 150, partitions=5).drop("note")
    tables.upsert(narrow, base, old)
    run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=None)
    overwrite = {**old, "hoodie.datasource.write.operation": "insert_overwrite"}
    wide = tables.rows(spark, 0, 200, ts=1, partitions=5).withColumn("city", F.col("city").cast("long"))
    tables.upsert(wide.where("dt = '2026-01-02'"), base, overwrite)
    gone = wide.where("dt = '2026-01-03'")
    tables.upsert(gone, base, {**old, "hoodie.datasource.write.operation": "delete_partition"})
    tables.upsert(wide.where("dt = '2026-01-04'"), base, old)
    deleted = wide.where("dt = '2026-01-04'")
    tables.upsert(deleted, base, {**old, "hoodie.datasource.write.operation": "delete"})
    tables.upsert(wide.where("dt = '2026-01-05' and fare > 100"), base, old)
    before = tables.snapshot(spark, base)
    last = max(row[0] for row in spark.read.format("hudi").load(str(base)).select("_hoodie_commit_time").collect())
    instants = hudi_table(spark, base, None).instants()
    read = max(each.completed if version > 6 else each.requested for each in instants)

    done = adopt(spark, base, num_buckets=3)

    index = BucketIndex(3, ("id",))
    assert proved(spark, base, index) == before
    assert tables.snapshot(spark, base, metadata=True) == tables.snapshot(spark, base, metadata=False)
    assert left_behind(base) == []
    # A reader that has read all commits sees no row again, and one of the past sees the past.
    since = spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
    since = since.option("hoodie.datasource.read.begin.instanttime", read)
    assert since.load(str(base)).where(f"_hoodie_commit_time > '{last}'").count() == 0
    assert since.load(str(base)).count() == 0
    past = spark.read.format("hudi").option("as.of.instant", read).load(str(base))
    assert past.count() == len(before)
    for low, high in ((0, 100), (300, 400), (900, 1000)):
        sought = f"city >= {low} and city < {high}"
        skipping = spark.read.format("hudi").option("hoodie.metadata.enable", "true")
        found = skipping.option("hoodie.enable.data.skipping", "true").load(str(base)).where(sought).count()
        everything = spark.read.format("hudi").option("hoodie.metadata.enable", "false").load(str(base))
        assert found == everything.where(sought).count()
    new = bucketed(old, done)
    tables.upsert(wide.where("dt in ('2026-01-01', '2026-01-03', '2026-01-04')"), base, new)
    rows = proved(spark, base, index)
    if table_type == MOR:
        run_job(spark, base, "compaction", index=index)
    run_job(spark, base, "cleaning", {"retain": 1}, index=index)
    run_job(spark, base, "archival", {"retain": 2}, index=index)
    assert len(proved(spark, base, index)) == len(rows)
    drop(spark, base, index)
    tables.upsert(wide, base, old)
    assert tables.duplicates(spark, base) == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize(("release", "version"), [("0.15.0", 6), ("1.0.2", 6), ("1.0.2", 8), ("1.1.1", 9)])
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_an_older_writer_goes_on_with_the_new_options_and_gives_the_index_up_again(
    spark: SparkSession, base: Path, table_type: str, release: str, version: int
) -> None:
    old = tables.writer_options(base, table_type=table_type, version=version, num_buckets=None)
    # Hudi before 1.0 merges the logs of a merge-on-read table by other rules, so the job refuses to merge them.
    declared = {**STOPPED, "writers_hudi_version": release, "readers_hudi_version": release}
    with closing(OldWriter(release)) as writer:
        writer.upsert(base, old, 0, 150, create=True)
        if table_type == COW or release >= "1":
            writer.upsert(base, old, 100, 160, ts=2)
        before = writer.snapshot(base)
        given = {"action": "adopt", "num_buckets": 4}
        done = run_job(spark, base, "bucket_index", given, index=None, declared=declared).details
        assert writer.snapshot(base) == before
        new = bucketed(old, done)
        writer.upsert(base, new, 120, 200, ts=5)
        rows = writer.snapshot(base)
        assert len(rows) == len(tables.in_order(spark, base, 4)) == 200
        if release >= "1":
            assert tables.snapshot(spark, base) == rows
        assert run_job(spark, base, "audit", declared=declared).details["clean"]
        tables.upsert(tables.rows(spark, 150, 210, ts=6), base, new)
        assert len(tables.in_order(spark, base, 4)) == 210
        assert run_job(spark, base, "audit", declared=declared).details["clean"]
        # hudi-rs 0.5 does not read a metadata table with log blocks of both 1.0 and 1.2.
        assert release >= "1" or rows_by_hudi_rs(base) == rows_by_spark(spark, base)
        run_job(spark, base, "bucket_index", {"action": "drop"}, declared=declared)
        writer.upsert(base, {**old, "hoodie.index.type": "SIMPLE"}, 190, 230, ts=8)
        assert len(writer.snapshot(base)) == 230
    assert tables.duplicates(spark, base) == 0
    assert run_job(spark, base, "audit", index=None, declared=declared).details["clean"]
