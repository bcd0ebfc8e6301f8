"""A resize splits and merges buckets of consistent hashing, and keeps all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import Outcome
from jobs.errors import RefusedError
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import run_job
from tests.integration.tables import duplicates, rows, snapshot, upsert, write_table
from tests.integration.test_consistent_hashing import PARTITION, findings, num_buckets, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SPLIT = {"split_bytes": 4, "merge_bytes": 0}
MERGE = {"split_bytes": 1 << 30, "merge_bytes": 1 << 28}


def resize(spark: SparkSession, base: Path, params: dict[str, Any], **more: Any) -> dict[str, Any]:
    result = run_job(spark, base, "bucket_resize", params, index=None, **more)
    assert result.outcome is Outcome.SUCCEEDED, result
    return result.details


# Buckets are split by attempts that die, too (`test_resize_kills.py`).
@pytest.mark.parametrize("is_split", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_buckets_are_split_and_merged_within_bounds(spark: SparkSession, base: Path, *, is_split: bool) -> None:
    options = write(spark, base)
    # hudi-rs overlooks file slices without a base file.
    assert run_job(spark, base, "compaction", index=None).outcome is Outcome.SUCCEEDED
    before = snapshot(spark, base)
    bounds = {**SPLIT, "max_buckets": 6}
    planned = resize(spark, base, bounds, dry_run=True)
    assert (planned["refusals"], planned["split"], planned["partitions"], num_buckets(base)) == ([], 4, 2, 4)
    assert {(each["change"], each["because"].split()[-1]) for each in planned["changes"]} == {
        ("split", "(split_bytes)")
    }
    if is_split:
        done = resize(spark, base, bounds)
        assert (done["split"], done["proof"]["key_digest_before"]) == (4, done["key_digest"])
        assert (num_buckets(base), snapshot(spark, base), findings(spark, base)) == (6, before, {})
        assert resize(spark, base, bounds)["nothing_to_do"]
    # The session has been open over the resize, and its options name the number of buckets of the beginning.
    upsert(rows(spark, 0, 400, ts=1, partitions=2), base, options)
    after = snapshot(spark, base)
    assert (len(after), duplicates(spark, base)) == (400, 0)
    assert not is_split or findings(spark, base) == {}
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)

    number = num_buckets(base)
    merged = resize(spark, base, {**MERGE, "min_buckets": 3, "partitions": [PARTITION]})
    assert (merged["merged_away"], merged["split"], merged["partitions"]) == (number - 3, 0, 1)
    assert (num_buckets(base), num_buckets(base, "2026-01-02"), snapshot(spark, base)) == (3, number, after)
    upsert(rows(spark, 0, 500, ts=2, partitions=2), base, options)
    assert (len(snapshot(spark, base)), duplicates(spark, base), findings(spark, base)) == (500, 0, {})
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)


def refusals(spark: SparkSession, base: Path, **more: Any) -> set[str]:
    found = {each["type"] for each in resize(spark, base, SPLIT, dry_run=True, **more)["refusals"]}
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "bucket_resize", SPLIT, index=None, **more)
    assert {each.type for each in refused.value.reasons} == found
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "shape",
    [
        {"version": 6},
        {"version": 8},
        {"partitioned": False},
        {"record_key": "id,region"},
        {"record_key": "id,region", "hash_fields": "region"},
        {"metadata": False},
        {"hoodie.metadata.record.index.enable": "true"},
    ],
)
def test_tables_of_other_shapes_are_resized(spark: SparkSession, base: Path, shape: dict[str, Any]) -> None:
    options = write(spark, base, **shape)
    before = snapshot(spark, base)
    place = PARTITION if shape.get("partitioned", True) else ""
    declared: dict[str, Any] = {"writers_stopped": True}
    if fields := shape.get("hash_fields"):
        assert refusals(spark, base, declared=declared) == {"hashing-metadata-not-sound"}
        declared["hudi_options"] = {"hoodie.bucket.index.hash.field": fields}
    resize(spark, base, SPLIT, declared=declared)
    # Four regions do not fill all buckets, and a bucket without files is neither split nor merged.
    assert (num_buckets(base, place) == 8, snapshot(spark, base)) == (not fields, before)
    upsert(rows(spark, 0, 400, ts=1, partitions=2), base, options)
    after = snapshot(spark, base)
    assert (len(after), duplicates(spark, base)) == (400, 0)
    resize(spark, base, MERGE, declared=declared)
    assert (num_buckets(base, place) == 1, snapshot(spark, base)) == (not fields, after)
    upsert(rows(spark, 0, 400, ts=2, partitions=2), base, options)
    assert (len(snapshot(spark, base)), duplicates(spark, base)) == (400, 0)
    if not fields:
        assert findings(spark, base) == {}


def test_one_bucket_of_a_composite_key_proves_no_hash_fields(spark: SparkSession, base: Path) -> None:
    options = write(spark, base, record_key="id,region", hash_fields="region", num_buckets=1)
    assert refusals(spark, base) == {"hash-fields-not-proved"}
    assert num_buckets(base) == 1
    resize(spark, base, SPLIT, declared={"hudi_options": {"hoodie.bucket.index.hash.field": "region"}})
    assert num_buckets(base) == 2
    upsert(rows(spark, 0, 300, ts=1, partitions=2), base, options)
    assert (len(snapshot(spark, base)), duplicates(spark, base)) == (300, 0)


@pytest.mark.exhaustive
def test_a_resize_that_cannot_be_done_safely_is_refused(spark: SparkSession, tmp_path: Path, base: Path) -> None:
    write_table(spark, tmp_path / "simple", count=60)
    assert refusals(spark, tmp_path / "simple") == {"no-consistent-hashing"}
    write(spark, base, version=6)
    assert refusals(spark, base, declared={"writers_hudi_version": None}) == {"writers-not-stopped"}
    assert refusals(spark, base, declared={"writers_engines": ("flink",)}) == {"flink-may-be-running"}
