"""Measures how long a job waits for a warm worker."""

from __future__ import annotations

import statistics
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from tests.integration import tables

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.acceptance.daemon import Daemon

JOBS = 20


@pytest.mark.exhaustive
def test_a_job_starts_in_under_a_second_on_a_warm_worker(
    daemon: Daemon, spark: SparkSession, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = lake / "tiny"
    tables.write_table(spark, base, count=20, partitioned=False)
    table = daemon.register(base)
    daemon.succeed(table, "audit")
    waits = []
    for number in range(JOBS):
        job = daemon.run(table, "audit" if number % 2 else "cleaning", dry_run=not number % 2)
        assert job["state"] == "succeeded"
        asked, started = (datetime.fromisoformat(job[key]) for key in ("created_at", "started_at"))
        waits.append((started - asked).total_seconds())
    p50, p99 = statistics.median(waits), max(waits)
    with capsys.disabled():
        print(f"\njob start on a warm worker, POST to running: p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms")
    assert p99 < 1.0
