"""Tests the problem of a growing backlog with polls of a real timeline."""

from __future__ import annotations

import pytest

from tests.integration.control_plane.operated import GIB, HOUR, MIB, Operated
from tests.integration.control_plane.watching import A
from tests.support.small_table import base_file, log_file

KIND = "compaction-backlog-growing"


class Compacted:
    """A table of 1 GiB with one file group, for which a test says how many bytes of logs each compaction leaves."""

    def __init__(self, operated: Operated) -> None:
        self.operated, self.table = operated, operated.table()
        self.slice = self.table.instant()
        self.table.commit({base_file(A, self.slice): GIB}, instant=self.slice)
        self.logs = 0

    def grows(self, mib: int, seconds: float = 1200) -> None:
        self.logs += 1
        self.table.commit({log_file(A, self.slice, self.logs): mib * MIB})
        self.operated.poll(seconds)

    def is_compacted(self, left: int = 0, seconds: float = 1200) -> None:
        """Writes a compaction, and log files that were written meanwhile."""
        self.slice, self.logs = self.table.instant(), int(left > 0)
        self.table.files.begin(self.slice, "compaction")
        files = {base_file(A, self.slice): GIB}
        if left:
            files[log_file(A, self.slice, 1)] = left * MIB
        self.table.commit(files, instant=self.slice, action="commit", operation="COMPACT")
        self.operated.poll(seconds)

    def is_listed(self) -> bool:
        return KIND in self.operated.kinds()


def test_compactions_that_leave_more_each_time_are_listed_until_one_leaves_less(operated: Operated) -> None:
    compacted = Compacted(operated)
    for left in (100, 200, 300):
        compacted.grows(600)
        compacted.is_compacted(left)
        assert not compacted.is_listed()
    compacted.grows(600)
    compacted.is_compacted(400)
    found = operated.one(KIND)
    assert found["severity"] == "warning"
    assert found["evidence"]["left_bytes"] == [str(each * MIB) for each in (100, 200, 300, 400)]
    assert "100.0 MiB, 200.0 MiB, 300.0 MiB and 400.0 MiB of logs" in found["detail"]
    assert operated.press(found, 202)["kind"] == "compaction"
    compacted.grows(700)
    assert compacted.is_listed()
    compacted.is_compacted(50)
    assert not compacted.is_listed()


def test_logs_that_outgrow_every_earlier_rise_are_listed_until_they_are_compacted(operated: Operated) -> None:
    compacted = Compacted(operated)
    compacted.is_compacted()
    for _ in range(2):
        for _ in range(5):
            compacted.grows(40)
        compacted.is_compacted()
    for number in range(1, 8):
        compacted.grows(40)
        assert not compacted.is_listed(), number
    compacted.grows(40)
    found = operated.one(KIND)
    assert found["evidence"]["most_before_bytes"] == 200 * MIB
    assert (found["evidence"]["log_bytes"], found["evidence"]["commits"]) == (320 * MIB, 8)
    compacted.is_compacted()
    assert not compacted.is_listed()


def test_a_table_that_is_never_compacted_is_listed_until_it_is(operated: Operated) -> None:
    compacted = Compacted(operated)
    operated.call("PUT", f"/v1/tables/{compacted.table.id}/policy", 200, {"compaction": {"enabled": False}})
    for number in range(1, 10):
        compacted.grows(40)
        assert not compacted.is_listed(), number
    compacted.grows(40)
    found = operated.one(KIND)
    assert found["evidence"]["most_before_bytes"] is None
    assert "switch compaction on" in found["remedy"]
    compacted.is_compacted()
    assert not compacted.is_listed()


@pytest.mark.parametrize(
    "seconds",
    [pytest.param(70, marks=pytest.mark.exhaustive), 1200, pytest.param(5 * HOUR, marks=pytest.mark.exhaustive)],
)
def test_logs_that_rise_and_fall_with_compactions_are_not_a_growing_backlog(operated: Operated, seconds: float) -> None:
    """The test has compactions every minute and every day, which leave slightly different sizes, and uneven growth
    between them."""
    compacted = Compacted(operated)
    compacted.is_compacted(0, seconds)
    for left, rises in ((20, 5), (30, 7), (25, 4), (35, 5), (5, 6), (6, 5), (7, 5), (8, 7)):
        for _ in range(rises):
            compacted.grows(60, seconds)
            assert not compacted.is_listed()
        compacted.is_compacted(left, seconds)
        assert not compacted.is_listed()


def test_a_burst_of_writes_is_not_a_growing_backlog(operated: Operated) -> None:
    compacted = Compacted(operated)
    compacted.is_compacted()
    for _ in range(2):
        compacted.grows(60)
        compacted.is_compacted()
    for _ in range(14):
        compacted.grows(100, 70)
        assert not compacted.is_listed()


def test_small_logs_beside_large_base_files_may_grow(operated: Operated) -> None:
    compacted = Compacted(operated)
    for left in (1, 5, 10, 20, 40, 45):
        compacted.grows(1)
        compacted.is_compacted(left)
        assert not compacted.is_listed()
