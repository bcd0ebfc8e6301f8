"""Hudi's own cleaning and clustering lock the table in our name during their work."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any, Self

import pytest

from jobs.errors import CancelledError
from jobs.hudi.lock import TableLock
from jobs.job_context import JobContext
from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.integration.writers import Cancelled

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

JOBS = [
    pytest.param(
        "cleaning", {"policy": "KEEP_LATEST_FILE_VERSIONS", "retain": 2}, id="cleaning", marks=pytest.mark.exhaustive
    ),
    pytest.param("clustering", {"sort_by": ["city"]}, id="clustering"),
]


class WatchedLock:
    """Reads the lock file continuously, and records its owners and the longest time without an owner's name."""

    def __init__(self, base: Path) -> None:
        self.owners: set[str] = set()
        self.longest_unsigned = 0.0
        self._path = base / ".hoodie" / "lock"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        unsigned_since: float | None = None
        while not self._ended.wait(0.001):
            try:
                text = self._path.read_text()
            except FileNotFoundError:
                unsigned_since = None
                continue
            if text:
                self.owners.add(json.loads(text)["owner"])
                unsigned_since = None
            else:
                unsigned_since = unsigned_since or time.monotonic()
                self.longest_unsigned = max(self.longest_unsigned, time.monotonic() - unsigned_since)


def _table(spark: SparkSession, base: Path) -> dict[str, str]:
    return tables.write_table(spark, base, count=100, updates=3, num_buckets=None, table_type="COPY_ON_WRITE")


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "params"), JOBS)
def test_the_lock_that_hudi_takes_by_itself_carries_the_jobs_name(
    spark: SparkSession, base: Path, kind: str, params: dict[str, Any]
) -> None:
    options = _table(spark, base)
    before = tables.snapshot(spark, base)

    with WatchedLock(base) as lock:
        result = run_job(spark, base, kind, params, index=None, job_id="job_7")

    assert len(result.instants) == 1
    assert lock.owners == {"groundskeeper job_7"}
    # The lock is signed immediately after it is taken; Hudi itself held it for more than a second.
    assert lock.longest_unsigned < 0.3
    assert tables.left_behind(base) == []
    assert tables.snapshot(spark, base) == before
    tables.upsert(tables.rows(spark, 0, 200, ts=9), base, options)
    assert tables.duplicates(spark, base) == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "params"), JOBS)
def test_a_job_that_waits_for_a_writers_lock_can_be_cancelled_and_leaves_the_lock_alone(
    spark: SparkSession, base: Path, kind: str, params: dict[str, Any]
) -> None:
    _table(spark, base)
    before = tables.snapshot(spark, base)
    writers_lock = TableLock(hudi_table(spark, base, None), "a writer")

    with writers_lock.held(JobContext().checkpoint):
        started = time.monotonic()
        with pytest.raises(CancelledError):
            run_job(spark, base, kind, params, index=None, context=Cancelled(after=2))
        assert time.monotonic() - started < 30
        writers_lock.verify()

    result = run_job(spark, base, kind, params, index=None)
    assert len(result.instants) == 1
    assert tables.left_behind(base) == []
    assert tables.snapshot(spark, base) == before
