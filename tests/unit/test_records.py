"""Tests the maximum number of deletes in the logs of a file slice, by the commits that wrote them."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.hudi.records import Commit, FileSlice, commit_of, deletes_in_logs

GROUP = "00000001-a"


def a_slice(*logs: str) -> FileSlice:
    return FileSlice("p", GROUP, "/t/p/00000001-a_0-0-0_5.parquet", 10, logs, 10)


def a_commit(instant: str, *stats: tuple[str, int], group: str = GROUP) -> Commit:
    of_partition: list[dict[str, Any]] = [
        {"fileId": group, "path": f"p/{name}", "numDeletes": deletes, "prevCommit": "null"} for name, deletes in stats
    ]
    return commit_of(instant, instant, {"operationType": "DELETE", "partitionToWriteStats": {"p": of_partition}})


@pytest.mark.parametrize(
    ("logs", "commits", "expected"),
    [
        ((), [a_commit("5", ("00000001-a_0-0-0_5.parquet", 7))], 0),
        (("l1", "l2"), [a_commit("2", ("l1", 3)), a_commit("3", ("l2", 4))], 7),
        (("l1", "l2"), [a_commit("2", ("l1", 3), ("l2", 4))], 7),
        (("l1",), [a_commit("2", ("l1", 3)), a_commit("3", ("l2", 4))], 3),
        # The log came after the slice was listed.
        (("l1",), [a_commit("6", ("l1", 3)), a_commit("7", ("l2", 4))], 7),
        # Before table version 8 several commits may append to one log.
        (("l1",), [a_commit("2", ("l1", 3)), a_commit("3", ("l1", 4))], 7),
        (("l1",), [a_commit("2", ("l1", 3), group="00000002-b")], None),
        (("l1", "l2"), [a_commit("3", ("l2", 4))], None),
    ],
)
def test_the_deletes_of_all_commits_of_its_logs_count(
    logs: tuple[str, ...], commits: list[Commit], expected: int | None
) -> None:
    assert deletes_in_logs(a_slice(*logs), commits, may_be_rows=False) == expected
    assert deletes_in_logs(a_slice(*logs), commits, may_be_rows=True) is None
