"""Logs whose rows Hudi's own readers cannot merge: jobs end with a type that says why and what to do, and change
nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from jobs.errors import HudiError
from tests.integration import tables
from tests.integration.run import run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_INDEX = BucketIndex(1, ("id",))


def _write(base: Path, *frames: DataFrame, **options: str) -> None:
    options = tables.writer_options(base, num_buckets=1, partitioned=False, metadata=False) | options
    for frame in frames:
        tables.upsert(frame, base, options)


def _kind_of_failure(spark: SparkSession, base: Path, kind: str, **params: Any) -> str:
    before = sorted(base.rglob("*.parquet"))
    with pytest.raises(HudiError) as caught:
        run_job(spark, base, kind, params, index=_INDEX)
    assert not caught.value.retriable
    assert sorted(base.rglob("*.parquet")) == before
    assert not list(base.glob(".hoodie/timeline/*.compaction.*"))
    return caught.value.type


@pytest.mark.parametrize(
    ("kind", "is_null_first"),
    [("long", True), *(pytest.param(kind, False, marks=pytest.mark.exhaustive) for kind in ("string", "decimal(9,2)"))],
)
def test_an_ordering_value_that_is_null_beside_others_ends_the_job_with_its_type(
    spark: SparkSession, base: Path, kind: str, *, is_null_first: bool
) -> None:
    frame = tables.rows(spark, 0, 20, ts=5).withColumn("ts", F.lit("7").cast(kind))
    null = frame.withColumn("ts", F.lit(None).cast(kind))
    _write(base, *((frame, null, frame) if is_null_first else (frame, frame, null)))

    assert _kind_of_failure(spark, base, "compaction") == "ordering-values-not-comparable"
    if not is_null_first:
        assert _kind_of_failure(spark, base, "clustering", sort_by=["city"]) == "ordering-values-not-comparable"
        unchecked = run_job(spark, base, "audit", index=_INDEX).details["unchecked"]
        assert {each["reason"]["type"] for each in unchecked} == {"ordering-values-not-comparable"}


def test_logs_of_hfile_blocks_are_named_in_a_dry_run_and_end_the_job_with_their_type(
    spark: SparkSession, base: Path
) -> None:
    frames = [tables.rows(spark, 0, 20, ts=5), tables.rows(spark, 8, 12, ts=7)]
    _write(base, *frames, **{"hoodie.logfile.data.block.format": "hfile"})

    for kind, params in (("compaction", {}), ("clustering", {"sort_by": ["city"]})):
        planned = run_job(spark, base, kind, params, index=_INDEX, dry_run=True).details
        assert [each["type"] for each in planned["refusals"]] == ["log-format-unreadable"]
        assert _kind_of_failure(spark, base, kind, **params) == "log-format-unreadable"
