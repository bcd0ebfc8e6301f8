"""After a kill -9 of the worker during a job, the next attempt finishes or undoes the work."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.daemon import ENDED, has_reached
from tests.acceptance.storage import left_behind
from tests.integration import tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.acceptance.daemon import Daemon

JOBS: dict[str, dict[str, Any]] = {
    "compaction": {},
    "clustering": {"sort_by": ["city", "fare"], "layout": "zorder"},
    "bucket_expansion": {"num_buckets": 8, "settle_seconds": 1},
}
ROWS = 400


def _prove(daemon: Daemon, spark: SparkSession, base: Path, table: str, kind: str, before: list[str]) -> None:
    """Asserts that no row is lost, that no file is left, and that a writer with old options can continue."""
    num_buckets = 8 if kind == "bucket_expansion" else 4
    assert tables.in_order(spark, base, num_buckets) == before
    assert left_behind(spark, base) == []
    tables.upsert(tables.rows(spark, 0, ROWS + 100, ts=9), base, tables.writer_options(base, partitioned=False))
    tables.in_order(spark, base, num_buckets)
    audit = daemon.succeed(table, "audit")
    assert (audit["clean"], audit["rows"]) == (True, ROWS + 100), audit


def _kill(daemon: Daemon, victims: Sequence[str], bases: Iterable[Path]) -> None:
    """Kills the worker, except in the milliseconds between taking and signing a filesystem lock: the empty lock of a
    dead worker has no known owner, and a person has to remove it."""
    processes = {"worker": daemon.worker(), "jvm": daemon.jvm()}
    locks = [base / ".hoodie" / "lock" for base in bases]
    while any(lock.exists() and not lock.stat().st_size for lock in locks):
        time.sleep(0.002)
    for victim in victims:
        process = processes[victim]
        assert process
        os.kill(process, signal.SIGKILL)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("victims", "step", "seconds_later"),
    [
        pytest.param(("jvm", "worker"), "rewriting", 0.0, id="while files are written"),
        pytest.param(("jvm", "worker"), "waiting", 0.2, id="about when they commit", marks=pytest.mark.exhaustive),
        pytest.param(("jvm",), "rewriting", 0.7, id="only its JVM, a little later", marks=pytest.mark.exhaustive),
    ],
)
def test_jobs_of_a_killed_worker_are_finished_by_the_next_one(
    daemon: Daemon,
    spark: SparkSession,
    lake: Path,
    request: pytest.FixtureRequest,
    victims: tuple[str, ...],
    step: str,
    seconds_later: float,
) -> None:
    daemon.wait_for_worker()
    case = request.node.callspec.id.replace(" ", "-").replace(",", "")
    bases = {kind: lake / f"{kind}-{case}" for kind in JOBS}
    before = {}
    for kind, base in bases.items():
        tables.write_table(spark, base, count=ROWS, updates=2, partitioned=False)
        before[kind] = tables.snapshot(spark, base)
    ids = {kind: daemon.register(base) for kind, base in bases.items()}

    jobs = {kind: daemon.submit(ids[kind], kind, **params) for kind, params in JOBS.items()}
    daemon.wait(jobs["compaction"], lambda job: has_reached(job, "compacting"))
    daemon.wait(jobs["clustering"], lambda job: has_reached(job, step))
    daemon.wait(jobs["bucket_expansion"], lambda job: has_reached(job, step))
    time.sleep(seconds_later)
    _kill(daemon, victims, bases.values())
    killed = {kind: daemon.job(job) for kind, job in jobs.items()}

    for kind, job_id in jobs.items():
        job = daemon.wait(job_id)
        assert job["state"] == "succeeded", f"{job}\n{daemon.log.read_text()[-6000:]}"
        assert job["attempt"] == (1 if killed[kind]["state"] in ENDED else 2)
        _prove(daemon, spark, bases[kind], ids[kind], kind, before[kind])


def _stop_in_commit(daemon: Daemon, base: Path) -> None:
    """Suspends the JVM during the commit, when it holds the signed lock and has an inflight instant."""
    lock, timeline = base / ".hoodie" / "lock", base / ".hoodie" / "timeline"

    def is_committing() -> bool:
        return bool(list(timeline.glob("*.inflight"))) and lock.exists() and lock.stat().st_size > 0

    jvm = daemon.jvm()
    assert jvm
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with suppress(FileNotFoundError):
            if is_committing():
                os.kill(jvm, signal.SIGSTOP)
                if is_committing():
                    return
                os.kill(jvm, signal.SIGCONT)
        time.sleep(0.002)
    raise AssertionError(f"it never committed\n{daemon.log.read_text()[-6000:]}")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("cleaning", {"policy": "KEEP_LATEST_FILE_VERSIONS", "retain": 2}),
        ("clustering", {"sort_by": ["city"]}),
    ],
)
def test_a_worker_killed_while_hudi_commits_leaves_no_lock_that_keeps_writers_out(
    daemon: Daemon, spark: SparkSession, lake: Path, kind: str, params: dict[str, Any]
) -> None:
    daemon.wait_for_worker()
    base = lake / f"locked-{kind}"
    shape: dict[str, Any] = {"num_buckets": None, "partitioned": False, "table_type": "COPY_ON_WRITE"}
    options = tables.write_table(spark, base, count=ROWS, updates=3, **shape)
    before = tables.snapshot(spark, base)
    table = daemon.register(base, num_buckets=None)

    job_id = daemon.submit(table, kind, **params)
    _stop_in_commit(daemon, base)
    _kill(daemon, ("jvm", "worker"), [base])

    job = daemon.wait(job_id)
    assert (job["state"], job["attempt"]) == ("succeeded", 2), f"{job}\n{daemon.log.read_text()[-6000:]}"
    assert tables.snapshot(spark, base) == before
    assert left_behind(spark, base) == []
    tables.upsert(tables.rows(spark, 0, ROWS + 100, ts=9), base, options)
    assert tables.duplicates(spark, base) == 0
