"""The table's lock on the real server of each provider: beside a writer, while the server is away, and taken away."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import LockLostError, TableLockedError
from jobs.hudi.lock import TableLock, for_at_most
from tests.integration import tables
from tests.integration.lock_servers import SERVERS, LockServer, started
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import At

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

AWAY_SECONDS = 20
TRIES = 3
# An expansion commits in a pause of a writer that does not retry conflicts.
EXPANDABLE_PAUSE_SECONDS = 10.0


@pytest.fixture(scope="module", params=SERVERS)
def server(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[LockServer]:
    with started(request.param, spark) as found:
        yield found


def test_it_is_proved_while_it_is_ours_and_not_when_it_was_taken_away(
    spark: SparkSession, tmp_path: Path, server: LockServer
) -> None:
    base = tmp_path / "trips"
    tables.write_table(spark, base, count=10)
    table = hudi_table(spark, base, INDEX, lock=server.lock("proved"))
    lock = TableLock(table, "job_1")
    with lock.held(lambda: None):
        lock.verify()
        with pytest.raises(TableLockedError), TableLock(table, "job_2").held(for_at_most(2)):
            pass
        lock.verify()
        server.take_away(lock)
        with pytest.raises(LockLostError):
            lock.verify()
        with TableLock(table, "job_2").held(for_at_most(30)), pytest.raises(LockLostError):
            lock.verify()
    with lock.held(for_at_most(30)):
        lock.verify()


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "pause"), [("compaction", 0.5), ("bucket_expansion", EXPANDABLE_PAUSE_SECONDS)])
def test_a_writer_that_takes_it_too_loses_nothing(
    spark: SparkSession, tmp_path: Path, server: LockServer, kind: str, pause: float
) -> None:
    base = tmp_path / "trips"
    options = tables.write_table(spark, base, count=1000, updates=2, **server.writer_options(f"beside_{kind}"))
    before = len(tables.snapshot(spark, base))
    written = 0
    ended = threading.Event()
    failed: list[BaseException] = []

    def written_again(batch: DataFrame) -> None:
        """A batch that began beside the switch is stopped by Groundskeeper, and may be written again."""
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
                ended.wait(pause)
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


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "step"), [("compaction", "compacting"), ("bucket_expansion", "rewriting")])
def test_a_server_that_is_away_for_a_while_delays_a_job_and_no_more(
    spark: SparkSession, tmp_path: Path, server: LockServer, kind: str, step: str
) -> None:
    base = tmp_path / "trips"
    name = f"away_{kind}"
    options = tables.write_table(spark, base, count=1000, updates=2, **server.writer_options(name))
    before = tables.snapshot(spark, base)
    restarts: list[threading.Thread] = []

    def goes_away() -> None:
        is_away = threading.Event()

        def stay_away() -> None:
            with server.away():
                is_away.set()
                time.sleep(AWAY_SECONDS)

        restarts.append(threading.Thread(target=stay_away))
        restarts[0].start()
        is_away.wait()

    started_at = time.monotonic()
    params = {"factor": 2, "settle_seconds": 1} if kind == "bucket_expansion" else {}
    result = run_job(spark, base, kind, params, lock=server.lock(name), context=At(step, goes_away))
    seconds = time.monotonic() - started_at
    for each in restarts:
        each.join()
    assert len(result.instants) == 1
    assert AWAY_SECONDS < seconds < AWAY_SECONDS + 60
    num_buckets = 8 if kind == "bucket_expansion" else 4
    assert proved(spark, base, num_buckets) == before
    assert tables.left_behind(base) == []
    tables.upsert(tables.rows(spark, 0, 200, ts=9).withColumn("dt", F.lit("2026-02-02")), base, options)
    assert tables.duplicates(spark, base) == 0
