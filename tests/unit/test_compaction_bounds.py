"""Tests the file groups of a bounded compaction, and its options for Hudi's planner."""

from __future__ import annotations

import re
from typing import Any

from jobs.hudi.plans import Plan
from jobs.hudi.records import FileSlice
from jobs.kinds.compaction import CompactionParams
from jobs.kinds.results import WorkLeft
from jobs.services.compaction_bounds import Bounds, Choice, PendingPlan, left_of

MIB = 1024 * 1024
STRATEGIES = "org.apache.hudi.table.action.compact.strategy"
BY_REGEX = f"{STRATEGIES}.PartitionRegexBasedCompactionStrategy"
BY_LOGS = f"{STRATEGIES}.LogFileSizeBasedCompactionStrategy"


def a_slice(partition: str, file_id: str, base: int, logs: int) -> FileSlice:
    return FileSlice(partition, file_id, f"{partition}/{file_id}.parquet" if base else None, base, ("log",), logs)


DUE = [
    a_slice("dt=1", "a", 100, 10),
    a_slice("dt=1", "b", 100, 20),
    a_slice("dt=2", "c", 100, 5),
    a_slice("dt=3", "d", 100, 30),
    a_slice("dt=3", "e", 100, 40),
]


def bounds(limit: int | None = None, *partitions: Any, file_groups: int | None = None) -> Bounds:
    params: dict[str, Any] = {} if limit is None else {"limit_bytes": limit}
    if file_groups is not None:
        params["limit_file_groups"] = file_groups
    if partitions:
        params["partitions"] = list(partitions)
    return Bounds.of(CompactionParams.of(params))


def ids(choice: Choice) -> tuple[str, str]:
    return "".join(sorted(each.file_id for each in choice.slices)), "".join(
        sorted(each.file_id for each in choice.left)
    )


def matched(choice: Choice) -> list[str]:
    """Returns the partitions that Hudi's planner keeps: those in which the regex is found."""
    regex = choice.options["hoodie.compaction.partition.path.regex"]
    return [path for path in ("", "dt=1", "dt=2", "dt=3", "dt=33", "xdt=3") if re.search(regex, path)]


def test_without_a_limit_everything_is_taken_by_the_usual_strategy() -> None:
    assert bounds().is_unlimited
    assert ids(bounds(10_000).choose(DUE)) == ("abcde", "")
    assert bounds(10_000).choose(DUE).options == {}


def test_the_newest_partitions_that_fit_are_taken_whole() -> None:
    choice = bounds(270 + 105).choose(DUE)
    assert ids(choice) == ("cde", "ab")
    assert choice.options["hoodie.compaction.strategy"] == BY_REGEX
    assert matched(choice) == ["dt=2", "dt=3"]
    # No older partition replaces a newer one that does not fit.
    assert ids(bounds(270 + 104).choose(DUE)) == ("de", "abc")


def test_if_a_partition_exceeds_the_limit_its_file_groups_with_the_largest_logs_are_taken() -> None:
    choice = bounds(140).choose(DUE)
    assert ids(choice) == ("e", "abcd")
    assert matched(choice) == ["dt=3"]
    assert choice.options["hoodie.compaction.strategy"] == f"{BY_REGEX},{BY_LOGS}"
    assert choice.options["hoodie.compaction.logfile.size.threshold"] == "40"


def test_one_file_group_is_taken_whatever_its_size() -> None:
    assert ids(bounds(1).choose(DUE)) == ("e", "abcd")
    assert ids(bounds(1).choose([])) == ("", "")


def test_among_equal_logs_the_target_io_ends_the_plan() -> None:
    due = [a_slice("", name, 10 * MIB, 4 * MIB) for name in "abcdef"]
    choice = bounds(30 * MIB).choose(due)
    assert len(choice.slices) == 2
    # Each file group has 14 MiB to read and 10 MiB to write: Hudi stops after the one that reaches the target.
    assert choice.options["hoodie.compaction.target.io"] == "25"


def test_a_number_of_file_groups_bounds_in_the_same_order() -> None:
    assert not bounds(file_groups=5).is_unlimited
    assert ids(bounds(file_groups=5).choose(DUE)) == ("abcde", "")
    assert bounds(file_groups=5).choose(DUE).options == {}
    assert ids(bounds(file_groups=4).choose(DUE)) == ("cde", "ab")
    assert ids(bounds(file_groups=2).choose(DUE)) == ("de", "abc")
    one = bounds(file_groups=1).choose(DUE)
    assert ids(one) == ("e", "abcd")
    assert one.options["hoodie.compaction.logfile.size.threshold"] == "40"
    # The smaller of two limits counts.
    assert ids(bounds(270, file_groups=4).choose(DUE)) == ("de", "abc")
    assert ids(bounds(10_000, file_groups=1).choose(DUE)) == ("e", "abcd")


def test_file_groups_with_equal_logs_go_together_if_they_are_too_small_for_hudi_to_count() -> None:
    tiny = [a_slice("", name, 10, 4) for name in "abc"] + [a_slice("", "d", 10, 3)]
    assert ids(bounds(file_groups=1).choose(tiny)) == ("abc", "d")
    large = [a_slice("", name, 10 * MIB, 4 * MIB) for name in "abc"]
    assert len(bounds(file_groups=2).choose(large).slices) == 2


def test_only_the_chosen_partitions_count() -> None:
    choice = bounds(None, "dt=1", {"prefix": "dt=2"}).choose(DUE)
    assert ids(choice) == ("abc", "")
    assert matched(choice) == ["dt=1", "dt=2"]
    assert ids(bounds(105, "dt=1", "dt=2").choose(DUE)) == ("c", "ab")


def test_an_unpartitioned_table_is_bounded_by_its_logs() -> None:
    due = [a_slice("", "a", 100, 10), a_slice("", "b", 100, 20)]
    choice = bounds(150).choose(due)
    assert ids(choice) == ("b", "a")
    assert matched(choice) == [""]


def a_plan(instant: str, size: int, partition: str = "dt=1") -> PendingPlan:
    return PendingPlan(instant, frozenset({(partition, "x")}), size)


def test_pending_plans_go_first_and_count() -> None:
    plans = [a_plan("1", 100), a_plan("2", 100), a_plan("3", 50)]
    assert [each.instant for each in bounds(150).plans(plans, ())] == ["1", "3"]
    # At least one plan is executed, whatever its size, and a plan that an earlier attempt began is finished.
    assert [each.instant for each in bounds(1).plans(plans, ())] == ["1"]
    assert [each.instant for each in bounds(1).plans(plans, ("2",))] == ["1", "2"]
    assert ids(bounds(240).choose(DUE, plans[:1])) == ("e", "abcd")
    assert ids(bounds(239).choose(DUE, plans[:1])) == ("", "abcde")
    by_number = bounds(file_groups=2)
    assert [each.instant for each in by_number.plans(plans, ())] == ["1", "2"]
    assert ids(by_number.choose(DUE, plans[:1])) == ("e", "abcd")
    assert ids(by_number.choose(DUE, plans[:2])) == ("", "abcde")
    assert left_of(DUE[:1], plans[1:]) == WorkLeft(file_groups=3, bytes=260, plans=("2", "3"))


def test_plans_of_other_partitions_are_left() -> None:
    plans = [a_plan("1", 100, "dt=2"), a_plan("2", 100)]
    assert [each.instant for each in bounds(None, "dt=1").plans(plans, ())] == ["2"]


def test_the_size_of_a_plan_is_that_of_its_metrics() -> None:
    operations = [
        {"partitionPath": "a", "fileId": "1", "metrics": {"TOTAL_LOG_FILES_SIZE": 10.0, "TOTAL_IO_READ_MB": 0.0}},
        {"partitionPath": "a", "fileId": "2", "metrics": {"TOTAL_LOG_FILES_SIZE": 10.0, "TOTAL_IO_READ_MB": 3.0}},
        {"partitionPath": "b", "fileId": "1", "metrics": None},
    ]
    plan = PendingPlan.of(Plan("1", "compaction", {"operations": operations}))
    assert plan == PendingPlan("1", frozenset({("a", "1"), ("a", "2"), ("b", "1")}), 10 + 3 * MIB)
    assert PendingPlan.of(Plan("1", "compaction", {})).bytes == 0
