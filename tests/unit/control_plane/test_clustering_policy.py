"""Tests the decision table of clustering."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.contract import JobKind
from jobs.job_params import ClusteringLayout
from service.lake.snapshot import PartitionState, TableSnapshot
from service.policies.settings import ClusteringSettings
from service.scheduling.clustering import decide
from service.scheduling.decision import Run, Skip
from service.scheduling.trigger_context import Calendar, TriggerContext
from tests.unit.control_plane.snapshots import MIB, NOW, a_snapshot, ago, plan, since

SMALL = PartitionState("dt=1", base_files=10, small_files=5)
ALONE = PartitionState("dt=2", base_files=1, small_files=1)
PLAIN = TriggerContext(NOW)
PARAMS = {
    "sort_by": ["city"],
    "layout": "linear",
    "on_active_writers": "wait",
    "wait_seconds": 300,
    "lock_seconds": 20,
    "hand_over_seconds": 3600,
}


def settings(**changes: object) -> ClusteringSettings:
    known = {"enabled": True, "sort_by": ("city",), "unsorted_bytes": 50 * MIB, "small_file_share": 0.5}
    return ClusteringSettings(**{**known, **changes})


WRITTEN = since(3, hours=1, bytes_written=50 * MIB)
BY_BYTES = "50.0 MiB written since the last clustering, threshold 50.0 MiB"
BY_SHARE = "5 of 10 files are smaller than 100.0 MiB and could be merged, threshold 50%"

RUNS = [
    ("small files", settings(), a_snapshot(SMALL), PLAIN, BY_SHARE),
    ("unsorted bytes", settings(), a_snapshot(since_clustering=WRITTEN), PLAIN, BY_BYTES),
    ("unsorted bytes in buckets", settings(), a_snapshot(SMALL, num_buckets=4, since_clustering=WRITTEN), PLAIN,
     BY_BYTES),
    ("calendar", settings(), a_snapshot(),
     TriggerContext(NOW, Calendar(is_due=True)), "its scheduled time has come"),
    ("a plan of a writer", settings(), a_snapshot(pending=(plan("clustering"),)), PLAIN,
     "1 clustering plan left on the timeline to be executed (001)"),
    ("a plan of a writer, before version 8", settings(), a_snapshot(pending=(plan("replacecommit"),)), PLAIN,
     "1 clustering plan left on the timeline to be executed (001)"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "snapshot", "context", "because"), [pytest.param(*c, id=i) for i, *c in RUNS])
def test_the_policy_starts_a_clustering(
    given: ClusteringSettings, snapshot: TableSnapshot, context: TriggerContext, because: str
) -> None:
    assert decide(given, snapshot, context) == Run(JobKind.CLUSTERING, PARAMS, because)


@pytest.mark.parametrize("num_buckets", [None, 4])
def test_buckets_are_prepared_for_an_expansion_and_other_tables_are_not(num_buckets: int | None) -> None:
    given = settings(expansion_factor=2, sort_by=() if num_buckets else ("city",))
    answer = decide(given, a_snapshot(SMALL, num_buckets=num_buckets, since_clustering=WRITTEN), PLAIN)
    assert isinstance(answer, Run)
    assert answer.params.get("expansion_factor") == (2 if num_buckets else None)
    assert ("sort_by" in answer.params) == (num_buckets is None)


SKIPS = [
    ("off, as it is at first", ClusteringSettings(), a_snapshot(SMALL), PLAIN,
     Skip("off", "clustering is switched off")),
    ("nothing to sort by in buckets", settings(sort_by=()), a_snapshot(SMALL, num_buckets=4), PLAIN,
     Skip("no-sort-columns", "the policy names no columns to sort by, and the files of buckets cannot be merged")),
    ("bytes without an order", settings(sort_by=(), small_file_share=None),
     a_snapshot(since_clustering=since(bytes_written=99 * MIB)), PLAIN,
     Skip("not-yet", "the policy has no threshold for this table")),
    ("neither", settings(), a_snapshot(PartitionState("", base_files=11, small_files=5)), PLAIN,
     Skip("not-yet", "0 B written since the last clustering, threshold 50.0 MiB; 5 of 11 files are smaller than "
          "100.0 MiB and could be merged, threshold 50%")),
    ("a small file alone", settings(unsorted_bytes=None), a_snapshot(ALONE), PLAIN,
     Skip("not-yet", "0 of 1 file are smaller than 100.0 MiB and could be merged, threshold 50%")),
    ("small files in buckets", settings(unsorted_bytes=None), a_snapshot(SMALL, num_buckets=4), PLAIN,
     Skip("not-yet", "the policy has no threshold for this table")),
    ("calendar says later", settings(), a_snapshot(SMALL),
     TriggerContext(NOW, Calendar(False, NOW + timedelta(hours=1))),
     Skip("not-yet", "its next scheduled time is 2026-01-01 13:00 UTC", NOW + timedelta(hours=1))),
    ("nothing new", settings(), a_snapshot(SMALL), TriggerContext(NOW, last_run_at=ago(seconds=5)),
     Skip("nothing-new", "nothing was committed since the last clustering job")),
    ("somebody executes a plan", settings(), a_snapshot(SMALL, pending=(plan("clustering", "inflight", hours=1),)),
     PLAIN, Skip("plan-running", "another process is executing 001 (clustering, inflight, 1 h old, probably made by a "
                 "writer); if it is dead, `groundskeeper jobs run clustering tbl_1 --param 'plans=[\"001\"]' --param "
                 "take_over=true` takes the plan over", NOW + timedelta(hours=5))),
    ("a plan that would break the buckets", settings(), a_snapshot(num_buckets=4, pending=(plan("clustering"),)), PLAIN,
     Skip("plan-unusable", "001 is a clustering plan by Hudi that would break the bucket index: roll the plan back")),
]  # fmt: skip


@pytest.mark.parametrize(("given", "snapshot", "context", "skip"), [pytest.param(*c, id=i) for i, *c in SKIPS])
def test_the_policy_does_not_start_a_clustering(
    given: ClusteringSettings, snapshot: TableSnapshot, context: TriggerContext, skip: Skip
) -> None:
    assert decide(given, snapshot, context) == skip


def test_the_policy_chooses_the_parameters_of_the_clustering() -> None:
    given = settings(sort_by=("a", "b"), layout=ClusteringLayout.HILBERT, wait_seconds=5, lock_seconds=6)
    answer = decide(given, a_snapshot(SMALL), PLAIN)
    assert isinstance(answer, Run)
    assert answer.params == {**PARAMS, "sort_by": ["a", "b"], "layout": "hilbert", "wait_seconds": 5, "lock_seconds": 6}


def test_an_old_plan_is_warned_of_even_if_clustering_is_off() -> None:
    answer = decide(ClusteringSettings(), a_snapshot(pending=(plan("clustering", hours=7),)), PLAIN)
    assert answer.warning == "1 clustering plan has been pending for up to 7 h (001)."
