"""Tests when buckets of consistent hashing are split or merged, and in which partitions."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.contract import JobKind
from service.lake.snapshot import PartitionState
from service.policies.bucket_settings import ResizeSettings
from service.policies.settings import Mode
from service.queue.job import Job, JobState
from service.scheduling.bucket_resize import decide
from service.scheduling.decision import Run, Skip, Suggest
from service.scheduling.job_history import one_sided_splits
from service.scheduling.trigger_context import Calendar, TriggerContext
from service.scheduling.writer_hazard import NO_HAZARD, Obstacle, WriterHazard
from tests.unit.control_plane.snapshots import MIB, NOW, a_snapshot, ago, plan

AUTO = {"mode": Mode.AUTO, "split_bytes": 100 * MIB, "merge_bytes": 10 * MIB}
PLAIN = TriggerContext(NOW)


def partition(path: str, largest: int, neighbours: int | None = None, *, buckets: int = 4) -> PartitionState:
    """Returns a partition; sizes are in MiB."""
    least = None if neighbours is None else neighbours * MIB
    return PartitionState(path, num_buckets=buckets, largest_range_bytes=largest * MIB, neighbours_bytes=least)


def decision_for(*partitions: PartitionState, pending: Any = (), **settings: Any) -> Run | Suggest | Skip:
    return decide(ResizeSettings(**{**AUTO, **settings}), a_snapshot(*partitions, pending=pending), PLAIN)


@pytest.mark.parametrize(
    ("partitions", "chosen"),
    [
        ([partition("a", 101), partition("b", 100, 11)], ["a"]),
        ([partition("a", 50, 10), partition("b", 100, 11)], ["a"]),
        ([partition("a", 50, 10), partition("b", 101), partition("c", 50, 50)], ["a", "b"]),
        ([partition("a", 101), partition("b", 50, 1)], None),
    ],
)
def test_a_job_resizes_the_partitions_that_need_it(partitions: list[PartitionState], chosen: list[str] | None) -> None:
    found = decision_for(*partitions)
    assert isinstance(found, Run)
    assert (found.kind, found.params.get("partitions")) == (JobKind.BUCKET_RESIZE, chosen)
    assert (found.params["split_bytes"], found.params["merge_bytes"]) == (100 * MIB, 10 * MIB)
    assert isinstance(decision_for(*partitions, mode=Mode.SUGGEST), Suggest)


@pytest.mark.parametrize(
    ("partitions", "more", "code"),
    [
        ([partition("a", 101)], {"mode": Mode.OFF}, "off"),
        ([PartitionState("a", num_buckets=4, largest_bucket_bytes=101 * MIB)], {}, "no-consistent-hashing"),
        ([partition("a", 100, 11)], {}, "sizes-right"),
        ([partition("a", 101, buckets=8)], {"max_buckets": 8}, "sizes-right"),
        ([partition("a", 9, 1, buckets=2)], {"min_buckets": 2}, "sizes-right"),
        ([partition("a", 101)], {"merge_bytes": 26 * MIB}, "bounds-contradict"),
        ([partition("a", 101)], {"min_buckets": 9, "max_buckets": 8}, "bounds-contradict"),
        ([partition("a", 101)], {"pending": (plan(),)}, "plans-pending"),
    ],
)
def test_the_policy_says_why_it_starts_no_resize(
    partitions: list[PartitionState], more: dict[str, Any], code: str
) -> None:
    found = decision_for(*partitions, **more)
    assert isinstance(found, Skip)
    assert found.code == code


def test_sizes_are_checked_at_the_times_of_the_schedule() -> None:
    for is_due in (False, True):
        found = decide(
            ResizeSettings(**AUTO), a_snapshot(partition("a", 101)), TriggerContext(NOW, Calendar(is_due=is_due))
        )
        assert isinstance(found, Run) is is_due


@pytest.mark.parametrize(
    ("hazard", "has_flink", "code"),
    [
        (NO_HAZARD, False, None),
        (NO_HAZARD, True, "flink-may-be-running"),
        (WriterHazard(Obstacle("writers-too-old", "no version is declared")), False, "writers-too-old"),
        # Statements by SQL miss rows with a hashing config, not with ranges.
        (WriterHazard(Obstacle("sql-statements-lose-rows", "prune")), False, None),
    ],
)
@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.SUGGEST])
def test_no_job_is_started_or_suggested_that_would_be_refused(
    hazard: WriterHazard, has_flink: bool, code: str | None, mode: Mode
) -> None:
    settings = ResizeSettings(**{**AUTO, "mode": mode})
    found = decide(settings, a_snapshot(partition("a", 101)), PLAIN, hazard, has_flink=has_flink)
    assert (found.code if isinstance(found, Skip) else None) == code
    if code:
        assert "101.0 MiB" in found.because
        assert "declare" in found.because
    fits = decide(settings, a_snapshot(partition("a", 100)), PLAIN, hazard, has_flink=has_flink)
    assert isinstance(fits, Skip)
    assert fits.code == "sizes-right"


def done(*changes: tuple[str, str, int, float | None], at: int) -> Job:
    """Returns a successful resize: partition, change, MiB and the larger share of each change."""
    result = [
        {
            "partition": path,
            "change": change,
            "file_ids": ["f"],
            "bytes": mib * MIB,
            "because": "",
            "larger_share": share,
        }
        for path, change, mib, share in changes
    ]
    when = {"created_at": ago(hours=at), "not_before": ago(hours=at)}
    kind, state = JobKind.BUCKET_RESIZE, JobState.SUCCEEDED
    return Job(f"job_{at}", "tbl_1", kind=kind, state=state, result={"changes": result}, **when)


def test_a_bucket_of_one_key_is_split_once_until_it_has_grown() -> None:
    useless = ("a", "split", 2000, 1.0)
    merge = ("a", "merge", 1, None)
    known = one_sided_splits([done(("b", "split", 300, 0.5), at=1), done(useless, merge, at=2)])
    assert known == {"a": 2000 * MIB}
    for largest, is_due in ((1990, False), (2199, False), (2201, True)):
        # The empty bucket of the split and its neighbour do not bring the job back.
        state = a_snapshot(partition("a", largest, 0, buckets=9))
        found = decide(ResizeSettings(**AUTO), state, PLAIN, one_sided=known)
        assert isinstance(found, Run) is is_due
        assert is_due or (isinstance(found, Skip) and found.code == "few-keys" and "partition a" in found.because)
    both = decide(ResizeSettings(**AUTO), a_snapshot(partition("a", 2000), partition("b", 101)), PLAIN, one_sided=known)
    assert isinstance(both, Run)
    assert both.params["partitions"] == ["b"]


def test_a_partition_is_split_on_while_one_of_its_splits_is_of_use() -> None:
    useless, useful = ("a", "split", 2000, 1.0), ("a", "split", 300, 0.6)
    assert one_sided_splits([done(useless, useful, at=1), done(useless, at=2)]) == {}
    assert one_sided_splits([done(useless, at=1), done(useful, at=2)]) == {"a": 2000 * MIB}
    # The result of an older worker does not have the larger share.
    assert one_sided_splits([done(("a", "split", 2000, None), at=1)]) == {}
