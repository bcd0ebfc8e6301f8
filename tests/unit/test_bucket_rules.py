"""Tests the number of buckets of each partition when an expansion names only some partitions."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from jobs.format.bucket_rules import BucketChange, BucketRules, Scale, Selection, not_a_divisor, too_unlike

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


def test_selections_without_any_partition_are_named() -> None:
    assert Selection(("a", "b"), ("c", "a")).missing(["a", "a1"]) == ["b", "c..."]


def test_the_children_of_a_bucket_are_all_buckets_that_its_rows_can_get() -> None:
    change = BucketChange(BucketRules.uniform(4), BucketRules.uniform(12))
    assert change.children("p", 3) == (3, 7, 11)
    change = BucketChange(BucketRules.uniform(4), BucketRules.uniform(6))
    assert change.children("p", 1) == (1, 5, 3)
    assert replace(change, to_finer=True).children("p", 1) == (1, 5, 9)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**31 - 1))
def test_rows_stay_in_their_family_whatever_the_two_numbers(old: int, new: int, code: int) -> None:
    change = BucketChange(BucketRules.uniform(old), BucketRules.uniform(new))
    before, after, finer = code % old, code % new, code % change.finer("p")
    assert finer in change.residues("p", before)
    assert after in change.children("p", before)
    assert len(set(change.children("p", before))) == len(change.residues("p", before))
    assert change.family("p", before) == change.family("p", after) == change.family("p", finer)
    # Each old bucket of a family feeds exactly the new buckets of the family.
    family = [bucket for bucket in range(new) if change.family("p", bucket) == change.family("p", before)]
    assert sorted(change.children("p", before)) == family


def test_a_change_in_which_a_bucket_would_have_too_many_children_is_refused() -> None:
    for old, new, is_too_unlike in [(2000, 2001, True), (2000, 2500, False), (1024, 1023, False), (2, 4096, True)]:
        change = BucketChange(BucketRules.uniform(old), BucketRules.uniform(new))
        assert change.is_too_unlike("p") is is_too_unlike
    assert too_unlike("p", 2000, 2001).hint == "Ask for a number that shares a larger divisor with 2000, such as 2002."


@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 2**31 - 1))
def test_a_contraction_is_the_inverse_of_an_expansion(number: int, factor: int, code: int) -> None:
    few, many = BucketRules.uniform(number), BucketRules.uniform(number * factor)
    expansion, contraction = BucketChange(few, many), BucketChange(many, few)
    before, after = code % number, code % (number * factor)
    assert after in expansion.children("p", before)
    assert contraction.children("p", after) == (before,)
    assert contraction.residues("p", after) == (after,)
    # The buckets of a family are rewritten together.
    assert expansion.family("p", after) == contraction.family("p", after) == before
    assert expansion.family("p", before) == before
    assert many.whole_table(Scale(factor=factor, contracts=True)) == few


def test_a_bucket_beyond_the_number_has_no_place_for_its_rows() -> None:
    rules = BucketRules.uniform(4)
    assert BucketChange(rules, rules).children("p", 5) == ()


def test_a_factor_that_does_not_divide_leaves_a_number_as_it_is() -> None:
    rules = BucketRules.parse("x$,3;.*,8", 8)
    halved = rules.only(Selection((), ("",)), Scale(factor=2, contracts=True))
    assert [halved.buckets_of(path) for path in ("x", "y")] == [3, 4]
    exact = rules.only(Selection(("y",)), Scale(2, contracts=True))
    assert [exact.buckets_of(path) for path in ("x", "y", "z")] == [3, 2, 8]


def test_a_number_that_does_not_divide_the_buckets_is_refused_with_the_numbers_that_do() -> None:
    refusal = not_a_divisor("dt=1", 12, 5, others=2)
    assert refusal.detail == "partition 'dt=1' has 12 buckets, 5 were asked for (and so for 2 other partitions)"
    assert refusal.hint == "Ask for 6 or 4 or 3 buckets."
    assert not_a_divisor("dt=1", 1, 1).hint == "Leave out partitions with a single bucket."
