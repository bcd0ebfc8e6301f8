"""Tests a worker that dies immediately after its commit, or at the end of a rollback, before it has removed its
temporary files."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex
from jobs.errors import RefusedError, WritersActiveError
from jobs.format.instants import instant_of
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.job_context import JobContext
from tests.acceptance.storage import left_behind
from tests.integration import tables
from tests.integration.dying_job import DyingJob
from tests.integration.run import hudi_table, perform_order, run_job, work_order
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("kind", "params"), [("compaction", {}), ("bucket_expansion", {"factor": 2, "settle_seconds": 0})]
)
def test_the_next_attempt_finds_the_commit_and_removes_its_temporary_files(
    spark: SparkSession, base: Path, kind: str, params: dict[str, Any]
) -> None:
    options = tables.write_table(spark, base, count=200, updates=1, partitioned=False)
    first = run_job(spark, base, kind, params, job_id="job_1")
    (instant,) = first.instants
    markers, heartbeat = base / ".hoodie" / ".temp" / instant, base / ".hoodie" / ".heartbeat" / instant
    markers.mkdir(parents=True)
    (markers / "a.parquet.marker.CREATE").touch()
    heartbeat.touch()

    again = run_job(spark, base, kind, params, job_id="job_1", earlier_instants=(instant,))

    assert again.details["found_completed"] == instant
    assert not markers.exists()
    assert not heartbeat.exists()
    tables.upsert(tables.rows(spark, 50, 150, ts=9), base, options)
    assert tables.duplicates(spark, base) == 0


@pytest.mark.parametrize("knows_its_instant", [pytest.param(True, marks=pytest.mark.exhaustive), False])
def test_a_lock_that_a_dead_attempt_held_is_removed_whether_or_not_its_instant_is_known(
    spark: SparkSession, base: Path, knows_its_instant: bool
) -> None:
    tables.write_table(spark, base, count=60, partitioned=False)
    first = run_job(spark, base, "clustering", {"sort_by": ["city"]}, job_id="job_1")
    leave_lock(spark, base, "job_1")

    earlier = first.instants if knows_its_instant else ()
    run_job(spark, base, "clustering", {"sort_by": ["city"]}, job_id="job_1", earlier_instants=earlier)

    assert not (base / ".hoodie" / "lock").exists()


@pytest.mark.parametrize("undo", [pytest.param(True, marks=pytest.mark.exhaustive), False])
def test_the_next_attempt_finds_the_renamed_hashing_config_and_removes_the_lock(
    spark: SparkSession, base: Path, undo: bool
) -> None:
    """The change leaves no instant, and a new job would be refused."""
    tables.write_table(spark, base, count=60, partitioned=False)
    run_job(spark, base, "bucket_expansion", {"factor": 2})
    has = {"index": BucketIndex(8, ("id",)), "declared": {"writers_stopped": True}}
    if undo:
        run_job(spark, base, "finish_expansion", **has)
    order = work_order(base, "finish_expansion", {"undo": undo}, **has)
    first = perform_order(spark, order)
    leave_lock(spark, base, order.job_id)

    again = perform_order(spark, replace(order, attempt=2))

    assert again.details == first.details
    assert not (base / ".hoodie" / "lock").exists()
    with pytest.raises(RefusedError):
        run_job(spark, base, "finish_expansion", {"undo": undo}, **has)


def test_a_rollback_that_was_cut_short_after_its_instant_was_gone_is_finished(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=60, partitioned=False)
    before = tables.snapshot(spark, base)
    job = DyingJob(spark, work_order(base, "bucket_expansion", {"factor": 2, "wait_seconds": 5}))
    job.die_at({"at": "step", "name": "waiting for writers"})
    (instant,) = job.instants
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK) as client:
        client.rollback(instant)
    (completed,) = (base / ".hoodie" / "timeline").glob("*_*.rollback")
    completed.unlink()
    markers, heartbeat = base / ".hoodie" / ".temp" / instant, base / ".hoodie" / ".heartbeat" / instant
    markers.mkdir(parents=True)
    (markers / "a.parquet.marker.CREATE").touch()
    heartbeat.touch()

    job.finish()

    assert left_behind(spark, base) == []
    assert tables.snapshot(spark, base) == before


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_an_empty_plan_of_a_rollback_is_told_and_fails_neither_a_further_attempt_nor_an_audit(
    spark: SparkSession, base: Path, version: int
) -> None:
    """A client of Hudi that dies between two requests to a storage such as `abfss` leaves the file, and a loss of power
    may do so, too."""
    tables.write_table(spark, base, count=60, partitioned=False, version=version)
    before = tables.snapshot(spark, base)
    job = DyingJob(spark, work_order(base, "bucket_expansion", {"factor": 2, "wait_seconds": 0}))
    job.die_at({"at": "step", "name": "waiting for writers"})
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK) as client:
        client.rollback(job.instants[0])
    empty = instant_of(datetime.now() - timedelta(hours=2))
    plan = base / ".hoodie" / ("timeline" if version == 9 else "") / f"{empty}.rollback.requested"
    plan.touch()

    [found] = run_job(spark, base, "audit").details["findings"]
    assert (found["type"], found["detail"]) == ("rollback-plan-empty", empty)
    # The job waits for the rollback, and then rolls its own instant back, with which Hudi deletes the empty plan.
    with pytest.raises(WritersActiveError, match=empty):
        job.finish()
    assert not plan.exists()
    job.finish()
    assert left_behind(spark, base) == []
    assert tables.snapshot(spark, base) == before


def leave_lock(spark: SparkSession, base: Path, job: str) -> None:
    """Leaves the lock of an attempt at this job, as a kill does."""
    with TableLock(hudi_table(spark, base, INDEX), job).held(JobContext().checkpoint):
        left = (base / ".hoodie" / "lock").read_bytes()
    (base / ".hoodie" / "lock").write_bytes(left)
    (base / ".hoodie" / ".lock.crc").unlink(missing_ok=True)
