"""Tests the costs of the ways to another number of buckets."""

from __future__ import annotations

from jobs.dataplane.rehash_ways import MOST_OUTPUTS, FamilySize, SliceSize, Way, costs

MIB = 1024**2


def family(slices: int, outputs: int, *, size: int = 1024 * MIB, logs: bool = False) -> FamilySize:
    return FamilySize((SliceSize(size, logs),) * slices, outputs)


def test_one_rehash_is_cheaper_where_there_are_families_for_all_cores() -> None:
    best, other = costs([family(3, 2)] * 16, 4)
    assert (best.way, best.bytes_read, best.tasks) == (Way.ONE_REHASH, 48 * 1024 * MIB, 16)
    assert (other.way, other.bytes_read) == (Way.THROUGH_MULTIPLE, 2 * best.bytes_read)


def test_the_way_through_the_common_multiple_is_cheaper_with_one_family_on_many_cores() -> None:
    best, other = costs([family(5, 8)], 16)
    assert (best.way, best.tasks) == (Way.THROUGH_MULTIPLE, 5 + 8)
    # Each task of the other way reads all rows.
    assert (other.way, other.bytes_read) == (Way.ONE_REHASH, 5 * 1024 * MIB * other.tasks)


def test_slices_with_logs_are_merged_before_one_task_reads_them() -> None:
    found = {each.way: each for each in costs([family(2, 3, logs=True)], 1)}
    assert found[Way.ONE_REHASH].bytes_written == found[Way.THROUGH_MULTIPLE].bytes_written == 4 * 1024 * MIB


def test_only_one_way_exists_if_one_number_divides_the_other() -> None:
    for one in (family(1, 4), family(4, 1), family(1, 4, logs=True)):
        assert [each.way for each in costs([one], 4)] == [Way.ONE_REHASH]
    assert [each.way for each in costs([], 4)] == [Way.ONE_REHASH]


def test_a_task_never_writes_more_files_than_fit_into_memory() -> None:
    (only,) = costs([family(1, 40)], 1)
    assert only.tasks == 3
    assert max(each.outputs for each in costs([family(3, 40)], 1)) == MOST_OUTPUTS
