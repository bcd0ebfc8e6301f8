"""Tables of several kinds get other numbers of buckets, and their readers and writers go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from tests.integration import tables
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark, rows_of
from tests.integration.run import proved, run_job
from tests.integration.tables import completed_files
from tests.integration.test_bucket_count import COW, MOR, ONCE, THROUGH, count_buckets, index_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.exhaustive


def odd_keys(spark: SparkSession, first: int, last: int, *, ts: int = 0) -> DataFrame:
    """Returns rows whose key fields have nulls, empty texts and the separators of composite keys."""
    number = F.expr("cast(substring(id, 2) as int)")
    regions = (F.lit(None), F.lit(""), F.lit("a:b,c"), F.lit("region:x"), F.lit("ü😀,"))
    region = F.concat(F.lit("r"), number % 9)
    for rest, value in enumerate(regions):
        region = F.when(number % 7 == rest, value).otherwise(region)
    key = F.when(number % 5 == 0, F.concat(F.lit("id:k,"), number)).otherwise(F.col("id"))
    return tables.rows(spark, first, last, ts=ts).withColumn("region", region).withColumn("id", key)


@pytest.mark.parametrize(("table_type", "hash_fields"), [(COW, "region"), (MOR, "region,id")])
def test_rows_with_odd_composite_keys_go_to_their_buckets(
    spark: SparkSession, base: Path, table_type: str, hash_fields: str
) -> None:
    shape = {"table_type": table_type, "record_key": "id,region", "hash_fields": hash_fields, "num_buckets": 6}
    options = tables.writer_options(base, **shape)
    tables.upsert(odd_keys(spark, 0, 300), base, options)
    tables.upsert(odd_keys(spark, 0, 40, ts=1), base, options)
    index = BucketIndex(6, tuple(hash_fields.split(",")))
    for way, number in ((ONCE, 4), (THROUGH, 7)):
        before = tables.snapshot(spark, base)
        run_job(spark, base, "bucket_count", {"num_buckets": number, "way": way}, index=index)
        assert tables.in_order(spark, base, number, hash_fields) == before
        assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
        gone = odd_keys(spark, 280, 300, ts=9)
        tables.upsert(gone, base, {**options, "hoodie.datasource.write.operation": "delete"})
        assert len(tables.in_order(spark, base, number, hash_fields)) == 280
        tables.upsert(odd_keys(spark, 270, 300, ts=10), base, options)
        assert len(tables.in_order(spark, base, number, hash_fields)) == 300
    assert run_job(spark, base, "audit", index=index).details["clean"]


@pytest.mark.parametrize("table_type", [MOR, COW])
def test_readers_of_the_past_see_the_rows_of_their_time(spark: SparkSession, base: Path, table_type: str) -> None:
    shape = {"num_buckets": 6, "table_type": table_type, "copied": False}
    options = tables.write_table(spark, base, count=300, updates=1, **shape)
    index = index_of(6)
    reader = spark.read.format("hudi")

    def rows_as_of(instant: str) -> list[str]:
        return rows_of(reader.option("as.of.instant", instant).load(str(base)))

    def rows_since(begin: str) -> int:
        incremental = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": begin}
        return int(spark.read.format("hudi").options(**incremental).load(str(base)).count())

    past = {path.name.split("_")[0]: rows_as_of(path.name.split("_")[0]) for path in completed_files(base)}
    saved = str(run_job(spark, base, "savepoint", index=index).details["savepoint"])
    count_buckets(spark, base, 6, 4, way=THROUGH)
    (switch,) = (path.stem.split("_") for path in completed_files(base) if path.suffix == ".replacecommit")
    assert {instant: rows_as_of(instant) for instant in past} == past
    assert rows_as_of(switch[0]) == past[saved]
    assert (rows_since("000"), rows_since(switch[1])) == (300, 0)
    for ts in range(20, 23):
        tables.upsert(tables.rows(spark, 0, 10, ts=ts), base, options)
    assert (rows_since("000"), rows_since(switch[1])) == (300, 10)
    run_job(spark, base, "cleaning", {"retain": 1}, index=index)
    run_job(spark, base, "archival", {"retain": 2}, index=index)
    tables.upsert(tables.rows(spark, 0, 350, ts=40), base, options)
    assert len(proved(spark, base, 4, index)) == 350
    order = {"savepoint": saved, "table_name": "test"}
    plan = run_job(spark, base, "restore", order, index=index, dry_run=True, writers_stopped=True).details
    assert "expanded-since" in {each["type"] for each in plan["refusals"]}


@pytest.mark.parametrize("table_type", [MOR, COW])
def test_queries_that_skip_files_by_statistics_find_all_rows(spark: SparkSession, base: Path, table_type: str) -> None:
    options = tables.writer_options(base, table_type=table_type, num_buckets=6)
    options["hoodie.metadata.index.column.stats.enable"] = "true"
    tables.upsert(tables.rows(spark, 0, 300), base, options)
    tables.upsert(tables.rows(spark, 0, 50, ts=1), base, options)
    before = tables.in_order(spark, base, 6)
    filters = ("city between 100 and 200", "ts = 1", "note is null", "id = 'k7'")
    for way, number in ((ONCE, 4), (THROUGH, 9)):
        count_buckets(spark, base, 6, number, way=way)
        assert tables.in_order(spark, base, number) == before
        for skipping in ("true", "false"):
            skips = {"hoodie.enable.data.skipping": skipping, "hoodie.metadata.enable": "true"}
            found = spark.read.format("hudi").options(**skips).load(str(base))
            assert [found.where(each).count() for each in filters] == [30, 50, 60, 1]
    assert run_job(spark, base, "metadata_table", {"action": "validate"}, index=index_of(6)).details["findings"] == []
    tables.upsert(tables.rows(spark, 0, 350, ts=3), base, options)
    assert len(proved(spark, base, 9, index_of(6))) == 350
