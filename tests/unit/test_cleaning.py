"""Tests which commits and files cleaning retains."""

from __future__ import annotations

import pytest

from jobs.format.stale_writes import CompletedWrite
from jobs.hudi.records import Commit
from jobs.protocol.clean_retention import commits_to_retain


def completed(*instants: str) -> list[Commit]:
    """Returns the commits in the order of completion."""
    return [Commit(CompletedWrite(instant, "UPSERT"), instant, {}, {}, {}, {}) for instant in instants]


@pytest.mark.parametrize(
    ("instants", "retain", "expected"),
    [
        (["1", "2", "3", "4"], 2, 2),
        (["1", "2", "3", "4"], 9, 9),
        ([], 2, 2),
        # A clustering that began before three writes and completed after them.
        (["1", "3", "4", "5", "2"], 1, 4),
        (["1", "3", "4", "5", "2"], 2, 4),
        (["1", "3", "4", "5", "2", "6"], 2, 5),
        (["1", "3", "4", "5", "2", "6", "7"], 2, 2),
    ],
)
def test_files_that_a_long_commit_replaced_stay_until_enough_commits_complete_after_it(
    instants: list[str], retain: int, expected: int
) -> None:
    assert commits_to_retain(completed(*instants), retain, has_sessions=False) == expected


def test_for_sessions_only_commits_that_bring_rows_count() -> None:
    services = [
        Commit(CompletedWrite(instant, operation), instant, {}, {}, {}, {})
        for instant, operation in (("4", "CLUSTER"), ("5", "COMPACT"), ("6", "BUCKET_RESCALE"))
    ]
    commits = [*completed("1", "2", "3"), *services]
    assert commits_to_retain(commits, 1, has_sessions=False) == 1
    assert commits_to_retain(commits, 1, has_sessions=True) == 4
    assert commits_to_retain(commits, 2, has_sessions=True) == 5
