"""Tables are polled: what is new is recorded once, in the order of completion, whatever the timeline went through."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from jobs.contract import BucketIndex
from service.flows import prune, registry
from service.flows.hurry import Hurry
from service.flows.look import look
from service.flows.observe import Observer, ObserveTerms
from service.model.clock import utc_now
from service.model.registration import Registration
from service.policy.backoff import BackOff
from service.store import commits, outbox, snapshots, tables, watches
from service.store.engine import open_engine, reading, writing
from tests.integration.control_plane.conftest import FakeExamination
from tests.small_table import SmallTable, base_file, bucket_id, log_file

if TYPE_CHECKING:
    from pathlib import Path

    from service.model.commit import Commit
    from service.model.event import Event
    from service.model.snapshot import TableSnapshot
    from service.model.watch import Watch
    from tests.integration.control_plane.conftest import FakeClock

KEEP = prune.Keep(history=timedelta(days=30), commits=timedelta(days=90), events=timedelta(days=30))
A, B, C = bucket_id(0), bucket_id(1), bucket_id(2)


class Watched:
    """A service that watches tables, with a clock that tests turn."""

    def __init__(self, engine: sa.Engine, clock: FakeClock, **terms: float) -> None:
        self.engine = engine
        self.clock = clock
        self.hurry = Hurry()
        self.observer = Observer(
            engine,
            clock,
            Random(1),
            self.hurry,
            ObserveTerms(
                threads=int(terms.get("threads", 4)),
                look_seconds=terms.get("look_seconds", 30.0),
                backoff=BackOff(first=10, most=3600),
            ),
            storage_options={},
        )

    def register(self, table: SmallTable, *, buckets: int = 4) -> str:
        now = self.clock()
        found = Registration(
            f"tbl_{table.base.name}", str(table.base), table.base.name, now, now, index=BucketIndex(buckets, ("id",))
        )
        with writing(self.engine) as connection:
            tables.register(connection, found)
        return found.id

    def poll(self, seconds: float = 70) -> None:
        """A round after a poll interval has gone by, and everything it has started."""
        self.clock.advance(seconds)
        self.observer.run_once()
        assert self.observer.crew.wait(20)

    def commits(self, table_id: str) -> list[Commit]:
        """In the order in which they were recorded."""
        with reading(self.engine) as connection:
            return list(reversed(commits.page(connection, limit=500, table_id=table_id).items))

    def instants(self, table_id: str) -> list[str]:
        return [commit.requested_time for commit in self.commits(table_id)]

    def snapshot(self, table_id: str) -> TableSnapshot:
        with reading(self.engine) as connection:
            found = snapshots.get(connection, table_id)
        assert found is not None
        return found

    def told(self) -> list[Event]:
        with reading(self.engine) as connection:
            return [published.event for published in outbox.after(connection, 0, 1000)]

    def watch(self, table_id: str) -> Watch:
        with reading(self.engine) as connection:
            return watches.get(connection, table_id)


@pytest.fixture
def watched(engine: sa.Engine, clock: FakeClock) -> Watched:
    return Watched(engine, clock)


@pytest.fixture(params=[9, 6], ids=["v9", "v6"])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_news_are_told_in_the_order_of_their_completion_and_the_rest_is_not(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t", version=9)
    table.commit("001", {"p": {base_file(A, "001"): 10}}, modified=watched.clock().timestamp() - 5)
    table_id = watched.register(table)
    watched.poll(1)
    assert watched.told() == []
    table.commit("005", {"p": {log_file(A, "005"): 5}}, completed="010")
    table.commit("004", {"p": {log_file(A, "004"): 5}}, completed="012")
    watched.poll()
    watched.poll()
    assert [(event.type, event.data["commit"]["instant"]) for event in watched.told()] == [
        ("commit.published", "005"),
        ("commit.published", "004"),
    ]
    assert {event.table_id for event in watched.told()} == {table_id}


def test_a_table_that_cannot_be_looked_at_is_told_once_until_it_can(watched: Watched, tmp_path: Path) -> None:
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
    assert [event.type for event in watched.told()] == ["table.unhealthy", "table.recovered"]
    assert watched.told()[0].data["problem"]["type"] == "path-not-found"


def test_what_was_there_before_the_registration_is_no_news(watched: Watched, tmp_path: Path, version: int) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    registered = watched.clock().timestamp()
    table.commit("001", {"p": {base_file(A, "001"): 10}}, modified=registered - 5)
    table_id = watched.register(table)
    table.commit("003", {"p": {log_file(A, "003"): 5}}, modified=registered + 1)
    watched.poll(1)
    table.commit("005", {"p": {log_file(A, "005"): 5}})
    watched.poll()
    assert [(c.requested_time, c.is_news) for c in watched.commits(table_id)] == [
        ("001", False),
        ("003", True),
        ("005", True),
    ]


def test_commits_are_recorded_in_the_order_of_their_completion(watched: Watched, tmp_path: Path) -> None:
    """The second one to begin is the first to end, and the look comes between."""
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    table.begin("001")
    table.commit("003", completed="004")
    watched.poll()
    table.commit("005", completed="009")
    table.commit("001", completed="006")
    watched.poll()
    assert watched.instants(table_id) == ["003", "001", "005"]


def test_before_version_8_the_time_of_the_file_gives_the_order(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t", version=6)
    table_id = watched.register(table)
    table.commit("001", modified=2000)
    table.commit("003", modified=1000)
    watched.poll()
    found = watched.commits(table_id)
    assert [c.requested_time for c in found] == ["003", "001"]
    assert found[0].completed_at == datetime.fromtimestamp(1000, UTC)
    assert found[0].completion_time is None


def test_a_commit_is_recorded_with_what_it_did(watched: Watched, tmp_path: Path, version: int) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    table_id = watched.register(table)
    table.commit("20260101120000000", {"p": {base_file(A, "20260101120000000"): 100}}, completed="20260101120001500")
    watched.poll()
    (found,) = watched.commits(table_id)
    assert (found.action, found.operation, found.rows_written, found.bytes_written) == (
        "deltacommit",
        "UPSERT",
        10,
        100,
    )
    assert (found.partitions, found.file_groups, found.schema_changed) == (("p",), 1, False)
    assert found.seen_at == watched.clock()
    if version == 9:
        assert found.completed_at == datetime(2026, 1, 1, 12, 0, 1, 500_000, UTC)


def test_a_changed_schema_is_told_once(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    wider = '{"type":"record","name":"r","fields":[{"name":"id","type":"string"},{"name":"x","type":"int"}]}'
    table.commit("001")
    watched.poll()
    table.commit("003", schema=wider)
    table.clean("005", ())
    table.commit("007", schema=wider)
    watched.poll()
    changed = {c.requested_time: c.schema_changed for c in watched.commits(table_id)}
    assert changed == {"001": False, "003": True, "005": False, "007": False}


def test_archived_history_is_no_news(watched: Watched, tmp_path: Path, version: int) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    for instant in ("001", "003", "005", "007"):
        table.commit(instant)
    table.archive("001")
    table_id = watched.register(table)
    watched.poll()
    table.archive("003", "005")
    watched.poll()
    table.commit("009")
    watched.poll()
    assert watched.instants(table_id) == ["003", "005", "007", "009"]
    assert watched.watch(table_id).gap_at is None


def test_what_was_archived_between_two_looks_is_read_from_the_history(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001")
    table_id = watched.register(table)
    watched.poll()
    table.commit("003", {"p": {base_file(A, "003"): 30}})
    table.commit("005")
    table.archive("001", "003")
    watched.poll()
    assert watched.instants(table_id) == ["001", "003", "005"]
    assert all(c.is_news for c in watched.commits(table_id)[1:])
    assert watched.commits(table_id)[1].bytes_written == 30
    assert [p.path for p in watched.snapshot(table_id).partitions] == ["p"]


def test_a_pending_instant_that_completed_and_was_archived_between_two_looks_is_read_too(
    watched: Watched, tmp_path: Path
) -> None:
    table = SmallTable(tmp_path / "t")
    table.begin("001")
    table.commit("003")
    table.commit("005")
    table_id = watched.register(table)
    watched.poll()
    table.commit("001", completed="008")
    table.archive("001")
    watched.poll()
    assert watched.instants(table_id) == ["003", "005", "001"]


def test_before_version_8_it_is_told_that_instants_were_missed(
    watched: Watched, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = SmallTable(tmp_path / "t", version=6)
    table.commit("001")
    table_id = watched.register(table)
    watched.poll()
    table.commit("003", {"p": {base_file(A, "003"): 30}})
    table.commit("005")
    table.archive("001", "003")
    watched.poll()
    assert watched.instants(table_id) == ["001", "005"]
    assert watched.watch(table_id).gap_at == watched.clock()
    assert "archived before they were seen" in caplog.text
    # What the missed instant wrote is found all the same: the whole table was listed.
    assert [p.path for p in watched.snapshot(table_id).partitions] == ["p"]


def test_of_a_table_that_was_empty_nothing_is_missed(watched: Watched, tmp_path: Path, version: int) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    table_id = watched.register(table)
    watched.poll()
    table.commit("001")
    table.commit("003")
    watched.poll()
    assert watched.watch(table_id).gap_at is None
    assert watched.instants(table_id) == ["001", "003"]


def test_a_table_that_was_empty_and_has_archived_since_is_read_from_its_history(
    watched: Watched, tmp_path: Path
) -> None:
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    watched.poll()
    for instant in ("001", "003", "005"):
        table.commit(instant)
    table.archive("001", "003")
    watched.poll()
    assert watched.instants(table_id) == ["001", "003", "005"]


def test_a_pending_instant_that_was_rolled_back_is_not_missed(watched: Watched, tmp_path: Path, version: int) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    table.begin("001")
    table.commit("003")
    table_id = watched.register(table)
    watched.poll()
    table.rollback("005", "001")
    watched.poll()
    assert watched.instants(table_id) == ["003", "005"]
    assert watched.watch(table_id).gap_at is None


def test_forgotten_commits_that_are_still_on_the_timeline_are_no_news_again(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    for instant in ("001", "003", "005"):
        table.commit(instant)
    table_id = watched.register(table)
    watched.poll()
    table.archive("001")
    table.commit("007")
    watched.poll()
    watched.clock.advance(100 * 24 * 3600)
    assert prune.run_once(watched.engine, watched.clock, KEEP).commits == 1
    table.commit("009")
    watched.poll()
    assert watched.instants(table_id) == ["003", "005", "007", "009"]


def test_the_newest_commit_is_never_forgotten(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001")
    table.commit("003")
    table_id = watched.register(table)
    watched.poll()
    table.archive("001", "003")
    table.schedule("009", "compaction")
    watched.poll()
    watched.clock.advance(100 * 24 * 3600)
    prune.run_once(watched.engine, watched.clock, KEEP)
    assert watched.instants(table_id) == ["003"]


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


def test_a_table_is_polled_no_more_often_than_it_is_due(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    watched.poll(0)
    table.commit("001")
    watched.poll(30)
    assert watched.instants(table_id) == []
    watched.poll(35)
    assert watched.instants(table_id) == ["001"]


def test_a_hurried_table_is_looked_at_now(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    watched.poll(0)
    table.commit("001")
    assert watched.hurry.ask(table_id)
    assert not watched.hurry.ask(table_id)
    watched.poll(0)
    assert watched.instants(table_id) == ["001"]


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
                got = watches.claim(connection, now=clock(), next_poll_at=clock() + timedelta(60), limit=5)
            claimed.append([watch.table_id for watch in got])

    threads = [threading.Thread(target=claim) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = [table_id for batch in claimed for table_id in batch]
    assert len(ids) == len(set(ids))
    with writing(engine) as connection:
        rest = watches.claim(connection, now=clock(), next_poll_at=clock() + timedelta(60), limit=50)
    assert len(ids) + len(rest) == 20


def test_what_another_service_has_locked_is_passed_over_and_not_waited_for(
    engine: sa.Engine, clock: FakeClock, tmp_path: Path
) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite lets one writer in after the other")
    watched = Watched(engine, clock)
    ids = [watched.register(SmallTable(tmp_path / name)) for name in ("a", "b")]
    clock.advance(1)
    later = clock() + timedelta(60)
    with writing(engine) as one:
        (first,) = watches.claim(one, now=clock(), next_poll_at=later, limit=1)
        with writing(engine) as other:
            (second,) = watches.claim(other, now=clock(), next_poll_at=later, limit=5)
    assert {first.table_id, second.table_id} == set(ids)


def test_two_looks_at_once_record_each_commit_once(
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
            found = look(engine, utc_now, watch, storage_options={}, small_file_bytes=100)
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


def test_a_table_that_is_gone_is_tried_less_and_less_often_and_heals(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001")
    table_id = watched.register(table)
    watched.poll()
    table.base.rename(tmp_path / "away")
    delays = []
    for _ in range(4):
        watched.poll(4000)
        watch = watched.watch(table_id)
        assert watch.error is not None
        delays.append((watch.next_poll_at - watched.clock()).total_seconds())
    assert watched.watch(table_id).failures == 4
    assert 5 <= delays[0] <= 10
    assert 40 <= delays[3] <= 80
    (tmp_path / "away").rename(table.base)
    watched.poll(4000)
    watch = watched.watch(table_id)
    assert (watch.failures, watch.error) == (0, None)
    assert watched.instants(table_id) == ["001"]


def test_damaged_metadata_is_told_and_later_looks_go_on(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    table.complete("001", "deltacommit", b"Obj\x01half")
    watched.poll()
    error = watched.watch(table_id).error
    assert error is not None
    assert "001_002.deltacommit is damaged" in error.detail
    table.commit("001")
    watched.poll()
    assert watched.instants(table_id) == ["001"]


def test_a_table_whose_storage_hangs_keeps_no_other_waiting(
    engine: sa.Engine, clock: FakeClock, tmp_path: Path
) -> None:
    """More of them than there are threads. Reading a pipe without a writer hangs, as a dead file server does."""
    watched = Watched(engine, clock, threads=2, look_seconds=0.2)
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
    deadline = time.monotonic() + 20
    while not watched.instants(table_id):
        watched.observer.run_once()
        time.sleep(0.05)
        assert time.monotonic() < deadline
    while watched.watch("tbl_hanging3").error is None:
        watched.observer.run_once()
        time.sleep(0.05)
        assert time.monotonic() < deadline
    error = watched.watch("tbl_hanging0").error
    assert error is not None
    assert error.type == "look-too-slow"
    assert "tbl_hanging0" in watched.observer.crew.busy
    for pipe in pipes:
        os.close(os.open(pipe, os.O_WRONLY))
    while watched.observer.crew.busy:
        time.sleep(0.05)
        assert time.monotonic() < deadline


def test_an_unregistered_table_is_forgotten_with_all_that_was_seen(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001", {"p": {base_file(A, "001"): 10}})
    table_id = watched.register(table)
    watched.poll()
    with writing(watched.engine) as connection:
        tables.unregister(connection, table_id)
    watched.poll()
    assert watched.instants(table_id) == []
    with reading(watched.engine) as connection:
        assert snapshots.details(connection, table_id) == {}


def test_the_snapshot_shows_how_the_table_stands(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    table.commit("001", {"p=1": {base_file(A, "001"): 100, base_file(B, "001"): 10}, "p=2": {base_file(A, "001"): 50}})
    watched.poll()
    table.commit("003", {"p=1": {log_file(A, "003"): 30}}, completed="008")
    table.schedule("005", "compaction")
    watched.poll()
    found = watched.snapshot(table_id)
    one, two = found.partitions
    assert (one.base_bytes, one.log_bytes, one.buckets, one.largest_bucket_bytes, one.rows) == (110, 30, 2, 130, 20)
    assert (two.base_bytes, two.log_bytes, two.num_buckets) == (50, 0, 4)
    assert [(p.requested_time, p.action, p.is_plan) for p in found.pending] == [("005", "compaction", True)]
    assert (found.last_commit, found.num_buckets) == ("003", 4)
    assert (found.since_compaction.commits, found.since_compaction.bytes_written) == (2, 190)
    # The delta commit that completed while the compaction ran is not in its base file, and still to be compacted.
    table.commit("005", {"p=1": {base_file(A, "005"): 120}}, action="commit", operation="COMPACT", completed="009")
    watched.poll()
    found = watched.snapshot(table_id)
    assert found.pending == ()
    assert (found.since_compaction.commits, found.since_compaction.bytes_written) == (1, 30)
    assert (found.partitions[0].log_bytes, found.partitions[0].freed_bytes) == (30, 100)
    table.clean("011", ("p=1",))
    (table.base / "p=1" / base_file(A, "001")).unlink()
    watched.poll()
    found = watched.snapshot(table_id)
    assert found.partitions[0].freed_bytes == 0
    assert found.since_cleaning.commits == 0
    assert found.since_cleaning.at is not None


def test_only_the_partitions_that_were_touched_are_listed_again(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001", {"a": {base_file(A, "001"): 10}, "b": {base_file(A, "001"): 10}})
    table_id = watched.register(table)
    watched.poll()
    # A listing of `b` would see that its file has grown.
    table.file("b", base_file(A, "001"), 99)
    table.commit("003", {"a": {base_file(A, "003"): 20}})
    watched.poll()
    assert [p.base_bytes for p in watched.snapshot(table_id).partitions] == [20, 10]


def test_replaced_file_groups_are_remembered_when_their_commit_is_archived(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001", {"p": {base_file(A, "001"): 10}})
    table.commit(
        "003", {"p": {base_file(B, "003"): 20}}, action="replacecommit", operation="CLUSTER", replaced={"p": [A]}
    )
    table.commit("005")
    table_id = watched.register(table)
    watched.poll()
    table.archive("001", "003")
    table.commit("007", {"p": {base_file(C, "007"): 5}})
    watched.poll()
    (found,) = watched.snapshot(table_id).partitions
    assert (found.base_bytes, found.freed_bytes, found.file_groups) == (25, 10, 2)


def test_a_partition_that_lost_all_its_files_is_forgotten(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001", {"a": {base_file(A, "001"): 10}, "b": {base_file(A, "001"): 10}})
    table_id = watched.register(table)
    watched.poll()
    table.commit("003", action="replacecommit", operation="DELETE_PARTITION", replaced={"a": [A]})
    watched.poll()
    assert [(p.path, p.file_groups, p.freed_bytes) for p in watched.snapshot(table_id).partitions] == [
        ("a", 0, 10),
        ("b", 1, 0),
    ]
    (table.base / "a" / base_file(A, "001")).unlink()
    table.clean("005", ("a",))
    watched.poll()
    assert [p.path for p in watched.snapshot(table_id).partitions] == ["b"]


def test_heartbeats_of_writers_are_kept_up_to_date_while_nothing_is_committed(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.begin("20260101120000000", heartbeat=1000)
    table_id = watched.register(table)
    watched.poll()
    (pending,) = watched.snapshot(table_id).pending
    assert (pending.state, pending.is_plan) == ("inflight", False)
    assert pending.requested_at == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert pending.heartbeat_at == datetime.fromtimestamp(1000, UTC)
    table.begin("20260101120000000", heartbeat=2000)
    watched.poll()
    (pending,) = watched.snapshot(table_id).pending
    assert pending.heartbeat_at == datetime.fromtimestamp(2000, UTC)


def test_hurried_tables_go_first_and_unknown_ones_are_forgotten(watched: Watched, tmp_path: Path) -> None:
    ids = [watched.register(SmallTable(tmp_path / f"t{number}")) for number in range(3)]
    watched.clock.advance(1)
    now = watched.clock()
    with writing(watched.engine) as connection:
        hurried = [ids[2], "tbl_unknown"]
        claimed = watches.claim(connection, now=now, next_poll_at=now + timedelta(60), limit=1, hurried=hurried)
    assert [watch.table_id for watch in claimed] == [ids[2]]
    watched.hurry.ask("tbl_unknown")
    watched.poll(0)
    assert watched.hurry.wanted() == set()


@pytest.mark.parametrize("is_first", [True, False])
def test_a_table_that_is_changed_while_it_is_looked_at_is_looked_at_again(
    watched: Watched, tmp_path: Path, is_first: bool
) -> None:
    """The clock is asked last when all has been read and nothing is recorded yet."""
    table = SmallTable(tmp_path / "t")
    table.commit("001", {"a": {base_file(A, "001"): 10}, "b": {base_file(A, "001"): 10}})
    table_id = watched.register(table, buckets=4)
    if not is_first:
        watched.poll()
        table.commit("003", {"a": {base_file(A, "003"): 20}})
    asked = 0

    def clock() -> datetime:
        nonlocal asked
        asked += 1
        if asked == 3:
            registry.change(watched.engine, table_id, {"index": BucketIndex(8, ("id",))}, **examining)
        return watched.clock()

    examining = {"examine": examine_nothing, "allowed_roots": None, "storage_options": {}, "clock": watched.clock}
    found = look(watched.engine, clock, watched.watch(table_id), storage_options={}, small_file_bytes=100)
    assert asked == 3
    assert found.commits == ()
    watched.poll(0)
    assert [(p.path, p.num_buckets) for p in watched.snapshot(table_id).partitions] == [("a", 8), ("b", 8)]
    assert watched.instants(table_id) == (["001"] if is_first else ["001", "003"])


def examine_nothing(location: str, *, claimed: BucketIndex | None, **_rest: object) -> FakeExamination:
    return FakeExamination(location, index=claimed)
