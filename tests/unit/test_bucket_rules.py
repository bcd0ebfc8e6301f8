"""Which partition gets how many buckets, when some of them are expanded: those that were asked for, and no other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.errors import RefusedError
from jobs.format.bucket_rules import BucketChange, BucketRules, Scale, Selection

PATHS = st.lists(
    st.text(alphabet="ab=/.-+*?()[]{}^$|\\,; é😀0", max_size=8), min_size=1, max_size=6, unique=True
).filter(lambda paths: not any("\n" in path for path in paths))


@given(PATHS, st.data())
def test_exactly_the_selected_partitions_change(paths: list[str], data: st.DataObject) -> None:
    rules = BucketRules.uniform(4)
    numbers = dict.fromkeys(paths, 4)
    for _ in range(3):
        exact = data.draw(st.lists(st.sampled_from(paths), max_size=2, unique=True))
        prefixes = [path[:2] for path in data.draw(st.lists(st.sampled_from(paths), max_size=2)) if path]
        selection = Selection(tuple(exact), tuple(dict.fromkeys(prefixes)))
        factor = data.draw(st.integers(2, 3))
        rules = BucketRules.parse(str(rules.only(selection, Scale(factor=factor))), rules.default)
        numbers = {path: number * (factor if path in selection else 1) for path, number in numbers.items()}
        assert {path: rules.buckets_of(path) for path in paths} == numbers


def test_a_prefix_counts_for_partitions_still_to_come_and_an_exact_path_does_not() -> None:
    rules = BucketRules.uniform(4).only(Selection(("eu/de",), ("us/",)), Scale(8))
    assert [rules.buckets_of(path) for path in ("eu/de", "eu/de2", "us/ca", "us/ny", "us", "xus/ca")] == [
        8,
        4,
        8,
        8,
        4,
        4,
    ]


def test_a_factor_on_a_prefix_multiplies_each_partitions_own_number() -> None:
    rules = BucketRules.parse("x$,2;.*,4", 4).only(Selection(prefixes=("us/",)), Scale(factor=2))
    assert [rules.buckets_of(path) for path in ("us/x", "us/y", "eu/x", "eu/y")] == [4, 8, 2, 4]


def test_expanding_the_same_prefix_again_and_again_does_not_make_the_rules_longer() -> None:
    rules = BucketRules.parse("x$,2;.*,4", 4)
    for _ in range(3):
        rules = rules.only(Selection(prefixes=("us/",)), Scale(factor=2))
    assert len(rules.rules) == 4
    assert (rules.buckets_of("us/x"), rules.buckets_of("us/y")) == (16, 32)


def test_the_empty_partition_path_can_be_selected() -> None:
    rules = BucketRules.uniform(4).only(Selection(("",)), Scale(8))
    assert (rules.buckets_of(""), rules.buckets_of("a")) == (8, 4)


def test_what_selects_nothing_is_named() -> None:
    assert Selection(("a", "b"), ("c", "a")).missing(["a", "a1"]) == ["b", "c..."]


def test_a_bucket_goes_to_all_that_its_rows_can_have_for_a_bucket() -> None:
    change = BucketChange(BucketRules.uniform(4), BucketRules.uniform(12))
    assert change.children("p", 3) == (3, 7, 11)
    with pytest.raises(RefusedError, match="4 buckets, 6"):
        BucketChange(BucketRules.uniform(4), BucketRules.uniform(6)).children("p", 0)
