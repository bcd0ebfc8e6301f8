"""Tests how the lock of a table is shown, which locks are broken, and which files and events a break leaves."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from jobs.contract import TABLE_LOCKED, Outcome, Problem, Progress, Result, TableLock
from jobs.format.lock_providers import IN_STORAGE
from jobs.storage.permissions import Permissions
from jobs.storage.wrapped_files import WrappedFiles
from service.catalog import table_store
from service.db.engine import writing
from service.lake import table_lock
from service.lake.storage import Storage, open_storage
from service.model.lock_state import LockState
from service.model.storage_errors import StorageError
from service.model.table_errors import OptionNotAllowedError
from service.queue import lock_sighting_store
from service.queue.lock_sighting import LockSighting
from tests.integration.control_plane.operated import HOUR, Operated, Table

REASON = {"reason": "the machine of the writer is gone"}
EXPIRING = {"provider": "filesystem", "options": {"hoodie.write.lock.filesystem.expire": "240"}}
ZOOKEEPER = {
    "provider": "zookeeper",
    "options": {
        "hoodie.write.lock.zookeeper.url": "zk:2181",
        "hoodie.write.lock.zookeeper.base_path": "/hudi",
        "hoodie.write.lock.zookeeper.lock_key": "t",
        "hoodie.write.lock.zookeeper.session_timeout_ms": "20000",
    },
}


class OneLock:
    """The lock of one table."""

    def __init__(self, operated: Operated, table: Table) -> None:
        self.operated, self.table = operated, table
        self.path = f"/v1/tables/{table.id}/lock"
        self.file = table.files.base / ".hoodie" / "lock"

    def hold(self, hours: float, content: str = "") -> None:
        """Makes the lock file as Hudi does, or as one of our workers does."""
        self.file.write_text(content)
        at = self.operated.clock().timestamp() - hours * HOUR
        os.utime(self.file, (at, at))

    def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = self.operated.call("GET", self.path, 200)
        return found

    def broken(self, **query: str) -> dict[str, Any]:
        answer = self.operated.client.delete(self.path, params={**REASON, **query})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def kept(self, reason: str, **query: str) -> dict[str, Any]:
        """Asserts that the lock is not broken, and that GET shows the reason."""
        shown = self.shown()
        there = self.file.exists() and (self.file.read_bytes(), self.file.stat().st_mtime)
        answer = self.operated.client.delete(self.path, params={**REASON, **query})
        problem: dict[str, Any] = answer.json()
        assert (answer.status_code, problem["type"].rpartition("/")[2]) == (409, reason), answer.text
        assert there == (self.file.exists() and (self.file.read_bytes(), self.file.stat().st_mtime))
        if not query:
            assert (shown["is_breakable"], shown["refusal"]["type"]) == (False, reason)
            assert shown["refusal"]["detail"] == problem["detail"]
        return problem

    def trail(self) -> dict[str, Any]:
        newest: dict[str, Any] = self.operated.call("GET", "/v1/audit?operation=breakLock", 200)["items"][0]
        return newest


@pytest.fixture
def the_lock(operated: Operated) -> OneLock:
    table = operated.table()
    table.commit()
    operated.poll()
    return OneLock(operated, table)


def test_a_lock_that_nobody_holds_is_shown_as_free(the_lock: OneLock) -> None:
    shown = the_lock.shown()
    assert (shown["state"], shown["since"], shown["holder"]) == ("free", None, None)
    assert shown["path"] == str(the_lock.file)
    the_lock.kept("lock-free")


def test_a_job_that_the_lock_keeps_in_the_queue_is_shown_before_its_first_attempt(the_lock: OneLock) -> None:
    operated = the_lock.operated
    the_lock.hold(3)
    job = operated.call("POST", f"/v1/tables/{the_lock.table.id}/jobs", 202, {"kind": "cleaning"})
    operated.call("POST", f"/v1/tables/{the_lock.table.id}/jobs", 202, {"kind": "audit"})
    assert the_lock.shown()["jobs"] == [], "no look has found that it waits"
    now = operated.clock()
    with writing(operated.engine) as connection:
        lock_sighting_store.watch(connection, [the_lock.table.id], now)
        sighting = LockSighting(the_lock.table.id, LockState.HELD, True, now, "a writer", now)
        lock_sighting_store.record(connection, sighting, next_look_at=now)
    shown = [(each["id"], each["waits"], each["holds"]) for each in the_lock.shown()["jobs"]]
    assert shown == [(job["id"], True, False)]
    assert the_lock.broken()["waiting_jobs"] == [job["id"]]


def test_an_old_lock_of_a_dead_writer_is_broken_and_the_job_that_waited_is_due_at_once(the_lock: OneLock) -> None:
    operated = the_lock.operated
    the_lock.hold(3)
    (the_lock.file.parent / ".lock.crc").write_bytes(b"crc\0")
    job = operated.call("POST", f"/v1/tables/{the_lock.table.id}/jobs", 202, {"kind": "cleaning"})
    locked = Problem(TABLE_LOCKED, "The table's lock is held", "held for 3 h by a writer", retriable=True)
    operated.worker.report(operated.worker.must_lease(), Result(Outcome.FAILED, error=locked))
    assert operated.worker.lease() is None, "its next attempt is not due yet"
    shown = the_lock.shown()
    assert (shown["state"], shown["holder"]) == ("held", "a writer that Hudi's lock file does not name")
    assert (shown["age_seconds"], shown["is_breakable"], shown["refusal"]) == (3 * HOUR, True, None)
    assert [(each["id"], each["waits"], each["holds"]) for each in shown["jobs"]] == [(job["id"], True, False)]

    assert operated.client.delete(the_lock.path).status_code == 422, "there is no reason"
    assert operated.client.delete(the_lock.path, params={"reason": " "}).status_code == 422
    broken = the_lock.broken(lock_id=shown["id"])
    assert (broken["held_seconds"], broken["waiting_jobs"]) == (3 * HOUR, [job["id"]])
    assert sorted(each.name for each in the_lock.file.parent.iterdir() if "lock" in each.name) == []
    assert operated.worker.must_lease().job_id == job["id"]
    entry = the_lock.trail()
    assert (entry["object_type"], entry["object_id"], entry["status"]) == ("table-lock", the_lock.table.id, 200)
    assert entry["before"] == {
        "state": "held",
        "path": str(the_lock.file),
        "since": broken["since"].replace("Z", "+00:00"),
        "holder": "a writer that Hudi's lock file does not name",
    }
    assert entry["after"] == {"state": "removed", **REASON}
    the_lock.kept("lock-free")
    refused = the_lock.trail()
    assert (refused["outcome"], refused["problem"], refused["after"]) == ("refused", "lock-free", None)


def test_a_lock_is_not_broken_before_it_is_as_old_as_the_limit(the_lock: OneLock) -> None:
    the_lock.hold(0.9)
    problem = the_lock.kept("lock-too-young")
    assert datetime.fromisoformat(problem["breakable_at"]) == the_lock.operated.clock() + timedelta(minutes=6)
    the_lock.operated.clock.advance(0.2 * HOUR)
    the_lock.broken()


def test_a_lock_beside_a_live_writer_is_not_broken(the_lock: OneLock) -> None:
    the_lock.hold(3)
    now = the_lock.operated.clock().timestamp()
    write = the_lock.table.instant()
    the_lock.table.files.begin(write, heartbeat=now - 60)
    problem = the_lock.kept("writers-alive")
    assert problem["instants"] == [write]
    [writer] = the_lock.shown()["writers"]
    assert (writer["instant"], writer["is_alive"], writer["heartbeat_age_seconds"]) == (write, True, 60)
    assert [each["requested_time"] for each in the_lock.shown()["pending"]] == [write]
    the_lock.operated.clock.advance(300)
    assert the_lock.shown()["writers"][0]["is_alive"] is False
    the_lock.broken()


def test_the_heartbeat_of_our_job_that_waits_for_the_lock_does_not_count_as_its_holders(the_lock: OneLock) -> None:
    operated = the_lock.operated
    the_lock.hold(3)
    operated.call("POST", f"/v1/tables/{the_lock.table.id}/jobs", 202, {"kind": "compaction"})
    plan, instant = operated.worker.must_lease(), the_lock.table.instant()
    the_lock.table.files.begin(instant, "compaction", heartbeat=operated.clock().timestamp())
    waits = Progress("completing: waits for the table's lock, held for 3 h by a writer")
    operated.worker.beat(plan, instant, progress=waits)
    shown = the_lock.shown()
    assert shown["writers"][0]["job_id"] == shown["jobs"][0]["id"] == plan.job_id
    assert (shown["jobs"][0]["waits"], shown["is_breakable"]) == (True, True)
    the_lock.broken()


def test_a_lock_that_our_own_worker_holds_is_not_broken(the_lock: OneLock) -> None:
    operated = the_lock.operated
    operated.call("POST", f"/v1/tables/{the_lock.table.id}/jobs", 202, {"kind": "archival"})
    plan = operated.worker.must_lease()
    operated.worker.beat(plan, progress=Progress("archiving"))
    signature = {"owner": f"groundskeeper {plan.job_id}", "pid": 7, "host": "node-3", "boot": "x"}
    the_lock.hold(3, json.dumps(signature))
    assert the_lock.shown()["holder"] == f"groundskeeper {plan.job_id} of process 7 on node-3"
    assert [each["holds"] for each in the_lock.shown()["jobs"]] == [True]
    assert the_lock.kept("lock-held-by-job")["job_id"] == plan.job_id
    operated.worker.report(plan, Result(Outcome.SUCCEEDED))
    the_lock.broken()


def test_a_lock_that_expires_is_left_to_its_next_client(the_lock: OneLock) -> None:
    the_lock.operated.call("PATCH", f"/v1/tables/{the_lock.table.id}", 200, {"lock": EXPIRING})
    the_lock.hold(3)
    problem = the_lock.kept("lock-ends-by-itself")
    ends_at = the_lock.shown()["ends_at"]
    assert ends_at.startswith(the_lock.operated.clock().strftime("%Y-%m-%d"))
    assert problem["ends_at"].replace("+00:00", "Z") == ends_at
    assert "240 min after it was taken" in problem["detail"]


def test_a_lock_in_the_storage_is_shown_with_its_owner_and_its_end(the_lock: OneLock) -> None:
    operated = the_lock.operated
    with writing(operated.engine) as connection:
        table = table_store.get(connection, the_lock.table.id, for_update=True)
        table_store.change(connection, table.evolve(lock=TableLock(IN_STORAGE)))
    file = the_lock.table.files.base / ".hoodie" / ".locks" / "table_lock.json"
    assert the_lock.shown()["state"] == "free"
    file.parent.mkdir()
    until = int((operated.clock().timestamp() + 200) * 1000)
    file.write_text(json.dumps({"expired": False, "validUntil": until, "owner": "7b0e-writer"}))
    shown = the_lock.shown()
    assert (shown["state"], shown["holder"], shown["since"]) == ("held", "7b0e-writer", None)
    assert "3 min from now" in the_lock.kept("lock-ends-by-itself")["detail"]
    operated.clock.advance(201)
    assert the_lock.shown()["state"] == "free", "it has ended"
    file.write_text(json.dumps({"expired": True, "validUntil": until + 10**9, "owner": "7b0e-writer"}))
    assert the_lock.shown()["state"] == "free", "it was released"
    for damaged in ("[", '{"validUntil": 1e400}', '{"validUntil": true, "owner": 7}'):
        file.write_text(damaged)
        assert the_lock.shown()["state"] == "unknown"
        the_lock.kept("lock-not-removable")


def test_a_lock_on_a_server_is_known_only_by_the_jobs_that_wait_for_it(the_lock: OneLock) -> None:
    operated = the_lock.operated
    operated.call("PATCH", f"/v1/tables/{the_lock.table.id}", 200, {"lock": ZOOKEEPER})
    assert the_lock.shown()["state"] == "unknown"
    assert "ends 20 s after its holder's last sign of life" in the_lock.kept("lock-not-removable")["detail"]
    operated.call("POST", f"/v1/tables/{the_lock.table.id}/jobs", 202, {"kind": "cleaning"})
    step = Progress("deleting: waits for the table's lock, which others hold")
    operated.worker.beat(operated.worker.must_lease(), progress=step)
    assert the_lock.shown()["state"] == "held"


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, '{"owner": 7, "pid": "x", "host": [1]}', "x" * 1_000_000, '{"owner": "a\\u0000\\u001b[2J"}'],
    ids=["deep", "types", "long", "control characters"],
)
def test_a_lock_file_with_any_content_is_shown_and_broken(the_lock: OneLock, content: str) -> None:
    the_lock.hold(3, content)
    shown = the_lock.shown()
    assert shown["state"] == "held"
    assert shown["holder"].isprintable()
    the_lock.broken(lock_id=shown["id"])


def test_a_lock_that_is_not_a_file_is_not_removed(the_lock: OneLock) -> None:
    the_lock.file.mkdir()
    assert the_lock.shown()["state"] == "unknown"
    answer = the_lock.operated.client.delete(the_lock.path, params=REASON)
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/lock-not-removable")
    assert the_lock.file.is_dir()


def test_only_the_lock_with_the_given_id_is_broken(the_lock: OneLock) -> None:
    the_lock.hold(3)
    seen = the_lock.shown()["id"]
    the_lock.file.unlink()
    the_lock.hold(2)
    the_lock.kept("lock-changed", lock_id=seen)
    the_lock.broken()


class Overtaken(WrappedFiles):
    """A disk on which another owner replaces a file immediately before it is moved."""

    def __init__(self, third: bool = False) -> None:
        super().__init__(fs.LocalFileSystem())
        self._third = third

    def move(self, src: str, dest: str) -> None:
        Path(src).unlink()
        Path(src).write_text("the next holder's")
        super().move(src, dest)
        if self._third:
            Path(src).write_text("of one who found no lock at this moment")


@pytest.mark.parametrize("third", [False, True])
def test_a_lock_that_changes_hands_at_the_last_moment_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, third: bool
) -> None:
    file = tmp_path / ".hoodie" / "lock"
    file.parent.mkdir()
    file.touch()
    base, lock, permissions = str(tmp_path), TableLock(), Permissions()
    found = table_lock.read_lock(base, lock, {}, permissions, None)  # type: ignore[arg-type]
    disk = fs.PyFileSystem(Overtaken(third))
    monkeypatch.setattr(table_lock, "open_storage", lambda place, _options: Storage(place, disk, place))
    assert found.id is not None
    if third:
        with pytest.raises(StorageError, match="two may hold the lock now"):
            table_lock.remove_lock(base, lock, {}, permissions, found.id)
        assert file.read_text() == "of one who found no lock at this moment"
    else:
        assert table_lock.remove_lock(base, lock, {}, permissions, found.id) is False
        assert file.read_text() == "the next holder's"
    assert [each.name for each in file.parent.iterdir()] == ["lock"]


def test_the_lock_of_a_place_that_is_not_allowed_is_neither_read_nor_removed(the_lock: OneLock, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("not yours")
    the_lock.file.symlink_to(outside)
    answer = the_lock.operated.client.get(the_lock.path)
    assert answer.status_code == 422, answer.text
    assert the_lock.operated.client.delete(the_lock.path, params=REASON).status_code == 422
    assert the_lock.file.is_symlink()
    assert outside.read_text() == "not yours"


def test_a_lock_that_is_held_for_long_is_a_problem_until_it_is_broken(the_lock: OneLock) -> None:
    operated = the_lock.operated
    the_lock.hold(0)
    operated.poll(5 * 60)
    assert operated.kinds() == []
    operated.poll(12 * 60)
    found = operated.one("lock-held-long")
    assert found["evidence"] == {"holder": "a writer that Hudi's lock file does not name", "held_seconds": 17 * 60}
    assert datetime.fromisoformat(found["since"]) == datetime.fromisoformat(the_lock.shown()["since"])
    assert operated.press(found, 200)["state"] == "held"
    assert f"groundskeeper lock break {the_lock.table.id}" in found["remedy"]
    the_lock.table.commit()
    operated.poll(HOUR)
    assert operated.one("lock-held-long")["since"] == found["since"], "also when the timeline changes"
    the_lock.broken()
    operated.poll()
    assert operated.kinds() == []


def test_a_lock_that_a_poll_may_not_read_hides_nothing_else_of_the_table(the_lock: OneLock, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("x")
    the_lock.file.symlink_to(tmp_path / "outside")
    commit = the_lock.table.commit()
    the_lock.operated.poll(2 * HOUR)
    assert the_lock.operated.kinds() == []
    assert commit in the_lock.operated.watched.instants(the_lock.table.id)


def test_a_lock_in_the_storage_is_held_since_a_poll_first_saw_its_holder(the_lock: OneLock) -> None:
    operated = the_lock.operated
    with writing(operated.engine) as connection:
        table = table_store.get(connection, the_lock.table.id, for_update=True)
        table_store.change(connection, table.evolve(lock=TableLock(IN_STORAGE)))
    file = the_lock.table.files.base / ".hoodie" / ".locks" / "table_lock.json"
    file.parent.mkdir()

    def renew(owner: str) -> None:
        until = int((operated.clock().timestamp() + HOUR) * 1000)
        file.write_text(json.dumps({"expired": False, "validUntil": until, "owner": owner}))

    renew("one")
    operated.poll()
    first_seen = operated.clock()
    renew("one")
    operated.poll(0.5 * HOUR)
    assert datetime.fromisoformat(operated.one("lock-held-long")["since"]) == first_seen
    renew("another")
    operated.poll()
    assert operated.kinds() == []


def test_a_lock_elsewhere_is_read_only_where_locks_may_lie(the_lock: OneLock, tmp_path: Path) -> None:
    base, permitted = str(the_lock.table.files.base), Permissions(lock_roots=(str(tmp_path / "locks"),))
    lock = TableLock(options={"hoodie.write.lock.filesystem.path": str(tmp_path / "locks" / "t")})
    now = the_lock.operated.clock()
    with pytest.raises(OptionNotAllowedError, match="neither below the table nor below an allowed root"):
        table_lock.read_lock(base, lock, {}, Permissions(), now)
    assert table_lock.read_lock(base, lock, {}, permitted, now).state == "unknown", "of another machine, perhaps"
    file = tmp_path / "locks" / "t" / "lock"
    file.parent.mkdir(parents=True)
    assert table_lock.read_lock(base, lock, {}, permitted, now).state == "free"
    file.touch()
    os.utime(file, (now.timestamp() - 600, now.timestamp() - 600))
    found = table_lock.read_lock(base, lock, {}, permitted, now)
    storage = open_storage(base, {})
    seen = table_lock.polled_lock(storage, lock, {}, permitted, now, before=None)
    assert seen is not None
    assert seen.since == found.since
    assert table_lock.polled_lock(storage, lock, {}, Permissions(), now, before=None) is None
    assert found.id is not None
    assert table_lock.remove_lock(base, lock, {}, permitted, found.id)
    assert not file.exists()
