"""Tests how the files of an instant show whether its writer knew of a change of file groups."""

from __future__ import annotations

import pytest

from jobs.format.bucket_rules import BucketChange, BucketRules
from jobs.hudi.records import Touched
from jobs.protocol.file_group_change import SURE_ROWS, Switch, Verdict

OLD = "00000001-a-0"
SWITCH = Switch(frozenset({("p", OLD)}), BucketChange(BucketRules.uniform(4), BucketRules.uniform(8)))


@pytest.mark.parametrize(
    ("groups", "inserts", "verdict"),
    [
        ({"p": {OLD: 1}}, {}, Verdict.STALE),
        # The replaced group decides, independently of the other groups.
        ({"p": {OLD: 1, "00000005-b-0": 100}}, {}, Verdict.STALE),
        ({"p": {"00000005-b-0": 1}}, {}, Verdict.FRESH),
        ({"p": {"00000001-b-0": 3}}, {}, Verdict.OPEN),
        ({"p": {"00000001-b-0": SURE_ROWS}}, {}, Verdict.STALE),
        # The rows are in a new partition, and an inflight instant does not show their buckets.
        ({}, {"new": 300}, Verdict.OPEN),
        ({"p": {"00000001-b-0": 3}}, {"new": 300}, Verdict.OPEN),
        # Flink's inflight instants are empty.
        ({}, {}, Verdict.OPEN),
    ],
)
def test_files_show_after_an_expansion_whether_a_write_is_stale(
    groups: dict[str, dict[str, int]], inserts: dict[str, int], verdict: Verdict
) -> None:
    assert SWITCH.verdict(Touched(groups, inserts)) is verdict


CONTRACTION = BucketChange(BucketRules.uniform(8), BucketRules.uniform(2))


@pytest.mark.parametrize(
    ("groups", "inserts", "verdict"),
    [
        ({"p": {OLD: 1}}, {}, Verdict.STALE),
        # A removed bucket decides, independently of the other buckets.
        ({"p": {"00000001-b-0": 500, "00000002-b-0": 1}}, {}, Verdict.STALE),
        # Either number puts these rows into their buckets.
        ({"p": {"00000001-b-0": 500}}, {}, Verdict.FRESH),
        # If every bucket has a file group, rows without a file group belong to a removed bucket.
        ({"p": {"00000001-b-0": 5}}, {"p": 1}, Verdict.STALE),
        ({"p": {"00000001-b-0": 5}}, {"p": 0}, Verdict.FRESH),
        ({"p": {"00000001-b-0": 5}}, {"q": 1}, Verdict.OPEN),
        ({}, {"new": 300}, Verdict.OPEN),
        ({}, {}, Verdict.OPEN),
    ],
)
def test_files_show_after_a_contraction_whether_a_write_is_stale(
    groups: dict[str, dict[str, int]], inserts: dict[str, int], verdict: Verdict
) -> None:
    switch = Switch(frozenset({("p", OLD)}), CONTRACTION, frozenset({"p"}))
    assert switch.verdict(Touched(groups, inserts)) is verdict


@pytest.mark.parametrize(
    ("old", "new", "groups", "inserts", "verdict"),
    [
        (8, 6, {"p": {"00000006-b-0": 1}}, {}, Verdict.STALE),
        # Both numbers may put a row into this bucket.
        (8, 6, {"p": {"00000001-b-0": 500}}, {}, Verdict.OPEN),
        (8, 6, {}, {"p": 1}, Verdict.STALE),
        (6, 8, {"p": {"00000007-b-0": 1}}, {}, Verdict.FRESH),
        # Three of four rows by the new number are in old buckets.
        (6, 8, {"p": {"00000001-b-0": SURE_ROWS}}, {}, Verdict.OPEN),
        (6, 8, {"p": {"00000001-b-0": 3 * SURE_ROWS}}, {}, Verdict.STALE),
    ],
)
def test_files_show_after_another_change_of_the_number_whether_a_write_is_stale(
    old: int, new: int, groups: dict[str, dict[str, int]], inserts: dict[str, int], verdict: Verdict
) -> None:
    change = BucketChange(BucketRules.uniform(old), BucketRules.uniform(new))
    switch = Switch(frozenset(), change, frozenset({"p"} if new < old else ()))
    assert switch.verdict(Touched(groups, inserts)) is verdict


def test_writes_to_partitions_that_keep_their_number_are_not_checked() -> None:
    rules = BucketRules(((("^p$"), 4), (".*", 4)), 4), BucketRules((("^p$", 8), (".*", 4)), 4)
    switch = Switch(frozenset(), BucketChange(*rules))
    assert switch.verdict(Touched({"q": {"00000001-b-0": 500}}, {"q": 10})) is Verdict.FRESH


def test_many_rows_of_one_hash_do_not_show_that_a_write_is_stale() -> None:
    change = BucketChange(BucketRules.uniform(4), BucketRules.uniform(7))
    switch = Switch(frozenset(), change, hashes_keys=False)
    assert switch.verdict(Touched({"p": {"00000001-b-0": 500}}, {})) is Verdict.OPEN


def test_after_a_clustering_only_replaced_file_groups_show_a_stale_write() -> None:
    switch = Switch(frozenset({("p", OLD)}))
    assert switch.verdict(Touched({"p": {OLD: 1}}, {})) is Verdict.STALE
    assert switch.verdict(Touched({"p": {f"{OLD}-0": 1}}, {})) is Verdict.STALE
    assert switch.verdict(Touched({"p": {"00000001-b-0": 500}}, {"new": 3})) is Verdict.FRESH
    assert switch.verdict(Touched({}, {})) is Verdict.OPEN


@pytest.mark.parametrize(
    ("numbers", "bucket", "verdict"),
    [
        # Bucket 5 did not exist right before the switch, but a writer of the first number knows it.
        ((6, 4, 7), 5, Verdict.OPEN),
        ((6, 4, 7), 6, Verdict.FRESH),
        # The last number does not put the rows where the first one put them, although the last number divides the
        # second.
        ((6, 8, 4), 3, Verdict.OPEN),
        ((16, 8, 4), 3, Verdict.FRESH),
        # The last change left these partitions alone, but a writer may know the number before.
        ((4, 7, 7), 2, Verdict.OPEN),
    ],
)
def test_a_writer_may_know_a_number_from_before_an_earlier_change(
    numbers: tuple[int, int, int], bucket: int, verdict: Verdict
) -> None:
    first, old, new = map(BucketRules.uniform, numbers)
    switch = Switch(frozenset(), BucketChange(old, new), earlier=(old, first))
    assert switch.verdict(Touched({"p": {f"0000000{bucket}-b-0": 1}}, {})) is verdict


def test_many_rows_in_buckets_of_an_earlier_number_do_not_make_a_write_stale() -> None:
    first, old, new = map(BucketRules.uniform, (6, 4, 7))
    switch = Switch(frozenset(), BucketChange(old, new), earlier=(first,))
    assert switch.verdict(Touched({"p": {"00000001-b-0": 60}}, {})) is Verdict.OPEN
