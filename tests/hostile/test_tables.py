"""Tests tables whose files crash or block the process that reads them, or fill its memory."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from service.catalog import commit_store, table_store, watch_store
from service.catalog.registration import Registration
from service.db.engine import open_engine, reading, writing
from service.db.page import PageRequest
from service.events.notifier import Notifier
from service.lake import reader_pool
from service.lake.reader_pool import ReaderLimits, ReaderPool
from service.model.backoff import BackOff
from service.model.clock import utc_now
from service.model.storage_errors import ReaderCrashedError, ReadersBusyError, ReadTimedOutError, StorageError
from service.observation.files_digest import FilesDigest
from service.observation.observer import Observer, ObserverConfig
from service.observation.poll_requests import PollRequests
from service.observation.table_read import IsolatedTableReader
from tests.hostile import avro
from tests.integration.control_plane.databases import new_sqlite
from tests.support.small_table import SmallTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from service.catalog.watch import Watch

MIB = 1024 * 1024
LIMITS = ReaderLimits(seconds=3.0, memory_bytes=1536 * MIB, queued=2)


@pytest.fixture(scope="module")
def readers() -> Iterator[ReaderPool]:
    reader_pool.preload("service.observation.table_read")
    with ReaderPool(1, LIMITS) as pool:
        yield pool


@pytest.fixture(scope="module")
def patient_readers() -> Iterator[ReaderPool]:
    """Readers with enough time to fill hundreds of MiB on a busy machine."""
    reader_pool.preload("service.observation.table_read")
    with ReaderPool(1, replace(LIMITS, seconds=60.0)) as pool:
        yield pool


class Polls:
    """A service with one reader."""

    def __init__(self, folder: Path, readers: ReaderPool) -> None:
        url = new_sqlite(folder / "gk.db")
        self.engine = open_engine(url)
        config = ObserverConfig(at_once=1, backoff=BackOff(first=3600, most=3600))
        reader = IsolatedTableReader(url, {}, 100)
        self.requests = PollRequests()
        self._observer = Observer(
            self.engine,
            utc_now,
            Random(1),
            self.requests,
            config,
            read=readers.isolated(reader),
            first=readers.isolated(reader.first),
            quiet=readers.isolated(reader.quiet),
            files_digest=readers.isolated(FilesDigest({})),
            notifier=Notifier(),
        )

    def register(self, table: SmallTable) -> None:
        now, name = utc_now(), table.base.name
        with writing(self.engine) as connection:
            table_store.register(connection, Registration(name, str(table.base), name, now, now))

    def run(self) -> None:
        self._observer.run_once()
        assert self._observer.pool.wait(60)

    def watch(self, name: str) -> Watch:
        with reading(self.engine) as connection:
            return watch_store.get(connection, name)

    def commits(self, name: str) -> int:
        with reading(self.engine) as connection:
            return len(commit_store.page(connection, PageRequest(10), table_id=name).items)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (avro.NESTED, "table-not-readable"),
        (avro.ENDLESS, "table-too-slow"),
        (avro.bomb(3 * 1024 * MIB), "file-damaged"),
        (avro.NESTED[:50], "file-damaged"),
        (b"[" * 1_000_000, "file-damaged"),
        (b'{"partitionToWriteStats": {"p": [{"fileId": 7, "numInserts": 1e400}]}}', "file-damaged"),
    ],
    ids=["recursive", "endless", "bomb", "torn", "nested-json", "infinite"],
)
def test_a_hostile_commit_makes_its_table_unhealthy_and_touches_no_other(
    request: pytest.FixtureRequest, tmp_path: Path, content: bytes, problem: str
) -> None:
    # On a busy machine each table may take as long as the time limit of the endless one.
    readers = request.getfixturevalue("readers" if problem == "table-too-slow" else "patient_readers")
    polls = Polls(tmp_path, readers)
    for name in ("a", "hostile", "z"):
        table = SmallTable(tmp_path / name)
        table.commit("001")
        if name == "hostile":
            (table.timeline / "002_003.deltacommit").write_bytes(content)
        polls.register(table)
    polls.run()
    assert (polls.commits("a"), polls.commits("z")) == (1, 1)
    watch = polls.watch("hostile")
    assert watch.error is not None
    assert watch.error.type == problem, watch.error
    # The table waits now, and is not read again at once, not even for a callback of its writer.
    polls.requests.ask("hostile")
    polls.run()
    assert polls.watch("hostile").failures == 1


def _leads_out_by_properties(table: SmallTable, outside: SmallTable) -> None:
    properties = table.base / ".hoodie" / "hoodie.properties"
    text = properties.read_text().replace("timeline.path=timeline", f"timeline.path=../../{outside.base.name}/.hoodie")
    properties.write_text(text)


def _leads_out_by_a_link(table: SmallTable, outside: SmallTable) -> None:
    table.timeline.rename(table.timeline.with_name("away"))
    table.timeline.symlink_to(outside.timeline)


def _is_a_link(table: SmallTable, outside: SmallTable) -> None:
    table.base.rename(table.base.with_name("away"))
    table.base.symlink_to(outside.base)


def _has_a_properties_file_without_end(table: SmallTable, _outside: SmallTable) -> None:
    with (table.base / ".hoodie" / "hoodie.properties").open("ab") as file:
        file.write(b"x=" + b"y" * 2 * MIB)


@pytest.mark.parametrize(
    ("turn", "problem"),
    [
        (_leads_out_by_properties, "path-outside-table"),
        (_leads_out_by_a_link, "path-outside-table"),
        (_is_a_link, "path-outside-table"),
        (_has_a_properties_file_without_end, "storage-error"),
    ],
)
def test_a_registered_table_that_turns_hostile_is_no_longer_read(
    readers: ReaderPool, tmp_path: Path, turn: Callable[[SmallTable, SmallTable], None], problem: str
) -> None:
    polls = Polls(tmp_path, readers)
    table, outside = SmallTable(tmp_path / "table"), SmallTable(tmp_path / "outside")
    outside.commit("007")
    polls.register(table)
    turn(table, outside)
    polls.run()
    watch = polls.watch("table")
    assert watch.error is not None
    assert watch.error.type == problem, watch.error
    assert polls.commits("table") == 0


def test_a_call_gets_the_answer_or_the_error_of_the_function(readers: ReaderPool) -> None:
    assert readers.run(divmod, 7, 2) == (3, 1)
    with pytest.raises(StorageError, match="ZeroDivisionError"):
        readers.run(divmod, 7, 0)
    with pytest.raises(ReadTimedOutError):
        readers.run(time.sleep, 60)
    with pytest.raises(ReaderCrashedError, match="SIGABRT"):
        readers.run(os.abort)
    with pytest.raises(ReaderCrashedError, match="exit code 3"):
        readers.run(os._exit, 3)
    assert readers.run(divmod, 7, 2) == (3, 1)


def test_a_reader_that_has_grown_is_not_kept(patient_readers: ReaderPool) -> None:
    first = patient_readers.run(os.getpid)
    assert patient_readers.run(eval, f"len(b'x' * {10 * MIB})") == 10 * MIB
    assert patient_readers.run(os.getpid) == first
    assert patient_readers.run(eval, f"len(b'x' * {700 * MIB})") == 700 * MIB
    assert patient_readers.run(os.getpid) != first


def test_calls_beyond_the_queue_are_refused_and_those_in_it_wait(readers: ReaderPool) -> None:
    ends: list[str] = []

    def call() -> None:
        try:
            readers.run(time.sleep, 1.0)
            ends.append("done")
        except ReadersBusyError:
            ends.append("refused")

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # One read is running and two are waiting, the last of which may time out.
    assert ends.count("refused") >= 5
    assert ends.count("done") >= 2


def test_children_end_with_the_service(tmp_path: Path) -> None:
    with ReaderPool(1, LIMITS) as pool:
        pid = pool.run(os.getpid)

        def wait() -> None:
            with pytest.raises(ReaderCrashedError):
                pool.run(time.sleep, 60)

        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.2)
    waiting.join(5)
    assert not waiting.is_alive()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(ReaderCrashedError):
        pool.run(os.getpid)
