"""The service examines real tables without a JVM, and finds the properties with which Spark wrote them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from jobs.contract import BucketIndex
from service.lake.file_slices import read_snapshot
from service.lake.hashing_config import FOLDER
from service.lake.storage import open_storage
from service.lake.table import BucketIndexKind, TableProfile, TableType
from service.lake.table_config import read_table_config
from service.lake.timeline import read_timeline
from service.model.table_errors import BucketIndexContradictedError
from service.registration.detection import Examination, examine
from tests.integration.tables import rows, upsert, write_table, writer_options

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TRUE_CLAIM = BucketIndex(4, ("id",))
SHAPES = [
    ("MERGE_ON_READ", 6, True),
    pytest.param("MERGE_ON_READ", 8, True, marks=pytest.mark.exhaustive),
    pytest.param("MERGE_ON_READ", 9, False, marks=pytest.mark.exhaustive),
    pytest.param("COPY_ON_WRITE", 6, False, marks=pytest.mark.exhaustive),
    pytest.param("COPY_ON_WRITE", 9, True, marks=pytest.mark.exhaustive),
]


def look(table: Path, claimed: BucketIndex | None = None) -> Examination:
    return examine(f"file:{table}/", allowed_roots=(str(table.parent),), claimed=claimed, storage_options={})


def slices_of(table: Path) -> list[tuple[str, str | None]]:
    storage = open_storage(str(table), {})
    config = read_table_config(storage)
    slices = read_snapshot(storage, config, read_timeline(storage, config))
    return [(s.partition_path, s.base_file) for s in slices]


def listing(table: Path) -> list[tuple[str, int, int]]:
    return sorted((str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in table.rglob("*"))


@pytest.mark.parametrize(("table_type", "version", "partitioned"), SHAPES)
def test_the_profile_and_the_index_are_found(
    spark: SparkSession, tmp_path: Path, table_type: str, version: int, partitioned: bool
) -> None:
    table = tmp_path / "trips"
    write_table(spark, table, count=300, updates=1, table_type=table_type, version=version, partitioned=partitioned)
    before = listing(table)

    found = look(table)

    profile = found.profile
    assert (found.base_path, found.name) == (str(table.resolve()), "trips")
    assert found.index == TRUE_CLAIM
    assert profile.table_type is TableType(table_type)
    assert (profile.table_version, profile.timeline_layout) == (version, 1 if version == 6 else 2)
    assert profile.partition_fields == (("dt",) if partitioned else ())
    assert (profile.record_key_fields, profile.ordering_fields) == (("id",), ("ts",))
    assert profile.metadata_partitions == ("files",)
    assert profile.bucket_layout.file_groups == (12 if partitioned else 4)
    assert profile.bucket_layout.highest_bucket == 3
    assert profile.bucket_layout.keys_checked > 100
    assert {column.name: column.type for column in profile.columns}["price"] == "decimal128(20, 4)"
    assert not any(column.name.startswith("_hoodie") for column in profile.columns)
    assert (profile.pending_instants, profile.warnings) == (0, ())
    assert TableProfile.from_json(json.loads(json.dumps(profile.to_json()))) == profile

    assert look(table, TRUE_CLAIM).index == TRUE_CLAIM
    for number in (2, 8):
        with pytest.raises(BucketIndexContradictedError) as error:
            look(table, BucketIndex(number, ("id",)))
        assert 0 < error.value.extensions["mismatched"] < error.value.extensions["checked"]
        assert error.value.extensions["suggested_num_buckets"] == 4
    assert listing(table) == before


def test_hash_fields_that_are_part_of_the_key_need_the_claim(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "trips"
    write_table(spark, table, count=300, record_key="id,region", hash_fields="region", partitioned=False)
    unclaimed = look(table)
    assert unclaimed.index is None
    assert unclaimed.profile.warnings
    assert look(table, BucketIndex(4, ("region",))).index == BucketIndex(4, ("region",))
    for wrong in (("id",), ("id", "region"), ("city",)):
        with pytest.raises(BucketIndexContradictedError):
            look(table, BucketIndex(4, wrong))


@pytest.mark.exhaustive
def test_all_fields_of_a_composite_key_are_detected(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "trips"
    write_table(spark, table, count=300, record_key="id,region", num_buckets=6)
    assert look(table).index == BucketIndex(6, ("id", "region"))


def test_a_table_without_a_bucket_index_has_none_and_no_claim_helps(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "trips"
    write_table(spark, table, count=300, num_buckets=None)
    found = look(table)
    assert (found.index, found.profile.bucket_layout.kind) == (None, BucketIndexKind.NONE)
    with pytest.raises(BucketIndexContradictedError) as error:
        look(table, TRUE_CLAIM)
    assert error.value.extensions["checked"] == 3
    # One file group in 40 has a UUID that begins like a bucket, with eight digits; so not always all three.
    assert error.value.extensions["mismatched"] >= 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [6, 9])
def test_compactions_and_cleans_change_nothing(spark: SparkSession, tmp_path: Path, version: int) -> None:
    table = tmp_path / "trips"
    options = write_table(spark, table, count=300, version=version)
    services = {
        **options,
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.clean.automatic": "true",
        "hoodie.clean.commits.retained": "1",
    }
    for number in range(1, 4):
        upsert(rows(spark, 0, 150, ts=number), table, services)
    storage = open_storage(str(table), {})
    actions = [i.action for i in read_timeline(storage, read_table_config(storage)).instants]
    assert actions.count("commit") >= 2
    assert "clean" in actions
    assert look(table, TRUE_CLAIM).index == look(table).index == TRUE_CLAIM


@pytest.mark.exhaustive
def test_a_crashed_write_is_pending_and_its_files_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "trips"
    options = write_table(spark, table, count=300, table_type="COPY_ON_WRITE", partitioned=False)
    before = slices_of(table)
    upsert(rows(spark, 0, 300, ts=1), table, options)
    assert slices_of(table) != before
    max((table / ".hoodie/timeline").glob("*_*.commit")).unlink()
    assert slices_of(table) == before
    found = look(table)
    assert (found.index, found.profile.pending_instants) == (TRUE_CLAIM, 1)


@pytest.mark.exhaustive
def test_replaced_file_groups_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "trips"
    options = write_table(spark, table, count=300, partitioned=False)
    overwrite = {**options, "hoodie.datasource.write.operation": "insert_overwrite_table"}
    upsert(rows(spark, 0, 200), table, {**overwrite, "hoodie.bucket.index.num.buckets": "8"})
    found = look(table)
    assert found.index == BucketIndex(8, ("id",))
    assert found.profile.bucket_layout.file_groups == 8


def test_consistent_hashing_is_distinguished_from_a_simple_index_and_file_groups_of_logs_are_seen(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "trips"
    engine = {
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.min.num.buckets": "2",
        "hoodie.bucket.index.max.num.buckets": "8",
    }
    upsert(rows(spark, 0, 300), table, writer_options(table, partitioned=False, **engine))
    found = look(table)
    assert (found.index, found.profile.bucket_layout.kind) == (None, BucketIndexKind.CONSISTENT_HASHING)
    assert slices_of(table) == [("", None)] * found.profile.bucket_layout.file_groups
    assert found.profile.bucket_layout.file_groups == 4


def test_a_hashing_config_overrides_the_number_that_writers_state(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "trips"
    options = writer_options(table)
    upsert(rows(spark, 0, 300, partitions=2), table, options)
    (table / FOLDER).mkdir(parents=True)
    baseline = {"expressions": "2026-01-03,8", "defaultBucketNumber": 4, "rule": "regex", "version": 1}
    (table / FOLDER / "00000000000000.hashing_config").write_text(json.dumps({**baseline, "instant": "00000000000000"}))
    upsert(rows(spark, 300, 900, partitions=3), table, options)

    found = look(table, BucketIndex(4, ("id",)))
    assert found.index == BucketIndex(4, ("id",))
    assert found.profile.bucket_layout.hashing_config == "00000000000000"
    assert found.profile.bucket_layout.file_groups == 16
    assert look(table).index == BucketIndex(4, ("id",))
    stale = look(table, BucketIndex(2, ("id",)))
    assert stale.index == BucketIndex(2, ("id",))

    dangling = {"expressions": ".*,32", "defaultBucketNumber": 4, "rule": "regex", "version": 1, "instant": "2099"}
    (table / FOLDER / "2099.hashing_config").write_text(json.dumps(dangling))
    warned = look(table)
    assert warned.index == BucketIndex(4, ("id",))
    assert "2099" in warned.profile.warnings[0]
