"""After a `kill -9` of the service its worker ends, too, and the next service on the database finishes the job."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.conftest import SETTINGS
from tests.acceptance.daemon import Daemon, has_reached
from tests.acceptance.storage import left_behind
from tests.integration import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.exhaustive
def test_a_job_survives_the_death_of_the_service_and_its_worker_does_not(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "lake" / "orders"
    options = tables.write_table(spark, base, count=300, updates=1, partitioned=False)
    before = tables.snapshot(spark, base)
    with Daemon(tmp_path / "service", **SETTINGS) as first:
        table = first.register(base)
        expansion = first.submit(table, "bucket_expansion", factor=2, settle_seconds=1)
        seen = first.wait(expansion, lambda job: has_reached(job, "rewriting"))
        assert seen["state"] == "running"
        processes = [pid for pid in (first.worker(), first.jvm()) if pid]
        assert len(processes) == 2
        os.kill(first.process.pid, signal.SIGKILL)
        killed = time.monotonic()
        while any(_is_alive(pid) for pid in processes):
            assert time.monotonic() < killed + 10
            time.sleep(0.05)
    with Daemon(tmp_path / "service", **SETTINGS) as second:
        job = second.wait(expansion)
        assert (job["state"], job["attempt"]) == ("succeeded", 2), f"{job}\n{second.log.read_text()[-6000:]}"
        assert tables.snapshot(spark, base) == before
        assert left_behind(spark, base) == []
        tables.upsert(tables.rows(spark, 200, 400, ts=9), base, options)
        assert tables.misplaced(spark, base, 8) == 0
        assert second.succeed(table, "audit")["clean"] is True


def _is_alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
