"""Tests which files cleaning keeps for late consumers, and the decisions' texts about them."""

from __future__ import annotations

from datetime import datetime

import pytest

from jobs.format.stale_writes import CompletedWrite
from jobs.hudi.records import Commit
from jobs.job_params import CleaningPolicy
from jobs.kinds.cleaning import Consumer as Awaited
from jobs.protocol.consumers import behind_replacements, files_needed, first_needed, retention
from service.catalog.consumer import Consumer
from service.lake.snapshot import PartitionState
from service.policies.settings import CleaningSettings
from service.scheduling import cleaning
from service.scheduling.trigger_context import TriggerContext
from tests.unit.control_plane.snapshots import NOW, a_snapshot, ago

COMMITS, HOURS, VERSIONS = CleaningPolicy


def completed(*instants: str, replacing: str = "") -> list[Commit]:
    """Returns the commits in the order of completion."""
    group = frozenset({("p", "f")})
    return [
        Commit(
            CompletedWrite(each, "UPSERT", replaced=group if each == replacing else frozenset()), each, {}, {}, {}, {}
        )
        for each in instants
    ]


@pytest.mark.parametrize(
    ("seen", "place"),
    [
        ([], None),
        (["4"], 3),
        (["4", "2"], 1),
        # One instant is archived, one was never a commit of this table, and one is newer than all.
        (["0"], 0),
        (["35"], 2),
        (["9"], 4),
    ],
)
def test_the_consumer_that_is_furthest_behind_decides(seen: list[str], place: int | None) -> None:
    commits = completed("1", "2", "3", "4", "5")
    assert first_needed(commits, [Awaited(each, each) for each in seen]) == place


def test_a_table_without_commits_needs_nothing_kept() -> None:
    assert first_needed([], [Awaited("a", "1")]) is None


@pytest.mark.parametrize(
    ("policy", "retain", "needed", "expected"),
    [
        (COMMITS, 2, None, 2),
        (COMMITS, 2, 1, 4),
        (COMMITS, 9, 1, 9),
        (VERSIONS, 2, 1, 5),
        # At 05:30 the commit of 02:00 is kept, with a margin of an hour.
        (HOURS, 1, 1, 5),
        (HOURS, 99, 1, 99),
    ],
)
def test_the_retention_is_long_enough_for_every_policy(
    policy: CleaningPolicy, retain: int, needed: int | None, expected: int
) -> None:
    commits = completed(*(f"202601010{hour}0000000" for hour in range(1, 6)))
    assert retention(policy, retain, commits, needed, datetime(2026, 1, 1, 5, 30)) == expected


def test_commits_that_began_before_the_one_that_was_seen_are_kept_if_they_completed_later() -> None:
    assert retention(COMMITS, 1, completed("1", "4", "2", "5"), 1, datetime(2026, 1, 1)) == 3


def test_file_versions_are_not_cleaned_beside_a_consumer_that_has_not_seen_a_replacement() -> None:
    commits = completed("1", "2", "3", replacing="2")
    (problem,) = behind_replacements(VERSIONS, commits, 0)
    assert (problem.type, problem.detail) == ("consumer-behind", "2")
    assert behind_replacements(VERSIONS, commits, 1) == []
    assert behind_replacements(COMMITS, commits, 0) == []


def test_decisions_name_the_consumer_that_is_behind_and_those_that_are_silent() -> None:
    behind = Consumer("tbl_1", "warehouse", "20260101100000000", ago(days=3), ago(hours=1))
    ahead = Consumer("tbl_1", "search", "20260101110000000", ago(days=3), ago(hours=1))
    silent = Consumer("tbl_1", "old-job", "20250101100000000", ago(days=300), ago(hours=168))
    snapshot = a_snapshot(PartitionState("", freed_files=9, freed_bytes=9))
    answer = cleaning.decide(CleaningSettings(), snapshot, TriggerContext(NOW), (), [ahead, behind, silent])
    assert answer.because.endswith("; versions since 20260101100000000 are kept for consumer 'warehouse'")
    assert answer.warning == ("Silent for more than 168 hours: old-job. Nothing is kept for 1 such consumer any more.")
    longer = CleaningSettings(consumer_hours=169)
    assert "'old-job'" in cleaning.decide(longer, snapshot, TriggerContext(NOW), (), [behind, silent]).because


def test_a_file_is_needed_until_the_consumer_has_seen_what_superseded_it() -> None:
    def file(instant: str) -> str:
        return f"f_0-0-0_{instant}.parquet"

    commits = [
        Commit(CompletedWrite(each, "UPSERT"), each, {"p": {"f": [f"p/{file(each)}"]}}, {}, {}, {}) for each in "345"
    ]
    commits.append(Commit(CompletedWrite("6", "CLUSTER", replaced=frozenset({("p", "f")})), "6", {}, {}, {}, {}))
    log, failed = ".f_3.log.1_0-0-0", "f_9-9-9_4.parquet"
    files = [("p", name) for name in (*map(file, "2345"), failed, "g_0-0-0_3.parquet", "no-file-of-hudi")]
    # The archived commit "2" was current until "3".
    assert files_needed(commits, 0, files) == {("p", file(each)) for each in "345"}
    assert files_needed(commits, 1, files) == {("p", file(each)) for each in "45"}
    assert files_needed(commits, 2, files) == {("p", file("5"))}
    assert files_needed(commits, 3, files) == set()
    commits[0].files["p"]["f"].append(f"p/{log}")
    assert files_needed(commits, 0, [("p", log)]) == {("p", log)}
    assert files_needed(commits, 1, [("p", log)]) == set()
