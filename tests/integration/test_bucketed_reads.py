"""Reads by buckets have Spark's own rows, without an exchange, or say why they fall back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from groundskeeper_spark import Table, bucketed
from tests.integration.tables import writer_options

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

KEY = ("id",)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, Table]:
    """A partitioned table with logs and deletes and four buckets, and one without partitions and eight."""
    folder = tmp_path_factory.mktemp("bucketed")
    rows = spark.range(600).select(
        F.when(F.col("id") % 7 == 0, F.concat(F.lit("é😀"), "id")).otherwise(F.col("id").cast("string")).alias("id"),
        F.lit(1).alias("ts"),
        F.concat(F.lit("d"), F.col("id") % 2).alias("dt"),
        F.when(F.col("id") % 5 != 0, F.col("id")).alias("v"),
    )
    left, right = folder / "left", folder / "right"
    _write(rows.where("ts = 1"), left, num_buckets=4)
    _write(rows.where("v % 3 = 0").withColumn("ts", F.lit(2)).withColumn("v", F.col("v") * 10), left, num_buckets=4)
    _write(rows.where("v % 11 = 0"), left, num_buckets=4, **{"hoodie.datasource.write.operation": "delete"})
    other = rows.where("v is null or v > 200").withColumnRenamed("v", "w").drop("dt")
    _write(other, right, num_buckets=8, partitioned=False, table_type="COPY_ON_WRITE")
    return Table(str(left), KEY, 4), Table(str(right), KEY, 8)


def _write(rows: DataFrame, path: Path, **options: Any) -> None:
    rows.write.format("hudi").options(**writer_options(path, **options)).mode("append").save(str(path))


def _sorted(rows: DataFrame) -> list[str]:
    return sorted(map(str, rows.collect()))


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_a_join_has_the_rows_of_spark_without_an_exchange(
    spark: SparkSession, tables: tuple[Table, Table], how: str
) -> None:
    found = bucketed.join(spark, *tables, ["id"], how, columns=(["v"], ["w"]))
    left, right = (spark.read.format("hudi").load(table.path) for table in tables)
    assert found.fallback is None
    assert "Exchange" not in found.plan
    assert "SortMergeJoin" in found.plan
    assert found.rows.rdd.getNumPartitions() == 4
    assert _sorted(found.rows) == _sorted(left.select("id", "v").join(right.select("id", "w"), "id", how))


def test_a_third_table_loses_no_rows(spark: SparkSession, tables: tuple[Table, Table]) -> None:
    found = bucketed.join(spark, *tables, ["id"], columns=(["v"], ["w"]))
    third = spark.read.format("hudi").load(tables[0].path).select("id", F.col("ts").alias("third"))
    expected = found.rows.count()
    assert expected
    assert found.rows.hint("merge").join(third.repartition(4, "id"), "id").count() == expected


def test_groups_have_the_rows_of_spark_without_an_exchange(spark: SparkSession, tables: tuple[Table, Table]) -> None:
    aggregates = [F.count("*").alias("n"), F.sum("v").alias("sum")]
    found = bucketed.group_by(spark, tables[0], ["id"], aggregates, where=F.col("ts") >= 1)
    assert found.fallback is None
    assert "Exchange" not in found.plan
    assert _sorted(found.rows) == _sorted(spark.read.format("hudi").load(tables[0].path).groupBy("id").agg(*aggregates))


def test_a_look_up_reads_the_buckets_of_its_keys_only(spark: SparkSession, tables: tuple[Table, Table]) -> None:
    found = bucketed.lookup(spark, tables[0], ["1", "é😀14", "none"], columns=["v"])
    assert found.fallback is None
    assert {row.id for row in found.rows.collect()} == {"1", "é😀14"}


def test_a_wrong_number_of_buckets_is_an_error_and_no_wrong_answer(
    spark: SparkSession, tables: tuple[Table, Table]
) -> None:
    wrong = Table(tables[0].path, KEY, 16)
    with pytest.raises(Exception, match="outside of its bucket"):
        bucketed.group_by(spark, wrong, ["id"], [F.count("*")]).rows.collect()


def test_what_is_not_co_located_falls_back_with_the_reason(spark: SparkSession, tables: tuple[Table, Table]) -> None:
    left, right = tables
    reasons = {
        "hash fields differ": bucketed.join(spark, left, Table(right.path, ("w",), 8), ["id"]),
        "multiple of the other": bucketed.join(spark, left, Table(right.path, KEY, 6), ["id"]),
        "is not known": bucketed.join(spark, left, Table(right.path, KEY), ["id"]),
        "does not hold the hash fields": bucketed.join(spark, left, right, ["ts"]),
    }
    for reason, found in reasons.items():
        assert reason in (found.fallback or "")
    assert reasons["is not known"].rows.count() == bucketed.join(spark, left, right, ["id"]).rows.count()
