"""Tests how the next attempt treats the instants, hashing configs and locks of a dead attempt."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import TYPE_CHECKING

import pytest

from jobs.errors import RefusedError
from jobs.format.bucket_rules import Scale
from jobs.hudi import hashing_config, held_lock
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock, for_at_most
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.job_context import JobContext
from jobs.lock_errors import LockLostError, TableLockedError
from jobs.services.compaction import DUE
from tests.integration import tables
from tests.integration.dying_job import DyingJob
from tests.integration.run import hudi_table, proved, run_job, work_order
from tests.integration.tables import INDEX, left_behind
from tests.integration.writers import let_heartbeat_expire

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

WAITING = "waiting for writers"
OF_A_SHORT_RUN = [("committing", "MERGE_ON_READ")]


@pytest.mark.parametrize(
    ("step", "table_type"),
    [
        pytest.param(*case, marks=() if case in OF_A_SHORT_RUN else pytest.mark.exhaustive)
        for case in product(["rewriting", WAITING, "committing"], ["COPY_ON_WRITE", "MERGE_ON_READ"])
    ],
)
def test_the_next_attempt_undoes_what_a_lost_one_left_and_starts_over(
    spark: SparkSession, base: Path, table_type: str, step: str
) -> None:
    options = tables.write_table(spark, base, table_type=table_type, partitioned=False)
    before = tables.snapshot(spark, base)
    job = DyingJob(spark, work_order(base, "bucket_expansion", {"factor": 2}))
    job.die_at({"at": "step", "name": step})
    assert len(job.instants) == 1
    assert hudi_table(spark, base, INDEX).pending() != []
    # Meanwhile a writer continues with the old number of buckets.
    tables.upsert(tables.rows(spark, 600, 700, ts=5), base, options)

    result = job.finish()

    assert result.details["rows"] == 700
    assert set(before) < set(proved(spark, base, 8))
    assert left_behind(base) == []


def test_an_attempt_whose_report_was_lost_is_found_completed(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, partitioned=False)
    first = run_job(spark, base, "bucket_expansion", {"factor": 2})
    again = run_job(spark, base, "bucket_expansion", {"factor": 2}, earlier_instants=first.instants)
    assert again.details.pop("audit")["findings"] == []
    assert again.details == {"found_completed": first.instants[0], "fenced": [], "repaired": []}
    proved(spark, base, 8)


@pytest.mark.exhaustive
def test_a_hashing_config_without_a_completed_commit_is_removed_first(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base)
    table = hudi_table(spark, base, INDEX)
    rules = table.bucket_rules()
    assert rules is not None
    hashing_config.write(table, rules, rules.whole_table(Scale(factor=2)), "20260101000000000")
    assert run_job(spark, base, "audit").details["dangling_hashing_configs"] == ["20260101000000000"]

    run_job(spark, base, "bucket_expansion", {"num_buckets": 8})

    tables.upsert(tables.rows(spark, 0, 800, ts=6), base, options)
    proved(spark, base, 8)


def test_only_the_job_that_left_a_lock_breaks_it(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=60, partitioned=False)
    table = hudi_table(spark, base, INDEX)
    holder = TableLock(table, "job_dead")
    held = holder.held(JobContext().checkpoint)
    held.__enter__()
    assert (base / ".hoodie" / "lock").exists()

    assert not TableLock(table, "job_other").break_stale()
    with pytest.raises(TableLockedError), TableLock(table, "job_other").held(for_at_most(0.5)):
        pass
    assert TableLock(table, "job_dead").break_stale()
    with TableLock(table, "job_other").held(JobContext().checkpoint):
        pass
    assert not (base / ".hoodie" / "lock").exists()


def test_a_lost_attempt_does_not_take_the_lock_of_the_next_one_in_its_worker_for_its_own(
    spark: SparkSession, base: Path
) -> None:
    tables.write_table(spark, base, partitioned=False)
    lost, following = (TableLock(hudi_table(spark, base, INDEX), "job_twice") for _ in range(2))
    first = lost.held(JobContext().checkpoint)
    first.__enter__()
    assert following.break_stale()
    with following.held(JobContext().checkpoint):
        with pytest.raises(LockLostError):
            lost.verify()
        first.__exit__(None, None, None)
        following.verify()


def test_hudi_completes_nothing_for_a_worker_that_has_lost_the_lock_within_the_call(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.write_table(spark, base, count=60, updates=2, partitioned=False)
    before = tables.snapshot(spark, base)
    monkeypatch.setattr(held_lock, "FRESH_SECONDS", 0.2)
    table = hudi_table(spark, base, INDEX)
    lock, checkpoint = TableLock(table, "job_lost"), JobContext().checkpoint
    with table.clock.kept(writes=True), WriteClient(table, UNDER_OUR_LOCK, DUE) as client:
        with lock.held(checkpoint):
            plan = client.schedule_compaction()
            assert plan
            begun = client.begin_compaction(plan)
        client.execute_compaction(begun)
        with lock.held(checkpoint):
            # A new call needs no new proof at once. Later a proof is needed, and given, because the lock is still held.
            client.new_instant()
            time.sleep(0.3)
            client.new_instant()
            # The next attempt breaks the lock and gives it back.
            assert TableLock(table, "job_lost").break_stale()
            time.sleep(0.3)
            for late in (client.new_instant, lambda: client.commit_compaction(plan, begun)):
                with pytest.raises(LockLostError):
                    late()
        with lock.held(checkpoint):
            client.new_instant()
        assert table.state_of(plan) == "INFLIGHT"
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before


@pytest.mark.exhaustive
def test_a_lock_that_its_holder_gives_back_while_it_is_read_stops_no_job(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=60, partitioned=False)
    lock = TableLock(hudi_table(spark, base, INDEX), "job_reader")
    stop = threading.Event()

    def take_and_give_back() -> int:
        times = 0
        while not stop.is_set():
            (base / ".hoodie" / "lock").touch()
            (base / ".hoodie" / "lock").unlink()
            times += 1
        return times

    with ThreadPoolExecutor(1) as pool:
        holder = pool.submit(take_and_give_back)
        try:
            assert not any(lock.break_stale() for _ in range(500))
        finally:
            stop.set()
        assert holder.result() > 500


@pytest.mark.parametrize("content", [b"", b"[" * 100_000, b'{"owner": ', b"\xff\xfe", b'["groundskeeper job_reader"]'])
def test_a_lock_file_that_is_not_ours_is_left_alone_whatever_it_holds(
    spark: SparkSession, base: Path, content: bytes
) -> None:
    tables.write_table(spark, base, count=60, partitioned=False)
    (base / ".hoodie" / "lock").write_bytes(content)
    assert not TableLock(hudi_table(spark, base, INDEX), "job_reader").break_stale()
    assert (base / ".hoodie" / "lock").read_bytes() == content


@pytest.mark.exhaustive
def test_a_lock_whose_process_is_no_more_is_broken_by_any_job(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, partitioned=False)
    before = tables.snapshot(spark, base)
    lock = TableLock(hudi_table(spark, base, INDEX), "job_dead")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (base / ".hoodie" / "lock").write_text(json.dumps({**lock._note, "pid": gone.pid}))

    run_job(spark, base, "bucket_expansion", {"factor": 2})

    assert proved(spark, base, 8) == before


def test_a_replacecommit_whose_worker_died_unheard_is_rolled_back(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, partitioned=False)
    before = tables.snapshot(spark, base)
    client = WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK)
    instant = client.new_instant()
    client.start_replacement(instant)
    with pytest.raises(RefusedError, match=instant):
        run_job(spark, base, "bucket_expansion", {"factor": 2})
    client._client.getHeartbeatClient().stopHeartbeatTimers()
    let_heartbeat_expire(base, instant)

    run_job(spark, base, "bucket_expansion", {"factor": 2})

    assert proved(spark, base, 8) == before
