"""Workers are recycled regularly, and no job is lost by this."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.conftest import SETTINGS
from tests.acceptance.daemon import Daemon
from tests.integration import tables

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.exhaustive
def test_a_worker_ends_after_its_jobs_and_the_next_one_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    tables.write_table(spark, tmp_path / "trips", count=60, partitioned=False)
    settings = {**SETTINGS, "slots": "1", "recycle_jobs": "2"}
    with Daemon(tmp_path / "service", allowed_roots=str(tmp_path), **settings) as daemon:
        table = daemon.register(tmp_path / "trips")
        jobs = [daemon.run(table, "audit") for _ in range(3)]

        assert [(job["state"], job["attempt"]) for job in jobs] == [("succeeded", 1)] * 3
        first, second, third = [job["worker_id"] for job in jobs]
        assert first == second != third
        log = daemon.log.read_text()
        assert "has reached the end of its lifetime" in log
        assert "ended by itself; starting a new one" in log
        assert "ended with code" not in log
