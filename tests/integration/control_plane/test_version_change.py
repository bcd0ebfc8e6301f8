"""Tests jobs that change the table version: the calls of the API, and what polls record while the timeline moves."""

from __future__ import annotations

import dataclasses
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import JobKind, Outcome, Result
from jobs.format.table_version import UPGRADE_NOTE
from service.catalog import table_store
from service.db.engine import reading, writing
from tests.integration.control_plane.operated import HOUR
from tests.integration.control_plane.watching import A, B
from tests.support.small_table import SmallTable, base_file, instant_at, log_file

if TYPE_CHECKING:
    from pathlib import Path

    from service.lake.snapshot import TableSnapshot
    from tests.integration.control_plane.operated import Operated

PROPERTIES = ".hoodie/hoodie.properties"


class Changing:
    """A table whose version changes, and a copy of its `.hoodie` in the new version."""

    def __init__(self, operated: Operated, before: int, after: int) -> None:
        self.operated = operated
        self.table = operated.table(version=before)
        self.files = self.table.files
        self.changed = SmallTable(operated.folder / "changed" / "t", version=after)
        self.note = self.files.base / UPGRADE_NOTE
        self.instants = [self._commit(number) for number in range(5)]

    def _commit(self, number: int) -> str:
        files = {log_file(A, str(number)): 10, base_file(B, str(number)): 20}
        at = self.operated.clock() - timedelta(hours=5 - number)
        for each in (self.files, self.changed):
            completed = instant_at(at + timedelta(seconds=1))
            each.commit(instant_at(at), {"p": files}, completed=completed, modified=at.timestamp())
        return instant_at(at)

    def begin(self) -> None:
        self.note.parent.mkdir(parents=True)
        self.note.touch()

    def move(self, instant: str) -> None:
        for path in self.files.timeline.glob(f"{instant}*"):
            path.unlink()
        self._take(*self.changed.timeline.glob(f"{instant}*"))

    def end(self) -> None:
        self._take(self.changed.base / PROPERTIES)
        self.files.version = self.changed.version
        self.files.timeline = self.files.base / self.changed.timeline.relative_to(self.changed.base)
        shutil.rmtree(self.note.parent)

    def _take(self, *paths: Path) -> None:
        for path in paths:
            to = self.files.base / path.relative_to(self.changed.base)
            to.parent.mkdir(exist_ok=True)
            shutil.copy2(path, to)


@pytest.mark.parametrize("oldest_first", [True, False])
@pytest.mark.parametrize(("before", "after"), [(6, 9), (9, 6)])
def test_polls_record_nothing_while_the_timeline_moves_and_go_on_afterwards(
    operated: Operated, before: int, after: int, oldest_first: bool
) -> None:
    changing = Changing(operated, before, after)
    table, watched = changing.table, operated.watched
    with writing(operated.engine) as connection:
        table_store.set_profile(connection, table.id, {"table_version": before, "columns": []})
    operated.poll()
    recorded, seen, told = watched.commits(table.id), _seen(operated, table.id), watched.events()
    assert [each.requested_time for each in recorded] == changing.instants

    def poll() -> None:
        """Asserts that a poll records nothing, neither at once nor when it would have become a problem."""
        operated.poll(HOUR)
        assert (watched.commits(table.id), _seen(operated, table.id), watched.events()) == (recorded, seen, told)
        assert (operated.problems(), watched.incidents(table.id), watched.watch(table.id).gap_at) == ([], [], None)

    changing.begin()
    poll()
    for instant in sorted(changing.instants, reverse=not oldest_first):
        changing.move(instant)
        poll()
    properties = changing.files.base / PROPERTIES
    away = properties.rename(properties.with_suffix(".away"))
    poll()
    away.rename(properties)
    changing.end()
    operated.poll(HOUR)
    news = table.commit({log_file(A, "6"): 10})
    operated.poll(HOUR)

    assert watched.instants(table.id) == [*changing.instants, news]
    assert (operated.problems(), watched.incidents(table.id), watched.watch(table.id).gap_at) == ([], [], None)
    assert [each.type for each in watched.events()][len(told) :] == ["commit.published"]
    with reading(operated.engine) as connection:
        assert table_store.get(connection, table.id).profile["table_version"] == after


def test_a_table_whose_first_poll_falls_into_the_change_is_recorded_as_a_whole(operated: Operated) -> None:
    changing = Changing(operated, 6, 9)
    changing.begin()
    changing.move(changing.instants[0])
    operated.poll(HOUR)
    assert operated.watched.commits(changing.table.id) == []
    for instant in changing.instants[1:]:
        changing.move(instant)
    changing.end()
    operated.poll(HOUR)
    assert operated.watched.instants(changing.table.id) == changing.instants
    assert operated.problems() == []


def test_a_backup_that_is_left_without_its_note_hides_nothing(operated: Operated) -> None:
    changing = Changing(operated, 6, 9)
    changing.note.parent.mkdir(parents=True)
    operated.poll(HOUR)
    assert operated.watched.instants(changing.table.id) == changing.instants


def test_an_upgrade_is_planned_and_run_by_the_api(operated: Operated) -> None:
    table = operated.table(version=6)
    path = f"/v1/tables/{table.id}/jobs"
    for wrong in ({}, {"to_version": 5}, {"to_version": "nine"}, {"to_version": 9, "force": True}):
        refused = operated.call("POST", path, 422, {"kind": "upgrade", "params": wrong})
        assert refused["status"] == 422, refused
    details: dict[str, Any] = {"from_version": 6, "to_version": 9, "rows": 80, "properties": [], "refusals": []}
    for dry_run in (True, False):
        job = operated.call("POST", path, 202, {"kind": "upgrade", "params": {"to_version": 9}, "dry_run": dry_run})
        order = operated.worker.must_lease()
        assert (order.job_id, order.kind, order.dry_run) == (job["id"], JobKind.UPGRADE, dry_run)
        assert (order.params["to_version"], order.params["undeclared"]) == (9, False)
        assert operated.worker.report(order, Result(Outcome.SUCCEEDED, details=details)).status_code == 200
        done = operated.call("GET", f"/v1/jobs/{job['id']}", 200)
        assert (done["state"], done["result"]["from_version"]) == ("succeeded", 6)


def _seen(operated: Operated, table_id: str) -> TableSnapshot:
    return dataclasses.replace(operated.watched.snapshot(table_id), taken_at=operated.clock.now.min)
