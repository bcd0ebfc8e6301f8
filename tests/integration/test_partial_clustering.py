"""Tests clustering without an order, which merges small files, and clustering of some partitions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from jobs.errors import RefusedError
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.contract import BucketIndex


def _write_small_files(spark: SparkSession, base: Path, *, table_type: str = "COPY_ON_WRITE") -> dict[str, str]:
    """Writes three partitions with two files each."""
    options = tables.write_table(spark, base, count=300, num_buckets=None, table_type=table_type)
    tables.upsert(tables.rows(spark, 300, 450), base, {**options, "hoodie.parquet.small.file.limit": "0"})
    return options


def _files(spark: SparkSession, base: Path, index: BucketIndex | None = None) -> dict[str, int]:
    """Returns the number of base files by partition."""
    slices = hudi_table(spark, base, index).file_slices()
    return dict(sorted(Counter(item.partition for item in slices).items()))


def _cities(spark: SparkSession, base: Path) -> dict[str, bool]:
    """Returns by partition whether the rows of each file are in the order of `city`."""
    found: dict[str, bool] = {}
    for item in hudi_table(spark, base, None).file_slices():
        assert item.base_file
        cities = pq.read_table(item.base_file.removeprefix("file:"), columns=["city"])["city"].to_pylist()
        found[item.partition] = found.get(item.partition, True) and cities == sorted(cities)
    return dict(sorted(found.items()))


@pytest.mark.exhaustive
def test_without_columns_the_small_files_of_the_chosen_partitions_are_merged(
    spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "plain"
    _write_small_files(spark, base)
    before = tables.snapshot(spark, base)
    some = {"partitions": ["2026-01-03", {"prefix": "2026-01-02"}]}
    planned = run_job(spark, base, "clustering", some, index=None, dry_run=True).details
    assert (planned["refusals"], planned["files"]) == ([], 4)
    merged = run_job(spark, base, "clustering", some, index=None)
    assert merged.details["file_groups"] == {"before": 4, "after": 2}
    assert _files(spark, base) == {"2026-01-01": 2, "2026-01-02": 1, "2026-01-03": 1}
    # A job for the whole table merges the remaining small files, and the next one nothing.
    assert len(run_job(spark, base, "clustering", index=None).instants) == 1
    assert _files(spark, base) == {"2026-01-01": 1, "2026-01-02": 1, "2026-01-03": 1}
    assert run_job(spark, base, "clustering", index=None).instants == ()
    assert tables.snapshot(spark, base) == before


@pytest.mark.exhaustive
def test_a_merge_on_read_table_is_merged_with_its_logs_and_written_on(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "plain"
    options = _write_small_files(spark, base, table_type="MERGE_ON_READ")
    tables.upsert(tables.rows(spark, 0, 200, ts=3), base, options)
    before = tables.snapshot(spark, base)
    run_job(spark, base, "clustering", index=None)
    assert tables.snapshot(spark, base) == before
    assert set(_files(spark, base).values()) == {1}
    tables.upsert(tables.rows(spark, 0, 500, ts=4), base, options)
    assert (len(tables.snapshot(spark, base)), tables.duplicates(spark, base)) == (500, 0)


@pytest.mark.exhaustive
def test_partitions_are_ordered_one_after_the_other_and_the_rest_by_a_job_for_all(
    spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "plain"
    options = _write_small_files(spark, base)
    before = tables.snapshot(spark, base)
    by_city = {"sort_by": ["city"]}
    run_job(spark, base, "clustering", {**by_city, "partitions": ["2026-01-02"]}, index=None)
    assert _cities(spark, base) == {"2026-01-01": False, "2026-01-02": True, "2026-01-03": False}
    # There was no commit since, so Hudi by itself would check no partition.
    run_job(spark, base, "clustering", by_city, index=None)
    assert _cities(spark, base) == {"2026-01-01": True, "2026-01-02": True, "2026-01-03": True}
    # The next jobs order only the files that were written since.
    assert run_job(spark, base, "clustering", by_city, index=None).instants == ()
    tables.upsert(tables.rows(spark, 1, 2, ts=9).where("dt = '2026-01-02'"), base, options)
    before = tables.snapshot(spark, base)
    names = {item.base_file for item in hudi_table(spark, base, None).file_slices()}
    run_job(spark, base, "clustering", by_city, index=None)
    rewritten = [item for item in hudi_table(spark, base, None).file_slices() if item.base_file not in names]
    assert {item.partition for item in rewritten} == {"2026-01-02"}
    # A clustering by another column rewrites all files.
    run_job(spark, base, "clustering", {"sort_by": ["fare"]}, index=None)
    assert not any(_cities(spark, base).values())
    assert tables.snapshot(spark, base) == before


@pytest.mark.exhaustive
def test_buckets_are_ordered_in_some_partitions_and_never_merged(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "orders"
    tables.write_table(spark, base, count=300, updates=1)
    before = proved(spark, base, 4)
    for params in ({}, {"partitions": ["2026-01-02"]}):
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, "clustering", params)
        assert refused.value.problem().type == "bucket-files-not-mergeable"
        planned = run_job(spark, base, "clustering", params, dry_run=True).details
        assert [each["type"] for each in planned["refusals"]] == ["bucket-files-not-mergeable"]
    # The bucket index was not declared, but the file ids show it.
    with pytest.raises(RefusedError):
        run_job(spark, base, "clustering", index=None)
    with pytest.raises(RefusedError, match="2026-02"):
        run_job(spark, base, "clustering", {"sort_by": ["city"], "partitions": [{"prefix": "2026-02"}]})

    result = run_job(spark, base, "clustering", {"sort_by": ["city"], "partitions": ["2026-01-02"]})
    written = {path.parent.name for path in base.glob("2026-*/*.parquet") if result.instants[0] in path.name}
    assert written == {"2026-01-02"}
    assert proved(spark, base, 4) == before
