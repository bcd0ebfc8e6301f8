"""Sorting finds the same newest version of each key as Hudi's merge of one version after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.dataplane.newest_records import Versions, keeps_newer, newest, of_deletes, require_order, resets
from jobs.errors import NotProvedError

# (key, ordering value, is it a delete, is it in a delete block)
Version = tuple[int, int, bool, bool]
RESET = 0


def one_by_one(versions: list[Version]) -> dict[int, int]:
    """Merges as `BufferedRecordMergerFactory.EventTimeRecordMerger` of Hudi 1.2.0; 0 is the default ordering value."""
    found: dict[int, int] = {}
    for place, (key, value, delete, in_block) in enumerate(versions):
        if key not in found:
            found[key] = place
            continue
        _, existing, was_delete, _ = versions[found[key]]
        existing_resets = was_delete and existing == RESET
        if in_block:
            replaces = not existing_resets and (value == RESET or existing <= value)
        else:
            replaces = existing_resets or (delete and value == RESET) or value >= existing
        if replaces:
            found[key] = place
    return found


def columns(versions: list[Version]) -> Versions:
    keys, values, deletes, blocks = (np.array(each) for each in zip(*versions, strict=True))
    return Versions(
        keys.astype(np.int64), (pa.array(values, pa.int32()),), deletes, blocks, deletes & (values == RESET)
    )


VERSIONS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans(), st.booleans()).map(
        lambda each: (each[0], each[1], each[2] or each[3], each[3])
    ),
    min_size=1,
    max_size=25,
)


@given(VERSIONS)
@settings(max_examples=200)
def test_the_newest_by_event_time_is_hudis(versions: list[Version]) -> None:
    numbers = {key: number for number, key in enumerate(dict.fromkeys(each[0] for each in versions))}
    numbered = [(numbers[key], value, delete, block) for key, value, delete, block in versions]
    every = columns(numbered)
    found = newest(every, len(numbers), by_event_time=True)
    # Hudi may keep any of several deletes by default, because all have the same effect.
    assert [-1 if every.resets[place] else place for place in found] == [
        -1 if every.resets[place] else place for _, place in sorted(one_by_one(numbered).items())
    ]


@given(VERSIONS)
@settings(max_examples=50)
def test_the_newest_by_commit_time_is_the_last(versions: list[Version]) -> None:
    numbers = {key: number for number, key in enumerate(dict.fromkeys(each[0] for each in versions))}
    numbered = [(numbers[key], value, delete, block) for key, value, delete, block in versions]
    found = newest(columns(numbered), len(numbers), by_event_time=False)
    assert dict(enumerate(found.tolist())) == {each[0]: place for place, each in enumerate(numbered)}


def before_1_0(versions: list[Version]) -> dict[int, int]:
    """Merges as `HoodieMergedLogRecordScanner` of Hudi 0.15 does with `OverwriteWithLatestAvroPayload`."""
    found: dict[int, int] = {}
    for place, (key, value, _, in_block) in enumerate(versions):
        _, existing, _, was_in_block = versions[found[key]] if key in found else (key, value, False, False)
        keeps = existing > value and (value != RESET if in_block else not was_in_block)
        if not keeps:
            found[key] = place
    return found


@pytest.mark.slow
@given(VERSIONS, st.booleans())
@settings(max_examples=400)
def test_an_older_hudi_keeps_the_same_record_if_ordering_values_do_not_decrease(
    versions: list[Version], by_event_time: bool
) -> None:
    numbers = {key: number for number, key in enumerate(dict.fromkeys(each[0] for each in versions))}
    numbered = [(numbers[key], value, delete, block) for key, value, delete, block in versions]
    every = columns(numbered)
    try:
        require_order(every, len(numbers), by_event_time=by_event_time)
    except NotProvedError:
        assert any(a[0] == b[0] and b[1] < a[1] for place, a in enumerate(numbered) for b in numbered[place:])
        return
    found = newest(every, len(numbers), by_event_time=by_event_time)
    older = [place for _, place in sorted(before_1_0(numbered).items())]
    assert [-1 if every.deletes[place] else place for place in found] == [
        -1 if every.deletes[place] else place for place in older
    ]


def several(values: list[tuple[Any, ...]], kinds: list[pa.DataType]) -> Versions:
    none = np.zeros(len(values), np.bool_)
    ordering = tuple(pa.array(column, kind) for column, kind in zip(zip(*values, strict=True), kinds, strict=True))
    return Versions(np.zeros(len(values), np.int64), ordering, none, none, none)


def test_several_ordering_fields_count_one_after_the_other() -> None:
    kinds = [pa.int64(), pa.string()]
    assert newest(several([(2, "a"), (1, "z"), (2, "ä"), (2, "b")], kinds), 1, by_event_time=True).tolist() == [2]
    assert newest(several([(2, "a"), (2, "a"), (1, "b")], kinds), 1, by_event_time=True).tolist() == [1]


def test_null_is_zero_for_integers_and_cannot_be_compared_with_others() -> None:
    assert newest(several([(0,), (None,), (-1,)], [pa.int32()]), 1, by_event_time=True).tolist() == [1]
    assert newest(several([(None,), (None,)], [pa.int64()]), 1, by_event_time=True).tolist() == [1]
    with pytest.raises(NotProvedError):
        newest(several([(0,), (None,)], [pa.int64()]), 1, by_event_time=True)


@pytest.mark.parametrize("value", [float("nan"), -0.0])
def test_floats_that_java_orders_differently_are_refused(value: float) -> None:
    with pytest.raises(NotProvedError):
        newest(several([(value,), (0.0,)], [pa.float64()]), 1, by_event_time=True)


def test_the_base_files_record_stays_only_if_it_is_greater() -> None:
    older, newer = pa.array([1, 2, 3, 3], pa.int64()), pa.array([2, 2, 2, 0], pa.int64())
    assert keeps_newer([older], [newer], np.array([False, False, False, True])).tolist() == [True, True, False, True]
    two = [pa.array([1, 1]), pa.array([5, 5])], [pa.array([1, 1]), pa.array([5, 4])]
    assert keeps_newer(*two, np.array([False, False])).tolist() == [True, False]


def test_a_delete_by_default_is_an_integer_zero() -> None:
    kinds = [pa.int64()]
    columns, default = of_deletes([("Int", 0), ("Long", 0), ("Long", 5)], kinds)
    assert (columns[0].to_pylist(), default.tolist()) == ([None, 0, 5], [True, False, False])
    for wrong in (("Int", 1), None, ("Array", (("Long", 1),)), ("String", "1")):
        with pytest.raises(NotProvedError):
            of_deletes([wrong], kinds)


def test_no_ordering_value_of_a_delete_counts_by_commit_time() -> None:
    columns, default = of_deletes([("Int", 0), ("Long", 5), None], [])
    assert (columns, default.tolist()) == ([], [True, True, True])


def test_a_deleting_record_resets_if_its_ordering_value_is_null_or_an_integer_zero() -> None:
    deletes = np.array([True, True, True, False])
    assert resets([pa.array([0, None, 1, 0], pa.int32())], deletes).tolist() == [True, True, False, False]
    assert resets([pa.array([0, None, 1, 0], pa.int64())], deletes).tolist() == [False, True, False, False]
    assert resets([], deletes).tolist() == deletes.tolist()
