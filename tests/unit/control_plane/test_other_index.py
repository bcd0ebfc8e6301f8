"""Tests when new rows are suspected to come from a writer without the bucket index: many rows in few buckets."""

from __future__ import annotations

import pytest

from jobs.contract import BucketIndex
from service.lake.instant import Instant, InstantState
from service.lake.instant_metadata import InstantMetadata
from service.observation.other_index import rows_of_other_index, rows_too_close
from service.observation.snapshot_refresh import Files, Layout
from service.observation.stale_commits import replacing
from service.observation.timeline_diff import ObservedInstant

INSTANT = "20260101000000000"


def bucket(number: int) -> str:
    return f"{number:08}-0000-4000-8000-000000000000-0"


def observed(metadata: InstantMetadata, action: str) -> ObservedInstant:
    return ObservedInstant(Instant(INSTANT, action, InstantState.COMPLETED), None, metadata)


@pytest.mark.parametrize(
    ("rows", "soon", "later"),
    [
        ({0: 9}, False, False),
        ({0: 10}, True, False),
        ({0: 12}, True, True),
        ({0: 10, 1: 10}, True, False),
        ({0: 20, 1: 20}, True, True),
        ({0: 400, 1: 400, 2: 400}, True, True),
        ({0: 500, 1: 1, 2: 1, 3: 1}, False, False),
        ({}, False, False),
    ],
)
def test_new_rows_in_few_of_four_buckets_are_suspected(rows: dict[int, int], soon: bool, later: bool) -> None:
    found = InstantMetadata(inserted={"p": {bucket(number): count for number, count in rows.items()}})
    for is_recent, suspected in ((True, soon), (False, later)):
        counted = rows_too_close(observed(found, "commit"), "p", 4, is_recent=is_recent)
        assert counted == (sum(rows.values()) if suspected else 0)
        assert rows_too_close(observed(found, "deltacommit"), "p", 4, is_recent=is_recent) == 0


@pytest.mark.parametrize("num_buckets", [2048, 1_000_000])
def test_numbers_of_choices_that_are_too_large_for_a_float_are_computed(num_buckets: int) -> None:
    spread = InstantMetadata(inserted={"p": {bucket(number): 1 for number in range(700)}})
    close = InstantMetadata(inserted={"p": {bucket(number): 40 for number in range(700)}})
    assert rows_too_close(observed(spread, "commit"), "p", num_buckets, is_recent=True) == 0
    assert rows_too_close(observed(close, "commit"), "p", num_buckets, is_recent=True) == 28_000


def test_one_partition_of_many_is_not_suspected_by_chance() -> None:
    found = InstantMetadata(inserted={f"p{number}": {bucket(0): 10} for number in range(365)})
    assert rows_too_close(observed(found, "commit"), "p7", 4, is_recent=True) == 0


def test_a_base_file_that_a_delta_commit_wrote_anew_is_one_of_another_index() -> None:
    groups = {bucket(0): 5, bucket(1): 7}
    found = InstantMetadata(written={"p": groups}, rewritten={"p": frozenset({bucket(1)})})
    assert rows_of_other_index(observed(found, "deltacommit"), "p", 4, ()) == 7
    # On a copy-on-write table a writer with the bucket index writes base files anew, too.
    assert rows_of_other_index(observed(found, "commit"), "p", 4, ()) == 0
    # A later adoption of the bucket index has rewritten these rows.
    assert rows_of_other_index(observed(found, "deltacommit"), "p", 4, {("p", bucket(1))}) == 0


@pytest.mark.parametrize(
    ("file_id", "is_adopted"),
    [
        ("9f3a01bc-1ff5-4431-a5df-6a3f7dc1c040-0", True),
        (bucket(12_628_430), True),
        (bucket(4), True),
        (bucket(3), False),
    ],
)
def test_a_replaced_random_file_id_of_eight_digits_shows_an_adoption(file_id: str, is_adopted: bool) -> None:
    files = Files(None, (), Layout(BucketIndex(4, ("id",))), {("p", file_id): "20250101000000000"})
    written = InstantMetadata(operation="upsert", written={"p": {bucket(0): 5}})
    assert replacing([observed(written, "commit")], files) == ({"20250101000000000"} if is_adopted else set())
