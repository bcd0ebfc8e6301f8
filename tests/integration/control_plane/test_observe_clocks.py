"""Polls use the clock of the table's writers in any time zone, and report writers with different clocks."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from jobs.contract import JobKind
from tests.integration.control_plane.operated import HOUR, Operated, Table
from tests.integration.control_plane.watching import A
from tests.support.small_table import base_file, instant_at, log_file

if TYPE_CHECKING:
    from pathlib import Path

BEHIND, LATE = timedelta(hours=-8), timedelta(seconds=0.2)
COMPACTION = {"compaction": {"enabled": True, "commits": 7}}


class Writer:
    """A writer whose clock is `offset` from UTC. The storage stamps its files by the service's clock."""

    def __init__(self, table: Table, offset: timedelta) -> None:
        self.table, self.offset = table, offset

    def begin(self) -> str:
        at = self._now
        instant = instant_at(at + self.offset)
        self.table.files.begin(instant)
        self._stamp_all(instant, at)
        self.table.operated.clock.advance(5)
        return instant

    def _stamp_all(self, instant: str, begun: datetime) -> None:
        for file in self.table.files.timeline.glob(f"{instant}.*"):
            _stamp(file, begun + LATE)

    def write(self, instant: str | None = None) -> str:
        instant = instant or self.begin()
        self._complete(instant, {"p": {log_file(A, instant): 5}})
        return instant

    def compact(self) -> str:
        """Compacts as a job that follows this writer's clock."""
        at = self._now
        instant = instant_at(at + self.offset)
        self.table.compacted(instant)
        self.table.files.schedule(instant, "compaction")
        self._stamp_all(instant, at)
        self.table.operated.clock.advance(5)
        self._complete(instant, {"p": {base_file(A, instant): 10}}, action="commit", operation="COMPACT")
        return instant

    def _complete(self, instant: str, files: dict[str, dict[str, int]], **more: str) -> None:
        at = self._now
        modified = (at + LATE).timestamp()
        self.table.files.commit(instant, files, completed=instant_at(at + self.offset), modified=modified, **more)
        self.table.operated.clock.advance(20)

    @property
    def _now(self) -> datetime:
        return self.table.operated.clock()


def _stamp(file: Path, at: datetime) -> None:
    os.utime(file, (at.timestamp(), at.timestamp()))


@pytest.mark.parametrize("offset", [BEHIND, timedelta(minutes=-10), timedelta(minutes=10)])
def test_commits_after_a_compaction_count_whatever_the_clock_of_the_writers(
    operated: Operated, version: int, offset: timedelta
) -> None:
    table = operated.table(version=version, utc=False)
    operated.call("PUT", f"/v1/tables/{table.id}/policy", 200, COMPACTION)
    writer = Writer(table, offset)
    for _ in range(3):
        writer.write()
    writer.compact()
    begun = operated.clock()
    for _ in range(7):
        writer.write()
    last = writer.table.operated.clock() - timedelta(seconds=20)
    pending = writer.begin()
    operated.poll(60)
    snapshot = operated.watched.snapshot(table.id)
    assert snapshot.since_compaction.commits == 7
    assert snapshot.last_commit_at is not None
    assert abs(snapshot.last_commit_at - last) < timedelta(seconds=1)
    assert snapshot.since_compaction.at is not None
    assert abs(snapshot.since_compaction.at - begun + timedelta(seconds=20)) < timedelta(seconds=1)
    [waiting] = snapshot.pending
    assert waiting.requested_time == pending
    assert waiting.requested_at is not None
    assert abs(waiting.requested_at - last - timedelta(seconds=20)) < timedelta(seconds=1)
    operated.service.plan()
    decision = operated.service.decision(JobKind.COMPACTION, table.id)
    assert decision.code != "nothing-new"
    assert decision.verdict.value == "run"


def test_a_table_shows_the_clock_of_its_writers(operated: Operated) -> None:
    table = operated.table(utc=False)
    assert operated.call("GET", f"/v1/tables/{table.id}", 200)["clock"] is None
    writer = Writer(table, BEHIND - timedelta(minutes=1))
    since = operated.clock() + timedelta(seconds=5)
    for _ in range(3):
        writer.write()
    operated.poll(60)
    clock = operated.call("GET", f"/v1/tables/{table.id}", 200)["clock"]
    assert clock == {
        "utc_offset_seconds": -28_860.2,
        "zone_seconds": -28_800,
        "ahead_seconds": -60.2,
        "since": f"{since:%Y-%m-%dT%H:%M:%SZ}",
        "samples": 3,
        "disagreement": None,
        "set_back": None,
    }
    [listed] = operated.call("GET", "/v1/tables", 200)["items"]
    assert listed["clock"] == clock
    assert operated.problems() == []


def test_writers_with_two_clocks_in_turn_are_a_problem_until_they_agree(operated: Operated) -> None:
    table = operated.table(utc=False)
    one, other = Writer(table, timedelta()), Writer(table, BEHIND)
    since = operated.clock() + timedelta(seconds=30)
    for _ in range(3):
        one.write()
        other.write()
    operated.poll(60)
    found = operated.one("clocks-disagree")
    assert (found["severity"], found["table_id"]) == ("critical", table.id)
    assert found["since"] == f"{since:%Y-%m-%dT%H:%M:%SZ}"
    assert found["evidence"]["apart_seconds"] == 28_800
    assert "8:00:00 behind UTC" in found["detail"]
    # The measured values change with the commits, the beginning does not.
    operated.poll(30 * HOUR)
    for _ in range(30):
        one.write()
        other.write()
    operated.poll(30 * HOUR)
    for _ in range(60):
        one.write()
        other.write()
    operated.poll(60)
    again = operated.one("clocks-disagree")
    assert (again["id"], again["since"]) == (found["id"], found["since"])
    for _ in range(101):
        one.write()
    operated.poll(60)
    assert "appeared after" in operated.one("clocks-disagree")["detail"]
    operated.poll(50 * HOUR)
    one.write()
    operated.poll(60)
    assert "clocks-disagree" not in operated.kinds()


def test_a_clock_that_was_set_back_is_a_problem_for_two_days(operated: Operated) -> None:
    table = operated.table(utc=False)
    one, other = Writer(table, timedelta()), Writer(table, timedelta(minutes=-5))
    for _ in range(3):
        one.write()
    since = operated.clock()
    instant = other.write()
    operated.poll(60)
    found = operated.one("clocks-disagree")
    assert (found["severity"], found["table_id"]) == ("critical", table.id)
    assert found["since"] == f"{since:%Y-%m-%dT%H:%M:%SZ}"
    assert (found["evidence"]["instant"], found["evidence"]["instants"]) == (instant, 1)
    assert f"{instant} appeared after" in found["detail"]
    for _ in range(3):
        operated.poll(20 * HOUR)
        one.write()
    operated.poll(60)
    assert "clocks-disagree" not in operated.kinds()
