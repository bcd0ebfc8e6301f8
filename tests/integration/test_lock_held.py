"""If others hold the lock and never release it, a job frees its worker, names the holder, and changes nothing."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import TableLock
from jobs.hudi.lock import TableLock as Lock
from jobs.job_context import JobContext
from jobs.lock_errors import TableLockedError
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SHORT = TableLock(wait_seconds=1.0)
JOBS: list[Any] = [
    ("compaction", {}),
    pytest.param("cleaning", {"retain": 1}, marks=pytest.mark.exhaustive),
    pytest.param("clustering", {"sort_by": ["city"]}, marks=pytest.mark.exhaustive),
    pytest.param("bucket_expansion", {"factor": 2}, marks=pytest.mark.exhaustive),
    pytest.param("archival", {"retain": 1}, marks=pytest.mark.exhaustive),
]


@pytest.mark.parametrize(("kind", "params"), JOBS)
def test_a_job_waits_for_a_held_lock_only_so_long_and_says_who_holds_it(
    spark: SparkSession, base: Path, kind: str, params: dict[str, Any]
) -> None:
    # A cleaning that has nothing to delete takes no lock.
    table_type, updates = ("COPY_ON_WRITE", 2) if kind == "cleaning" else ("MERGE_ON_READ", 1)
    options = tables.write_table(spark, base, count=200, updates=updates, table_type=table_type, partitioned=False)
    before = tables.snapshot(spark, base)
    held = base / ".hoodie" / "lock"
    held.touch()  # A killed writer of Hudi leaves such a file.
    three_hours_ago = time.time() - 3 * 3600
    os.utime(held, (three_hours_ago, three_hours_ago))
    context = JobContext()
    shown: set[str] = set()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            shown.add(context.shown_step())

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.monotonic()
    try:
        with pytest.raises(TableLockedError, match="held for 3 h by a writer that Hudi's lock file does not name"):
            run_job(spark, base, kind, params, lock=TableLock(wait_seconds=4.0), context=context)
    finally:
        ended.set()
        watcher.join()
    assert time.monotonic() - began < 200
    waits = "waits for the table's lock, held for 3 h by a writer that Hudi's lock file does not name"
    assert any(step.endswith(waits) for step in shown), shown

    assert held.exists(), "it belongs to the other one"
    held.unlink()
    assert tables.snapshot(spark, base) == before
    run_job(spark, base, kind, params)
    after = tables.snapshot(spark, base)
    assert after == before
    tables.upsert(tables.rows(spark, 0, 10, ts=9), base, options)
    assert len(proved(spark, base, 8 if kind == "bucket_expansion" else 4)) == 200


@pytest.mark.exhaustive
def test_an_attempt_gives_its_slot_back_soon_unless_it_has_work_to_keep(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=10)
    table = hudi_table(spark, base, INDEX, lock=SHORT)
    held = base / ".hoodie" / "lock"
    held.touch()
    for worked in (0.0, 3.0):
        lock, context = Lock(table, "job_1"), JobContext()
        shown: set[str] = set()
        time.sleep(worked)

        def checkpoint(waits_for: str = "", *, shown: set[str] = shown, context: JobContext = context) -> None:
            shown.add(waits_for)
            context.checkpoint(waits_for)

        began = time.monotonic()
        with pytest.raises(TableLockedError), lock.held(checkpoint):
            pass
        waited = time.monotonic() - began
        says = [each for each in shown if "; it keeps the work of " in each]
        assert bool(says) is bool(worked), shown
        assert waited > max(1.0, worked)
    assert held.exists()
