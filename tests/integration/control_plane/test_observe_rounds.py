"""Tests the claims of tables for polls, and tables that cannot be polled."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from jobs.contract import BucketIndex
from service.catalog import snapshot_store, table_store, watch_store
from service.db import schema
from service.db.engine import open_engine, reading, writing
from service.events.database import Database
from service.lake import reader_pool
from service.lake.reader_pool import ReaderLimits, ReaderPool
from service.model.clock import utc_now
from service.model.storage_errors import ReadTimedOutError
from service.observation import observer, table_read
from service.observation.lake_access import LakeAccess
from service.observation.poll import poll_table
from service.observation.table_read import ChangedTable, IsolatedTableReader, TableReader, UnchangedTable
from service.registration import registry
from tests.integration.control_plane.conftest import FakeExamination
from tests.integration.control_plane.watching import A, B, C, Watched
from tests.support.small_table import SmallTable, base_file, log_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from service.catalog.watch import Watch
    from tests.integration.control_plane.conftest import FakeClock


pytestmark = pytest.mark.mostly_sqlite


def test_a_table_that_cannot_be_polled_is_reported_once_until_it_can_be(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t", version=9)
    table.commit("001", {"p": {base_file(A, "001"): 10}}, modified=watched.clock().timestamp() - 5)
    watched.register(table)
    away = tmp_path / "away"
    for is_away in (False, True, True, False, True, True, True, True, False, False):
        if is_away and table.base.exists():
            table.base.rename(away)
        elif not is_away and away.exists():
            away.rename(table.base)
        watched.poll(7200)
    assert [event.type for event in watched.events()] == ["table.unhealthy", "table.recovered"]
    assert watched.events()[0].data["problem"]["type"] == "path-not-found"


def test_an_unchanged_table_costs_no_write_beyond_the_claim(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001")
    watched.register(table)
    watched.poll()
    writes: list[str] = []

    @sa.event.listens_for(watched.engine, "before_cursor_execute")
    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if statement.split()[0] in ("INSERT", "UPDATE", "DELETE"):
            writes.append(statement)

    watched.poll()
    assert len(writes) == 1
    assert writes[0].startswith("UPDATE watches SET next_poll_at")


def test_tables_are_checked_together_and_only_changed_ones_are_read(
    engine: sa.Engine, clock: FakeClock, tmp_path: Path
) -> None:
    read = _Counting(engine)
    watched = Watched(engine, clock, read=read)
    tables = [SmallTable(tmp_path / f"t{number}") for number in range(30)]
    ids = [watched.register(table) for table in tables]
    watched.poll()
    assert not read.times
    assert all(watched.watch(each).looked_at for each in ids)
    tables[3].commit("001")
    # A writer holds the lock of the second table, and the third table is missing.
    lock = tables[5].base / ".hoodie" / "lock"
    lock.write_text("")
    os.utime(lock, (clock().timestamp() - 600,) * 2)
    tables[29].base.rename(tmp_path / "away")
    read.times.clear()
    watched.poll()
    assert len(read.times) == 3
    assert watched.instants(ids[3]) == ["001"]
    assert watched.snapshot(ids[5]).lock is not None
    assert watched.watch(ids[29]).failures == 1


def test_tables_that_are_due_soon_share_a_poll_and_later_ones_wait(
    engine: sa.Engine, clock: FakeClock, tmp_path: Path
) -> None:
    asked: list[set[str]] = []
    reader = TableReader(engine, {}, 100)

    def quiet(watches: Sequence[Watch], now: datetime) -> list[bool]:
        asked.append({each.table_id for each in watches})
        return reader.quiet(watches, now)

    read = _Counting(engine)
    watched = Watched(engine, clock, quiet=quiet, read=read)
    ids = [watched.register(SmallTable(tmp_path / f"t{number}")) for number in range(4)]
    watched.poll()
    times = dict(zip(ids, (0.0, 2.9, 3.1, 50.0), strict=True))
    with writing(engine) as connection:
        for each, seconds in times.items():
            due_at = clock() + timedelta(seconds=10 + seconds)
            of_table = schema.watches.c.table_id == each
            connection.execute(schema.watches.update().where(of_table).values(next_poll_at=due_at))
    read.times.clear()
    watched.poll(9.9)
    # Nothing is polled early alone.
    assert not asked
    watched.poll(0.1)
    assert asked == [set(ids[:2])]
    assert not read.times
    assert watched.watch(ids[0]).next_poll_at == watched.watch(ids[1]).next_poll_at > clock() + timedelta(seconds=58)


def test_many_due_tables_are_claimed_together_without_early_ones(
    engine: sa.Engine, clock: FakeClock, tmp_path: Path
) -> None:
    watched = Watched(engine, clock, at_once=8)
    ids = [watched.register(SmallTable(tmp_path / f"t{number}")) for number in range(60)]
    watched.poll()
    with writing(engine) as connection:
        for number, each in enumerate(ids):
            due_at = clock() + timedelta(seconds=10 if number < 55 else 11)
            of_table = schema.watches.c.table_id == each
            connection.execute(schema.watches.update().where(of_table).values(next_poll_at=due_at))
    clock.advance(10)
    found = watched.observer.run_once()
    assert watched.observer.pool.wait(60)
    assert found.claimed == 55


def test_tables_that_cannot_be_checked_together_are_polled_one_by_one(
    engine: sa.Engine, clock: FakeClock, tmp_path: Path
) -> None:

    def quiet(watches: Sequence[Watch], _now: datetime) -> list[bool]:
        raise ReadTimedOutError(f"{len(watches)} tables")

    read = _Counting(engine)
    watched = Watched(engine, clock, read=read, quiet=quiet)
    for number in range(3):
        watched.register(SmallTable(tmp_path / f"t{number}"))
    watched.poll()
    read.times.clear()
    watched.poll()
    assert len(read.times) == 3


def test_tables_that_a_reader_has_no_time_for_stay_together_in_halves(
    engine: sa.Engine, clock: FakeClock, tmp_path: Path
) -> None:
    asked = []

    def quiet(watches: Sequence[Watch], now: datetime) -> list[bool]:
        asked.append(len(watches))
        return TableReader(engine, {}, 100).quiet(watches[:3], now)

    read = _Counting(engine)
    watched = Watched(engine, clock, read=read, quiet=quiet)
    tables = [SmallTable(tmp_path / f"t{number}") for number in range(12)]
    ids = [watched.register(each) for each in tables]
    watched.poll()
    read.times.clear()
    tables[0].commit("001")
    watched.poll()
    assert sorted(asked) == [4, 5, 12]
    # The remaining halves then have one table each.
    assert len(read.times) == 4
    assert watched.instants(ids[0]) == ["001"]


def test_new_tables_are_recorded_together_with_the_same_result_as_alone(
    engine: sa.Engine, clock: FakeClock, tmp_path: Path
) -> None:
    def none(watches: Sequence[Watch], _now: datetime) -> list[ChangedTable | None]:
        return [None for _ in watches]

    clock.advance(-86_400 * 365)
    alone, together = Watched(engine, clock, first=none), Watched(engine, clock)
    recorded = []
    for watched in (alone, together):
        ids = [watched.register(each) for each in _new_tables(tmp_path / f"{len(recorded)}")]
        watched.poll(0)
        watches = [watched.watch(each) for each in ids]
        recorded.append(
            (
                [replace(each, table_id="", base_path="", next_poll_at=clock(), error=None) for each in watches],
                [replace(watched.snapshot(each), table_id="") for each in ids if "gone" not in each],
                [[replace(commit, table_id="", id=0) for commit in watched.commits(each)] for each in ids],
                [[(found.kind, found.instant, found.state) for found in watched.incidents(each)] for each in ids],
                Counter(event.type for event in watched.events()),
            )
        )
        with writing(engine) as connection:
            for each in ids:
                table_store.unregister(connection, each)
            connection.execute(schema.events.delete())
    assert recorded[0] == recorded[1]
    assert [len(each) for each in recorded[0][2]] == [3, 1, 0, 0, 3]
    assert recorded[0][3][4]
    assert recorded[0][4]["commit.published"] == 7
    assert recorded[0][0][3].failures == 1


def _new_tables(root: Path) -> list[SmallTable]:
    """Returns tables with several partitions, with one, without a commit, without files, and with a stale write."""
    tables = [SmallTable(root / name) for name in ("many", "one", "empty", "gone", "stale")]
    many, one, _, gone, stale = tables
    many.commit("001", {"p": {base_file(A, "001"): 10, base_file(B, "001"): 40}, "q": {base_file(A, "001"): 30}})
    many.commit("003", {"q": {log_file(A, "003"): 5}})
    many.commit("005", {"r": {log_file(C, "005"): 7}})
    one.commit("001", {"p": {base_file(A, "001"): 10}})
    gone.base.rename(root / "away")
    stale.commit("001", {"p": {base_file(A, "001"): 10}})
    stale.commit("003", {"p": {base_file(B, "003"): 10}}, action="replacecommit", replaced={"p": [A]})
    stale.commit("005", {"p": {log_file(A, "005"): 5}})
    return tables


def test_a_slow_storage_is_left_to_many_readers(
    engine: sa.Engine, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(engine, clock)
    ids = [watched.register(SmallTable(tmp_path / f"t{number}")) for number in range(3)]
    watched.poll()
    watches = [watched.watch(each) for each in ids]
    reader = TableReader(engine, {}, 100)
    assert reader.quiet(watches, clock()) == [True, True, True]
    monkeypatch.setattr(table_read, "_QUIET_SECONDS", -1.0)
    assert reader.quiet(watches, clock()) == []


def test_a_table_is_polled_no_more_often_than_it_is_due(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    watched.poll(0)
    table.commit("001")
    watched.poll(30)
    assert watched.instants(table_id) == []
    watched.poll(35)
    assert watched.instants(table_id) == ["001"]


def test_a_requested_table_is_polled_now(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    watched.poll(0)
    table.commit("001")
    assert watched.poll_requests.ask(table_id)
    assert not watched.poll_requests.ask(table_id)
    watched.poll(0)
    assert watched.instants(table_id) == ["001"]


def test_a_round_that_takes_long_ends_and_the_next_one_follows_at_once(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        watched.register(SmallTable(tmp_path / f"t{number}"))
    watched.poll()
    assert not watched.poll_requests.notified.is_set()
    monkeypatch.setattr(observer, "_ROUND_SECONDS", -1.0)
    watched.poll()
    assert watched.poll_requests.notified.is_set()


def test_two_services_share_the_tables(engine: sa.Engine, clock: FakeClock, tmp_path: Path) -> None:
    watched = Watched(engine, clock)
    for number in range(20):
        watched.register(SmallTable(tmp_path / f"t{number}"))
    clock.advance(1)
    claimed: list[list[str]] = []
    together = threading.Barrier(2)

    def claim() -> None:
        together.wait()
        for _ in range(4):
            with writing(engine) as connection:
                got = watch_store.claim(connection, now=clock(), next_poll_at=clock() + timedelta(60), limit=5)
            claimed.append(got)

    threads = [threading.Thread(target=claim) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = [table_id for batch in claimed for table_id in batch]
    assert len(ids) == len(set(ids))
    with writing(engine) as connection:
        rest = watch_store.claim(connection, now=clock(), next_poll_at=clock() + timedelta(60), limit=50)
    assert len(ids) + len(rest) == 20


def test_tables_that_another_service_has_claimed_are_skipped_without_waiting(
    engine: sa.Engine, clock: FakeClock, tmp_path: Path
) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite lets one writer in after the other")
    watched = Watched(engine, clock)
    ids = [watched.register(SmallTable(tmp_path / name)) for name in ("a", "b")]
    clock.advance(1)
    later = clock() + timedelta(60)
    with writing(engine) as one:
        (first,) = watch_store.claim(one, now=clock(), next_poll_at=later, limit=1)
        with writing(engine) as other:
            (second,) = watch_store.claim(other, now=clock(), next_poll_at=later, limit=5)
    assert {first, second} == set(ids)


def test_two_concurrent_polls_record_each_commit_once(
    database: str, engine: sa.Engine, clock: FakeClock, tmp_path: Path
) -> None:
    table = SmallTable(tmp_path / "t")
    watched = Watched(engine, clock)
    table_id = watched.register(table)
    watched.poll()
    other = open_engine(database)
    for number in range(5):
        for instant in range(10):
            table.commit(f"{number}{instant:02d}0", {"p": {base_file(A, f"{number}{instant:02d}0"): 10}})
        together = threading.Barrier(2)
        added: list[str] = []

        def run(engine: sa.Engine, together: threading.Barrier = together, added: list[str] = added) -> None:
            watch = watched.watch(table_id)
            together.wait()
            found = poll_table(engine, utc_now, watch, TableReader(engine, {}, 100))
            added.extend(commit.requested_time for commit in found.commits)

        threads = [threading.Thread(target=run, args=(each,)) for each in (engine, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(added) == [f"{number}{instant:02d}0" for instant in range(10)]
    other.dispose()
    assert watched.instants(table_id) == sorted(watched.instants(table_id))
    assert watched.snapshot(table_id).since_compaction.commits == 50


class _Counting:
    """Counts how often a table was read."""

    def __init__(self, engine: sa.Engine) -> None:
        self._read = TableReader(engine, {}, 100)
        self.times: list[datetime] = []

    def __call__(self, watch: Watch, now: datetime) -> ChangedTable | UnchangedTable:
        self.times.append(now)
        return self._read(watch, now)


@pytest.mark.parametrize("damage", ["gone", "damaged"])
def test_a_table_that_cannot_be_read_is_polled_less_and_less_often_but_within_a_minute_of_its_repair(
    engine: sa.Engine, clock: FakeClock, tmp_path: Path, damage: str
) -> None:
    read = _Counting(engine)
    watched = Watched(engine, clock, read=read)
    table = SmallTable(tmp_path / "t", version=9)
    table_id = watched.register(table)
    table.commit("001")
    watched.poll()
    if damage == "gone":
        table.base.rename(tmp_path / "away")
    else:
        table.complete("003", "deltacommit", b"Obj\x01half")
    read.times.clear()
    for _ in range(360):
        watched.poll(10)
    assert watched.watch(table_id).error is not None
    pauses = [(later - earlier).total_seconds() for earlier, later in pairwise(read.times)]
    assert len(pauses) < 12
    assert max(pauses) > 600
    if damage == "gone":
        (tmp_path / "away").rename(table.base)
    else:
        table.commit("003")
    for _ in range(5):
        watched.poll(10)
    watch = watched.watch(table_id)
    assert (watch.failures, watch.error) == (0, None)


def test_a_table_that_cannot_be_read_is_polled_at_once_on_request(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001")
    table_id = watched.register(table)
    watched.poll()
    table.base.rename(tmp_path / "away")
    for _ in range(6):
        watched.poll(4000)
    failures = watched.watch(table_id).failures
    watched.poll_requests.ask(table_id)
    watched.poll(0)
    assert watched.watch(table_id).failures == failures
    watched.poll_requests.ask(table_id, insists=True)
    watched.poll(0)
    assert watched.watch(table_id).failures == failures + 1
    (tmp_path / "away").rename(table.base)
    watched.poll_requests.ask(table_id, insists=True)
    watched.poll(0)
    assert watched.watch(table_id).failures == 0
    assert watched.poll_requests.wanted() == watched.poll_requests.insisted() == set()


def test_damaged_metadata_is_reported_and_later_polls_continue(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    table.complete("001", "deltacommit", b"Obj\x01half")
    watched.poll()
    error = watched.watch(table_id).error
    assert error is not None
    assert (error.type, error.title) == ("file-damaged", "A file of the table is damaged")
    assert "001_002.deltacommit is damaged" in error.detail
    table.commit("001")
    watched.poll()
    assert watched.instants(table_id) == ["001"]


def test_a_table_whose_storage_hangs_delays_no_other_table(engine: sa.Engine, clock: FakeClock, tmp_path: Path) -> None:
    """The test has more tables whose storage hangs than threads. Reading a pipe without a writer hangs like a dead file
    server."""
    reader_pool.preload("service.observation.table_read")
    with ReaderPool(2, ReaderLimits(seconds=3.0)) as readers:
        _poll_beside_hanging_tables(engine, clock, tmp_path, readers)


def _poll_beside_hanging_tables(engine: sa.Engine, clock: FakeClock, tmp_path: Path, readers: ReaderPool) -> None:
    url = engine.url.render_as_string(hide_password=False)
    reader = IsolatedTableReader(url, {}, 100)
    watched = Watched(engine, clock, at_once=2, read=readers.isolated(reader), first=readers.isolated(reader.first))
    pipes = []
    for number in range(4):
        hanging = SmallTable(tmp_path / f"hanging{number}")
        pipes.append(hanging.timeline / "001_002.deltacommit")
        os.mkfifo(pipes[-1])
        watched.register(hanging)
    clock.advance(1)
    healthy = SmallTable(tmp_path / "healthy")
    healthy.commit("001")
    table_id = watched.register(healthy)
    clock.advance(1)
    deadline = time.monotonic() + 60
    while not watched.instants(table_id):
        watched.observer.run_once()
        time.sleep(0.05)
        # On a busy machine the first poll of the other table may time out as well; then it is polled again.
        clock.advance(0.05)
        assert time.monotonic() < deadline
    while watched.watch("tbl_hanging3").error is None:
        watched.observer.run_once()
        time.sleep(0.05)
        assert time.monotonic() < deadline
    error = watched.watch("tbl_hanging0").error
    assert error is not None
    assert error.type == "table-too-slow"


def test_everything_that_was_seen_of_an_unregistered_table_is_deleted(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001", {"p": {base_file(A, "001"): 10}})
    table_id = watched.register(table)
    watched.poll()
    with writing(watched.engine) as connection:
        table_store.unregister(connection, table_id)
    watched.poll()
    assert watched.instants(table_id) == []
    with reading(watched.engine) as connection:
        assert snapshot_store.details(connection, table_id) == {}


def test_requested_tables_are_polled_first_and_requests_for_unknown_ones_are_dropped(
    watched: Watched, tmp_path: Path
) -> None:
    ids = [watched.register(SmallTable(tmp_path / f"t{number}")) for number in range(3)]
    watched.clock.advance(1)
    now = watched.clock()
    with writing(watched.engine) as connection:
        requested = [ids[2], "tbl_unknown"]
        claimed = watch_store.claim(connection, now=now, next_poll_at=now + timedelta(60), limit=1, requested=requested)
    assert claimed == [ids[2]]
    watched.poll_requests.ask("tbl_unknown")
    watched.poll(0)
    assert watched.poll_requests.wanted() == set()


@pytest.mark.parametrize("is_first", [True, False])
def test_a_table_that_is_changed_during_a_poll_is_polled_again(
    watched: Watched, tmp_path: Path, is_first: bool
) -> None:
    """The last call of the clock is after all reads and before anything is recorded."""
    table = SmallTable(tmp_path / "t")
    table.commit("001", {"a": {base_file(A, "001"): 10}, "b": {base_file(A, "001"): 10}})
    table_id = watched.register(table, buckets=4)
    if not is_first:
        watched.poll()
        table.commit("003", {"a": {base_file(A, "003"): 20}})
    read = TableReader(watched.engine, {}, 100)

    def read_and_change(watch: Watch, now: datetime) -> ChangedTable | UnchangedTable:
        found = read(watch, now)
        registry.change(database, lake, table_id, {"index": BucketIndex(8, ("id",))}, allowed_roots=None)
        return found

    database, lake = Database(watched.engine, watched.clock), LakeAccess(examine_nothing)
    found = poll_table(watched.engine, watched.clock, watched.watch(table_id), read_and_change)
    assert found.commits == ()
    watched.poll(0)
    assert [(p.path, p.num_buckets) for p in watched.snapshot(table_id).partitions] == [("a", 8), ("b", 8)]
    assert watched.instants(table_id) == (["001"] if is_first else ["001", "003"])


def examine_nothing(location: str, *, claimed: BucketIndex | None, **_rest: object) -> FakeExamination:
    return FakeExamination(location, index=claimed)
