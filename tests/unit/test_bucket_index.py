"""Tests the detection and verification of a bucket index on artificial file groups with keys in their right buckets."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.contract import BucketIndex
from jobs.format.bucket_hash import bucket_ids
from jobs.format.hashing_config import HashingConfig
from service.lake.file_slices import FileSlice
from service.lake.storage import open_storage
from service.lake.table import BucketIndexKind, BucketLayout, Column, TableProfile, TableType
from service.model.storage_errors import StorageError
from service.model.table_errors import BucketIndexContradictedError
from service.registration.bucket_index import Evidence, detect, verify
from service.registration.key_sample import FILES, KeySample, choose, read_sample

if TYPE_CHECKING:
    from pathlib import Path

TAIL = "-7b54-4480-a1cc-9ab6421b14fc-0"
KEYS = [f"key-{number}" for number in range(400)]


def slice_of(partition: str, file_id: str, *, base: bool = True) -> FileSlice:
    return FileSlice(partition, file_id, f"{file_id}_0-0-0_001.parquet" if base else None, 1000)


def table_of(
    num_buckets: int, keys: list[str] = KEYS, fields: tuple[str, ...] = ("id",), partition: str = "p"
) -> Evidence:
    """Returns a table with samples of all buckets with rows."""
    rows = defaultdict(list)
    for key, bucket in zip(keys, bucket_ids(pa.array(keys, pa.string()), fields, num_buckets).tolist(), strict=True):
        rows[bucket].append(key)
    samples = [KeySample(slice_of(partition, f"{bucket:08d}{TAIL}"), pa.array(held)) for bucket, held in rows.items()]
    return Evidence([s.slice for s in samples], samples, fields)


@settings(max_examples=50)
@given(st.integers(1, 40))
def test_the_number_of_buckets_is_found_whatever_it_is(num_buckets: int) -> None:
    finding = detect(table_of(num_buckets))
    assert finding.index == BucketIndex(num_buckets, ("id",))
    assert finding.layout.kind is BucketIndexKind.SIMPLE
    assert finding.layout.keys_checked == len(KEYS)
    assert finding.warnings == ()


def test_if_several_numbers_fit_the_owner_has_to_declare_one() -> None:
    eight = table_of(8)
    lower = [s for s in eight.samples if (s.slice.bucket or 0) < 4]
    finding = detect(replace(eight, slices=[s.slice for s in lower], samples=lower))
    assert finding.index is None
    assert finding.layout.kind is BucketIndexKind.UNKNOWN
    assert "(4, 8)" in finding.warnings[0]


def test_a_bucket_without_a_sampled_key_still_bounds_the_number() -> None:
    eight = table_of(8)
    lower = [s for s in eight.samples if (s.slice.bucket or 0) < 4]
    assert detect(replace(eight, samples=lower)).index == BucketIndex(8, ("id",))


def test_a_handful_of_keys_proves_nothing() -> None:
    finding = detect(table_of(4, KEYS[:20]))
    assert finding.index is None
    assert "too few" in finding.warnings[0]
    assert detect(table_of(4, ["key-1"] * 1000)).index is None


def test_the_owner_has_to_declare_the_index_of_a_table_with_logs_alone() -> None:
    evidence = replace(table_of(4), samples=[])
    assert detect(evidence).index is None
    finding = verify(BucketIndex(4, ("id",)), evidence)
    assert finding.index == BucketIndex(4, ("id",))
    assert "not verified" in finding.warnings[0]


def test_random_file_ids_are_no_buckets() -> None:
    ids = ["4a671051-5158-47c1-8ae5-c3bb11c6f6d0-0", f"00000001{TAIL}"]
    finding = detect(Evidence([slice_of("p", i) for i in ids], [], ("id",)))
    assert (finding.index, finding.layout.kind, finding.warnings) == (None, BucketIndexKind.NONE, ())


@pytest.mark.parametrize("digits", ["48213377", "00004821"])
def test_a_random_file_id_of_digits_is_no_bucket(digits: str) -> None:
    chance = slice_of("p", f"{digits}{TAIL}")
    finding = detect(Evidence([chance], [KeySample(chance, pa.array(KEYS))], ("id",)))
    assert finding.index is None


def test_two_file_groups_in_one_bucket_are_no_bucket_index() -> None:
    evidence = table_of(4)
    twice = replace(evidence, slices=[*evidence.slices, slice_of("p", "00000001-aaaa-4480-a1cc-9ab6421b14fc-0")])
    assert detect(twice).layout.kind is BucketIndexKind.NONE
    with pytest.raises(BucketIndexContradictedError) as error:
        verify(BucketIndex(4, ("id",)), twice)
    assert error.value.extensions["mismatched"] == 1


def test_a_true_claim_is_accepted() -> None:
    finding = verify(BucketIndex(4, ("id",)), table_of(4))
    assert finding.index == BucketIndex(4, ("id",))
    assert finding.layout == BucketLayout(BucketIndexKind.SIMPLE, 4, 3, len(KEYS))


@pytest.mark.parametrize("number", [2, 3, 8])
def test_a_wrong_number_is_refused_with_the_counts_and_the_right_one(number: int) -> None:
    with pytest.raises(BucketIndexContradictedError) as error:
        verify(BucketIndex(number, ("id",)), table_of(4))
    extensions = error.value.extensions
    assert extensions["checked"] == len(KEYS)
    assert 0 < extensions["mismatched"] < len(KEYS)
    assert extensions["claimed"] == {"num_buckets": number, "hash_fields": ["id"]}
    assert extensions["suggested_num_buckets"] == 4


def test_a_claim_below_a_bucket_that_was_not_sampled_is_refused() -> None:
    eight = table_of(8)
    lower = [s for s in eight.samples if (s.slice.bucket or 0) < 4]
    with pytest.raises(BucketIndexContradictedError) as error:
        verify(BucketIndex(4, ("id",)), replace(eight, samples=lower))
    assert (error.value.extensions["checked"], error.value.extensions["mismatched"]) == (8, 4)


def test_wrong_hash_fields_are_refused() -> None:
    keys = [f"id:{number},region:r{number % 7}" for number in range(400)]
    evidence = replace(table_of(4, keys, ("region",)), record_key_fields=("id", "region"))
    assert verify(BucketIndex(4, ("region",)), evidence).index == BucketIndex(4, ("region",))
    for fields in (("id",), ("id", "region"), ("city",)):
        with pytest.raises(BucketIndexContradictedError):
            verify(BucketIndex(4, fields), evidence)
    assert detect(evidence).index is None


@pytest.mark.parametrize("fields", [("id",), ("at",), ("id", "region"), ("region", "at"), ("id", "region", "at")])
def test_hash_fields_that_are_part_of_the_key_are_found(fields: tuple[str, ...]) -> None:
    keys = [f"id:{number},region:r{number % 7},at:t{number * number}" for number in range(400)]
    evidence = replace(table_of(4, keys, fields), record_key_fields=("id", "region", "at"))
    assert detect(evidence).index == BucketIndex(4, fields)


def test_if_two_choices_of_hash_fields_fit_the_owner_has_to_declare_one() -> None:
    # The last field is the same in all keys, and of two buckets a code and 31 times that code have the same one.
    keys = [f"id:{number},region:b" for number in range(400)]
    evidence = replace(table_of(2, keys, ("id",)), record_key_fields=("id", "region"))
    finding = detect(evidence)
    assert finding.index is None
    assert "(id, region; id)" in finding.warnings[0]


def test_keys_that_hudi_cannot_hash_by_the_claimed_fields_contradict_the_claim() -> None:
    keys = [f"id:{number},at:10:{number:02d}" for number in range(400)]
    evidence = table_of(4, keys, ("id", "at"))
    with pytest.raises(BucketIndexContradictedError):
        verify(BucketIndex(4, ("id",)), evidence)


def test_with_one_bucket_the_fields_of_composite_keys_stay_unproven() -> None:
    keys = [f"id:{number},region:r{number % 7}" for number in range(400)]
    assert detect(table_of(1, keys, ("id", "region"))).index is None
    assert detect(table_of(1)).index == BucketIndex(1, ("id",))


def test_a_claim_on_a_table_without_bucket_file_ids_is_refused_with_the_counts() -> None:
    plain = Evidence([slice_of("p", "4a671051-5158-47c1-8ae5-c3bb11c6f6d0-0")], [], ("id",))
    with pytest.raises(BucketIndexContradictedError) as error:
        verify(BucketIndex(4, ("id",)), plain)
    assert (error.value.extensions["checked"], error.value.extensions["mismatched"]) == (1, 1)


def test_the_hashing_config_counts_and_not_the_claimed_number() -> None:
    small, large = table_of(4, partition="small"), table_of(8, partition="large")
    evidence = Evidence(
        [*small.slices, *large.slices],
        [*small.samples, *large.samples],
        ("id",),
        hashing_config=HashingConfig.of("005", "large,8", 4),
    )
    assert verify(BucketIndex(2, ("id",)), evidence).index == BucketIndex(2, ("id",))
    found = detect(evidence)
    assert found.index == BucketIndex(4, ("id",))
    assert found.layout.hashing_config == "005"
    wrong = replace(evidence, hashing_config=HashingConfig.of("006", ".*,16", 4))
    assert detect(wrong).index is None
    with pytest.raises(BucketIndexContradictedError):
        verify(BucketIndex(4, ("id",)), wrong)


def test_consistent_hashing_is_reported_and_no_simple_index() -> None:
    evidence = replace(table_of(4), has_consistent_hashing=True)
    assert (detect(evidence).index, detect(evidence).layout.kind) == (None, BucketIndexKind.CONSISTENT_HASHING)
    with pytest.raises(BucketIndexContradictedError):
        verify(BucketIndex(4, ("id",)), evidence)


def test_fixed_file_ids_are_reported() -> None:
    slices = [slice_of("p", f"{bucket:08d}-0000-0000-0000-000000000000-0") for bucket in range(4)]
    assert detect(Evidence(slices, [], ("id",))).layout.fixed_file_ids
    assert not detect(table_of(4)).layout.fixed_file_ids


def test_an_empty_table_has_an_unknown_index_and_takes_any_claim() -> None:
    empty = Evidence([], [], ("id",))
    assert detect(empty).layout.kind is BucketIndexKind.UNKNOWN
    assert verify(BucketIndex(4, ("id",)), empty).index == BucketIndex(4, ("id",))


def test_the_sample_is_spread_over_buckets_and_partitions() -> None:
    slices = [slice_of(f"p{p}", f"{bucket:08d}{TAIL}") for p in range(20) for bucket in range(20)]
    chosen = choose(slices)
    assert len({s.bucket for s in chosen}) == len({s.partition_path for s in chosen}) == FILES
    skewed = [slice_of("p", f"{bucket:08d}{TAIL}") for bucket in range(3)]
    assert sorted(choose([*skewed, slice_of("p", f"00000009{TAIL}", base=False)]), key=str) == sorted(skewed, key=str)


def test_a_base_file_that_vanishes_meanwhile_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        read_sample(open_storage(str(tmp_path), {}), [slice_of("p", f"00000001{TAIL}")])


def test_a_profile_is_the_same_after_json() -> None:
    profile = TableProfile(
        table_type=TableType.MERGE_ON_READ,
        table_version=9,
        timeline_layout=2,
        timeline_path=".hoodie/timeline",
        bucket_layout=BucketLayout(BucketIndexKind.SIMPLE, 12, 3, 200, hashing_config="005"),
        record_key_fields=("id", "region"),
        columns=(Column("id", "string"),),
        warnings=("One.",),
    )
    assert TableProfile.from_json({**profile.to_json(), "unknown": 1}) == profile
