"""No job is leased while others hold its table's lock, and the job is leased as soon as the lock is free."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from jobs.contract import LOCK_UNAVAILABLE, TABLE_LOCKED, JobKind, Problem, TableLock
from jobs.format.lock_providers import DYNAMODB, PREFIX
from jobs.storage.permissions import Permissions
from service.catalog import snapshot_store
from service.catalog.snapshot_store import Stored
from service.catalog.table_secrets import sealed
from service.db.engine import reading, writing
from service.health import fleet, held_back, table_store
from service.health.problem import ProblemKind
from service.lake import server_lock
from service.lake.reader_pool import InProcess, ReaderLimits, ReaderPool
from service.lake.snapshot import TableSnapshot
from service.lake.table import TableType
from service.lake.table_lock import PolledLock, read_lock
from service.locks.lock_watch import NEXT, LockWatch, LockWatchConfig
from service.model.backoff import BackOff
from service.model.clock import utc_now
from service.model.lock_state import LockState
from service.queue import demand_store, lock_sighting_store
from service.queue.leases import LeaseConfig
from tests.integration.control_plane.planning import Service
from tests.integration.control_plane.test_failing_work import add, fail, lease_job, waits_for
from tests.support import s3, zookeeper
from tests.support.java_server import java

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import sqlalchemy as sa

    from service.lake.reader_pool import Readers
    from service.queue.lock_sighting import LockSighting
    from tests.integration.control_plane.conftest import FakeClock

LOCKED = Problem(TABLE_LOCKED, "The table's lock is held", "held for 5 s by a writer; waited 5 s", retriable=True)
AWAY = Problem(LOCK_UNAVAILABLE, "The server is away", retriable=True)


class Watched:
    """A service whose tables are folders, and its lock watch."""

    def __init__(self, engine: sa.Engine, clock: FakeClock, folder: Path, readers: Readers | None = None) -> None:
        self.service = Service(engine, clock)
        self.service._lease_config = LeaseConfig(
            timedelta(seconds=30), 60.0, BackOff(first=2, most=2), looks_at_locks=True
        )
        self.engine, self.clock, self.folder = engine, clock, folder
        self.watch = self.another(readers)

    def another(self, readers: Readers | None = None) -> LockWatch:
        """Returns the watch of another replica."""
        return LockWatch(
            self.engine,
            self.service.notifier,
            self.clock,
            LockWatchConfig(lock_hosts=("127.0.0.1",)),
            readers or InProcess(),
            cipher=self.service.cipher,
            permissions=Permissions(),
        )

    def table(self, name: str, **changes: Any) -> Path:
        base = self.folder / name
        (base / ".hoodie").mkdir(parents=True)
        self.service.register(name, base_path=str(base), **changes)
        return base / ".hoodie" / "lock"

    def check(self, seconds: float = 2) -> int:
        """Advances the clock, checks the locks that are due, and returns their number."""
        self.clock.advance(seconds)
        begun = self.watch.run_once().begun
        assert self.watch.pool.wait(60)
        return begun

    def sighting(self, name: str = "a") -> LockSighting | None:
        with reading(self.engine) as connection:
            return lock_sighting_store.of_tables(connection, [name]).get(name)


@pytest.fixture
def watched(engine: sa.Engine, clock: FakeClock, tmp_path: Path) -> Watched:
    return Watched(engine, clock, tmp_path)


def hold(lock: Path, watched: Watched, seconds: float = 7200, content: str = "") -> None:
    lock.write_text(content)
    at = (watched.clock() - timedelta(seconds=seconds)).timestamp()
    os.utime(lock, (at, at))


def test_a_job_waits_while_the_lock_is_held_and_starts_as_soon_as_it_is_free(watched: Watched) -> None:
    lock = watched.table("a")
    hold(lock, watched)
    job = add(watched.service, "a")
    assert watched.check() == 1
    assert watched.service.lease() is None
    assert (
        waits_for(watched.service, job)
        == "the table's lock, held for 2 h by a writer that Hudi's lock file does not name"
    )
    audit = add(watched.service, "a", JobKind.AUDIT)
    assert lease_job(watched.service).id == audit.id  # An audit takes no lock.
    with reading(watched.engine) as connection:
        assert demand_store.queued(connection, watched.clock())["default"].startable == 0
    for _ in range(8):  # Repeated checks keep the job waiting.
        watched.check(10)
        assert watched.service.lease() is None
    lock.unlink()
    watched.check()
    assert lease_job(watched.service).id == job.id


def test_an_attempt_that_found_the_lock_held_starts_again_as_soon_as_it_is_free(watched: Watched) -> None:
    lock = watched.table("a")
    watched.table("b")
    job = add(watched.service, "a")
    add(watched.service, "b", priority=-1)
    lease_job(watched.service)
    hold(lock, watched, 3)
    put_back = fail(watched.service, watched.service.job(job.id), 5, LOCKED)
    assert put_back.not_before >= watched.clock() + timedelta(seconds=45)
    assert put_back.max_attempts == job.max_attempts + 1  # The attempt does not count.
    watched.check()
    assert "the table's lock, held for 10 s" in str(waits_for(watched.service, job))
    lock.unlink()
    watched.check()
    assert lease_job(watched.service).id == job.id


def test_a_lock_that_the_last_poll_saw_held_is_checked_before_the_first_attempt(watched: Watched) -> None:
    lock = watched.table("a")
    hold(lock, watched)
    seen = TableSnapshot(
        "a", watched.clock(), TableType.MERGE_ON_READ, lock=PolledLock(watched.clock() - timedelta(hours=2), "a writer")
    )
    with writing(watched.engine) as connection:
        snapshot_store.save(connection, Stored(seen))
    job = add(watched.service, "a")
    assert watched.service.lease() is None
    assert waits_for(watched.service, job) == "the table's lock, held for 2 h by a writer"
    lock.unlink()  # No poll has seen yet that the lock is free.
    watched.check()
    assert lease_job(watched.service).id == job.id


def test_the_lock_of_an_earlier_attempt_is_left_to_the_next_one(watched: Watched) -> None:
    lock = watched.table("a")
    job = add(watched.service, "a")
    hold(lock, watched, content=f'{{"owner": "groundskeeper {job.id}", "pid": 1}}')
    watched.check()
    assert lease_job(watched.service).id == job.id
    hold(watched.table("b"), watched, content='{"owner": "groundskeeper job_of_another_service", "pid": 1}')
    add(watched.service, "b")
    watched.check()
    assert watched.service.lease() is None


def test_if_the_checks_stop_jobs_are_not_held_back_for_long(watched: Watched) -> None:
    hold(watched.table("a"), watched)
    add(watched.service, "a")
    watched.check()
    assert watched.service.lease() is None
    watched.clock.advance(61)
    assert watched.service.lease() is not None


@pytest.mark.mostly_sqlite
def test_only_locks_of_the_next_jobs_and_locks_that_were_held_are_checked(watched: Watched) -> None:
    for number in range(40):
        watched.table(f"t{number:02}")
        add(watched.service, f"t{number:02}")
    held = watched.table("held")
    watched.table("idle")
    add(watched.service, "held", priority=-5)
    checks = [watched.check(0.5) for _ in range(8)]  # The checks cover four seconds.
    assert sum(checks) == 16
    hold(held, watched)
    for _ in range(40):
        watched.service.end(lease_job(watched.service))
    assert watched.check() == 1
    assert watched.service.lease() is None
    # A lock for which no job waits is not checked.
    held.unlink()
    watched.check()
    watched.service.end(lease_job(watched.service))
    assert [watched.check() for _ in range(3)] == [0, 0, 0]
    assert watched.sighting("held") is None


def test_replicas_share_the_checks_of_locks(watched: Watched) -> None:
    for number in range(8):
        hold(watched.table(f"t{number}"), watched)
        add(watched.service, f"t{number}")
    other = watched.another()
    begun = [0, 0]

    def run(number: int, watch: LockWatch) -> None:
        begun[number] = watch.run_once().begun
        watch.pool.wait(60)

    for _ in range(3):
        watched.clock.advance(2)
        before = sum(begun)
        threads = [threading.Thread(target=run, args=each) for each in enumerate((watched.watch, other))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (before, sum(begun)) in {(0, 8), (8, 8)}
    assert watched.service.lease() is None


@contextmanager
def silent_server() -> Iterator[socket.socket]:
    """Accepts connections, and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(50)
        server.setblocking(False)
        yield server


def port_of(server: socket.socket) -> int:
    return int(server.getsockname()[1])


def connections(server: socket.socket) -> int:
    """Returns the number of connections since the last call."""
    for number in count():
        try:
            server.accept()[0].close()
        except BlockingIOError:
            return number
    raise AssertionError


def test_a_server_that_does_not_answer_delays_no_other_check(
    sqlite: sa.Engine, clock: FakeClock, tmp_path: Path
) -> None:
    # A check at the server takes three seconds, and one at a file may take longer on a busy machine.
    with ReaderPool(4, ReaderLimits(seconds=60.0)) as readers, silent_server() as server:
        watched = Watched(sqlite, clock, tmp_path, readers)
        for number in range(12):
            watched.table(f"z{number}", lock=zookeeper.lock_at(port_of(server), f"z{number}"))
            add(watched.service, f"z{number}")
        jobs = [fail(watched.service, lease_job(watched.service), 0.1, AWAY) for _ in range(12)]
        lock = watched.table("a")
        hold(lock, watched)
        add(watched.service, "a")
        clock.advance(600)
        watched.watch.run_once()
        assert watched.watch.pool.wait(120)
        # All tables of the server wait for the checks that were begun at once.
        assert 0 < connections(server) <= LockWatchConfig().at_once
        assert watched.service.lease() is None
        said = str(waits_for(watched.service, jobs[0]))
        assert said.startswith("the table's lock, whose server does not answer: ")
        # The service calls the silent server rarely, and all others as often as before.
        clock.advance(2)
        assert watched.watch.run_once().begun == 1
        assert watched.watch.pool.wait(60)
        lock.unlink()
        clock.advance(2)
        watched.watch.run_once()
        assert watched.watch.pool.wait(60)
        assert lease_job(watched.service).table_id == "a"
        assert connections(server) == 0


@pytest.mark.mostly_sqlite
def test_a_silent_server_is_reported_before_a_worker_meets_it(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_lock, "SECONDS", 0.1)
    names = [f"f{number}" for number in range(NEXT)]
    for name in names:
        watched.table(name)
        add(watched.service, name)
    with silent_server() as server:
        watched.table("z", lock=zookeeper.lock_at(port_of(server), "z"))
        job = add(watched.service, "z", JobKind.COMPACTION)
        for _ in range(3):
            watched.check()
        assert [lease_job(watched.service).table_id for _ in names] == names
        assert watched.service.lease() is None
        assert awaited(watched, "z") == []
        watched.check(10)
        assert awaited(watched, "z") == [ProblemKind.LOCK_AWAITED]
        # A worker may be able to reach the server nevertheless.
        watched.check(50)
        assert lease_job(watched.service).id == job.id
        fail(watched.service, watched.service.job(job.id), 0.1, AWAY)
        watched.check()
        watched.check(3600)
        assert watched.service.lease() is None
        assert awaited(watched, "z") == [ProblemKind.LOCK_AWAITED]


def awaited(watched: Watched, table_id: str) -> list[ProblemKind]:
    """The kinds of problems with the table's lock and with attempts."""
    now = watched.clock()
    with reading(watched.engine) as connection:
        (facts,) = table_store.facts(connection, now, [table_id])
    return [each.kind for each in (*fleet.awaited_locks(facts, now), *held_back.held_back(facts, now))]


def test_a_server_to_which_the_service_may_not_connect_holds_no_job_back(watched: Watched) -> None:
    lock = TableLock("zookeeper", {**zookeeper.lock_at(1, "a").options, "hoodie.write.lock.zookeeper.url": "zk:2181"})
    watched.table("a", lock=lock)
    add(watched.service, "a")
    watched.check()
    sighting = watched.sighting()
    assert sighting is not None
    assert (sighting.state, sighting.detail) == (
        LockState.UNKNOWN,
        "zk:2181 is not among the GROUNDSKEEPER_LOCK_HOSTS.",
    )
    assert lease_job(watched.service).table_id == "a"


@pytest.fixture(scope="module")
def zoo() -> Iterator[zookeeper.Server]:
    with zookeeper.running() as server:
        yield server


@contextmanager
def holding(server: zookeeper.Server, name: str, holders: int = 1) -> Iterator[None]:
    """Holds the nodes of Curator's mutex in a session until the block ends."""
    command = [*java(), "org.apache.zookeeper.ZooKeeperMain", "-server", server.address]
    client = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert client.stdin
    assert client.stdout
    lines = ["create /hudi", f"create /hudi/{name}"]
    lines += [f"create -s -e /hudi/{name}/_c_0d6f3cf6-{number}-lock-" for number in range(holders)]
    client.stdin.write("\n".join(lines) + "\n")
    client.stdin.flush()
    made = 0
    while made < holders:
        made += "Created" in (line := client.stdout.readline()) and "-lock-" in line
        assert client.poll() is None
    yield
    client.stdin.write("quit\n")
    client.stdin.close()
    client.wait(20)


@pytest.mark.exhaustive
def test_a_lock_in_zookeeper_is_seen_with_its_holder_and_its_time(zoo: zookeeper.Server) -> None:
    def read_state() -> Any:
        return read_lock("/lake/a", zoo.lock("a"), {}, Permissions(), utc_now(), lock_hosts=("127.0.0.1",))

    assert read_state().state is LockState.FREE  # The lock has no node in ZooKeeper.
    with holding(zoo, "a", holders=2):
        found = read_state()
        assert found.state is LockState.HELD
        assert found.holder.startswith("the ZooKeeper session 0x1")
        assert abs(utc_now() - found.since) < timedelta(seconds=30)
        assert read_state() == found
    assert read_state().state is LockState.FREE
    with zoo.away():
        assert read_state().is_silent


@pytest.mark.mostly_sqlite
def test_a_job_waits_for_a_lock_in_zookeeper(watched: Watched, zoo: zookeeper.Server) -> None:
    watched.table("a", lock=zoo.lock("b"))
    job = add(watched.service, "a")
    with holding(zoo, "b"):
        watched.check()
        assert watched.service.lease() is None
        assert "by the ZooKeeper session 0x1" in str(waits_for(watched.service, job))
    watched.check()
    assert lease_job(watched.service).id == job.id


@pytest.mark.exhaustive
def test_a_lock_in_dynamodb_ends_when_its_holder_does_not_renew_it(
    sqlite: sa.Engine, clock: FakeClock, tmp_path: Path
) -> None:
    with s3.running() as storage:
        client = boto3.client(
            "dynamodb",
            endpoint_url=storage.endpoint,
            aws_access_key_id="someone",
            aws_secret_access_key="anything",
            region_name="us-east-1",
        )
        options = {
            "hoodie.aws.access.key": "someone",
            "hoodie.aws.secret.key": "anything",
            f"{PREFIX}dynamodb.table": "locks",
            f"{PREFIX}dynamodb.partition_key": "a",
            f"{PREFIX}dynamodb.region": "us-east-1",
            f"{PREFIX}dynamodb.endpoint_url": storage.endpoint,
        }
        watched = Watched(sqlite, clock, tmp_path)
        watched.table("a", lock=TableLock(DYNAMODB[0], sealed(watched.service.cipher, options)))
        job = add(watched.service, "a")
        watched.check()
        sighting = watched.sighting()
        assert sighting is not None
        assert sighting.state is LockState.FREE  # The table of locks does not exist.
        client.create_table(
            TableName="locks",
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )

        def renew(version: str) -> None:
            item = {"key": "a", "ownerName": "a writer", "leaseDuration": "20000", "recordVersionNumber": version}
            client.put_item(TableName="locks", Item={name: {"S": value} for name, value in item.items()})

        for version in ("1", "2"):
            renew(version)
            for _ in range(9):
                watched.check()
                assert watched.service.lease() is None
        assert waits_for(watched.service, job) == "the table's lock, held for 34 s by a writer"
        watched.check(5)
        assert lease_job(watched.service).id == job.id
