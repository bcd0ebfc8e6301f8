"""Tests the table's lock on the real server of each provider: beside a writer, with an unreachable server, and after
its loss."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import JobError
from jobs.hudi import held_lock
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock, for_at_most
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.job_context import JobContext
from jobs.lock_errors import LockLostError, TableLockedError
from jobs.storage.permissions import Permissions
from service.lake.table_lock import read_lock
from service.model.clock import utc_now
from service.model.lock_state import LockState
from tests.integration import tables
from tests.integration.lock_servers import SERVERS, LockServer, started
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import At

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from jobs.contract import Result
    from service.lake.table_lock import LockFile

AWAY_SECONDS = 20
TRIES = 3
# An expansion commits in a pause of a writer that does not retry conflicts.
EXPANDABLE_PAUSE_SECONDS = 10.0


BY_DEFAULT = ("zookeeper",)
_PARAMS = [pytest.param(each, marks=() if each in BY_DEFAULT else pytest.mark.exhaustive) for each in SERVERS]


@pytest.fixture(scope="module", params=_PARAMS)
def server(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[LockServer]:
    with started(request.param, spark) as found:
        yield found


def test_the_lock_is_proved_while_it_is_ours_but_not_after_another_has_taken_it(
    spark: SparkSession, tmp_path: Path, server: LockServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = server.base(tmp_path)
    tables.write_table(spark, base, count=10, **server.writer_options("proved"))
    table = hudi_table(spark, base, INDEX, lock=server.lock("proved"))
    lock = TableLock(table, "job_1")
    # Each call of Hudi's client needs a new proof, which another thread gives.
    monkeypatch.setattr(held_lock, "FRESH_SECONDS", 0.5)
    with table.clock.kept(writes=True), WriteClient(table, UNDER_OUR_LOCK) as client:
        with lock.held(JobContext().checkpoint):
            lock.verify()
            with pytest.raises(TableLockedError), TableLock(table, "job_2").held(for_at_most(2)):
                pass
            lock.verify()
            client.new_instant()
            server.take_away(lock)
            time.sleep(0.5)
            for late in (lock.verify, client.new_instant):
                with pytest.raises(LockLostError):
                    late()
            with TableLock(table, "job_2").held(for_at_most(30)), pytest.raises(LockLostError):
                lock.verify()
        with lock.held(for_at_most(30)):
            lock.verify()


def test_the_service_reads_without_hudi_whether_the_lock_is_held(
    spark: SparkSession, tmp_path: Path, server: LockServer
) -> None:
    base = server.base(tmp_path)
    tables.write_table(spark, base, count=10, **server.writer_options("seen"))
    table = hudi_table(spark, base, INDEX, lock=server.lock("seen"))

    def look() -> LockFile:
        options = server.surroundings.storage
        lock = server.lock("seen")
        return read_lock(str(base), lock, options, Permissions(), utc_now(), lock_hosts=("127.0.0.1",))

    if server.kind == "hive metastore":
        assert look().state is LockState.UNKNOWN
        return
    assert look().state is LockState.FREE
    with TableLock(table, "job_1").held(for_at_most(30)):
        found = look()
        assert found.state is LockState.HELD
        assert found.holder
    assert look().state is LockState.FREE


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "pause"), [("compaction", 0.5), ("bucket_expansion", EXPANDABLE_PAUSE_SECONDS)])
def test_a_writer_that_takes_the_same_lock_loses_nothing(
    spark: SparkSession, tmp_path: Path, server: LockServer, kind: str, pause: float
) -> None:
    base = server.base(tmp_path)
    options = tables.write_table(spark, base, count=1000, updates=2, **server.writer_options(f"beside_{kind}"))
    before = len(tables.snapshot(spark, base))
    written = 0
    ended = threading.Event()
    failed: list[BaseException] = []

    def written_again(batch: DataFrame) -> None:
        """Writes a batch again that Groundskeeper has stopped because it began beside the switch."""
        for left in reversed(range(TRIES)):
            try:
                tables.upsert(batch, base, options)
            except Exception:
                if not left:
                    raise
            else:
                break

    def writer() -> None:
        nonlocal written
        try:
            while not ended.is_set():
                first = 20_000 + 50 * written
                written_again(tables.rows(spark, first, first + 50, ts=5))
                written += 1
                ended.wait(pause * server.slowness)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=writer)
    thread.start()
    try:
        params = {"factor": 2, "settle_seconds": 3} if kind == "bucket_expansion" else {}
        run_job(spark, base, kind, params, lock=server.lock(f"beside_{kind}"))
    finally:
        ended.set()
        thread.join()
    assert not failed
    assert written
    assert len(proved(spark, base, 8 if kind == "bucket_expansion" else 4)) == before + 50 * written


class Absence:
    """The first call stops the server for `AWAY_SECONDS`, and returns when the server has stopped."""

    def __init__(self, server: LockServer) -> None:
        self._gone = threading.Event()
        self._server = server
        self._thread = threading.Thread(target=self._stay_away)

    def __call__(self) -> None:
        self._thread.start()
        self._gone.wait()

    def end(self) -> None:
        self._thread.join()

    def _stay_away(self) -> None:
        with self._server.away():
            self._gone.set()
            time.sleep(AWAY_SECONDS)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "step"), [("compaction", "compacting"), ("bucket_expansion", "rewriting")])
def test_a_server_that_is_down_for_a_while_only_delays_a_job(
    spark: SparkSession, tmp_path: Path, server: LockServer, kind: str, step: str
) -> None:
    base = server.base(tmp_path)
    name = f"away_{kind}"
    options = tables.write_table(spark, base, count=1000, updates=2, **server.writer_options(name))
    before = tables.snapshot(spark, base)
    absence = Absence(server)
    started_at = time.monotonic()
    params = {"factor": 2, "settle_seconds": 1} if kind == "bucket_expansion" else {}
    result = run_job(spark, base, kind, params, lock=server.lock(name), context=At(step, absence))
    seconds = time.monotonic() - started_at
    absence.end()
    assert len(result.instants) == 1
    assert AWAY_SECONDS < seconds < AWAY_SECONDS + 60 * server.slowness
    _right(spark, server, base, before, options, 8 if kind == "bucket_expansion" else 4)


@pytest.mark.exhaustive
def test_nothing_is_committed_unless_the_lock_outlasts_the_absence_of_its_server(
    spark: SparkSession, tmp_path: Path, server: LockServer
) -> None:
    base = server.base(tmp_path)
    options = tables.write_table(spark, base, count=1000, updates=2, **server.writer_options("held"))
    before = tables.snapshot(spark, base)
    absence = Absence(server)

    def expand(context: JobContext | None) -> Result:
        params = {"factor": 2, "settle_seconds": 1}
        return run_job(spark, base, "bucket_expansion", params, lock=server.lock("held"), context=context)

    try:
        # The job holds the lock when the step begins.
        expand(At("committing", absence))
    except JobError as error:
        assert error.retriable  # noqa: PT017 - either is right: the server decides
        absence.end()
        assert server.left_behind(base) == []
        assert proved(spark, base, 4) == before
        expand(None)
    absence.end()
    _right(spark, server, base, before, options, 8)


def _right(
    spark: SparkSession,
    server: LockServer,
    base: Path | str,
    before: list[str],
    options: dict[str, str],
    num_buckets: int,
) -> None:
    """Asserts that the table has exactly its rows, and that the next batch succeeds."""
    assert proved(spark, base, num_buckets) == before
    assert server.left_behind(base) == []
    tables.upsert(tables.rows(spark, 0, 200, ts=9).withColumn("dt", F.lit("2026-02-02")), base, options)
    assert tables.duplicates(spark, base) == 0
