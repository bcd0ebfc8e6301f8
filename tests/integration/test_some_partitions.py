"""Tests the expansion of some partitions by exact paths and prefixes, also with characters of regular expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from jobs.contract import BucketIndex
from jobs.errors import RefusedError
from jobs.format.bucket_rules import BucketRules, Scale, Selection
from tests.integration import tables
from tests.integration.run import run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

INDEX = BucketIndex(2, ("id",))
ODD = ["eu.x+(1)", "eu.x+(1)b", "eu", "us[a]", "us$^|", "ünï {2}"]
PATHS = [*ODD, "", "eu/de", "eu/fr=1", "a*b?", "back\\slash", "p;q,r", "😀"]


def test_hudi_reads_the_rules_as_we_do(spark: SparkSession) -> None:
    calculators = spark._jvm.org.apache.hudi.index.bucket.partition.PartitionBucketIndexCalculator  # type: ignore[union-attr]
    rules = BucketRules.parse("x$,2;[a-c]\\w,6;.*,4", 4)
    steps: list[tuple[Selection, int | None, int | None]] = [
        (Selection(("", "us$^|", "p;q,r", "back\\slash")), 12, None),
        (Selection((), ("eu", "😀")), None, 2),
        (Selection(("eu.x+(1)",), ("eu/",)), None, 3),
        (Selection((), ("eu",)), None, 2),
    ]
    for selection, number, factor in steps:
        rules = rules.only(selection, Scale(number, factor))
        calculator = calculators.getInstance(str(rules), "regex", rules.default)
        for path in PATHS:
            assert calculator.computeNumBuckets(path) == rules.buckets_of(path), (path, str(rules))


def _rows(spark: SparkSession, count: int, ts: int) -> DataFrame:
    names = F.array(*[F.lit(name) for name in ODD])
    number = F.substring("id", 2, 9).cast("int")
    return tables.rows(spark, 0, count, ts=ts).withColumn("dt", F.element_at(names, number % len(ODD) + 1))


@pytest.mark.exhaustive
def test_odd_partitions_get_what_was_asked_for_and_keep_it(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "odd"
    options = tables.writer_options(base, num_buckets=2)
    tables.upsert(_rows(spark, 300, 0), base, options)

    def step(count: int, **params: Any) -> None:
        """Expands the table, and then writes with the writer's original options."""
        before = tables.snapshot(spark, base)
        run_job(spark, base, "bucket_expansion", params, index=INDEX)
        assert tables.snapshot(spark, base) == before
        tables.upsert(_rows(spark, count, count), base, options)
        audit = run_job(spark, base, "audit", index=INDEX).details
        assert (audit["clean"], audit["rows"]) == (True, count), audit

    step(360, num_buckets=6, partitions=["eu.x+(1)", "us$^|"])
    assert _numbers(spark, base) == dict(zip(ODD, [6, 2, 2, 2, 6, 2], strict=True))
    step(420, factor=3, partitions=[{"prefix": "us"}, "ünï {2}"])
    assert _numbers(spark, base) == dict(zip(ODD, [6, 2, 2, 6, 18, 6], strict=True))
    step(600, factor=2)
    assert _numbers(spark, base) == dict(zip(ODD, [12, 4, 4, 12, 36, 12], strict=True))


def test_a_selection_without_any_partition_is_refused(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=100, num_buckets=2)
    params = {"factor": 2, "partitions": ["2027-01-01", {"prefix": "2028"}]}
    with pytest.raises(RefusedError, match=r"'2027-01-01', '2028\.\.\.'"):
        run_job(spark, base, "bucket_expansion", params, index=INDEX)


def _numbers(spark: SparkSession, base: Path) -> dict[str, int]:
    """Returns the number of buckets by partition, from Hudi's latest hashing config."""
    hudi = spark._jvm.org.apache.hudi  # type: ignore[union-attr]
    conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(spark._jsc.hadoopConfiguration())
    meta = hudi.common.table.HoodieTableMetaClient.builder().setBasePath(str(base)).setConf(conf).build()
    config = hudi.common.model.PartitionBucketIndexHashingConfig.loadingLatestHashingConfig(meta)
    calculators = hudi.index.bucket.partition.PartitionBucketIndexCalculator
    calculator = calculators.getInstance(config.getExpressions(), config.getRule(), config.getDefaultBucketNumber())
    return {path: calculator.computeNumBuckets(path) for path in ODD}
