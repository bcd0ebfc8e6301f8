"""A job that is cancelled leaves nothing behind: no instant, no file, no lock."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.daemon import has_reached
from tests.acceptance.storage import left_behind, listing
from tests.integration import tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.acceptance.daemon import Daemon


@contextmanager
def _a_write_in_flight(base: Path) -> Iterator[None]:
    """Holds a write, for whose end an expansion waits."""
    instant = f"{datetime.now(UTC):%Y%m%d%H%M%S%f}"[:17]
    entries = [base / ".hoodie" / "timeline" / f"{instant}.deltacommit.{state}" for state in ("requested", "inflight")]
    for entry in entries:
        entry.touch()
    yield
    for entry in entries:
        entry.unlink()


@pytest.mark.exhaustive
@pytest.mark.parametrize("step", ["rewriting", "waiting"])
def test_a_cancelled_expansion_leaves_nothing_behind(
    daemon: Daemon, spark: SparkSession, lake: Path, step: str
) -> None:
    base = lake / f"cancelled-{step}"
    options = tables.write_table(spark, base, count=300, partitioned=False)
    before = tables.snapshot(spark, base)
    # The test checks so often that it would see a heartbeat after the job's end.
    table = daemon.register(base, hudi_options={"hoodie.client.heartbeat.interval_in_ms": "1000"})
    files = {name for name in listing(base) if ".hoodie" not in name}

    with _a_write_in_flight(base):
        expansion = daemon.submit(table, "bucket_expansion", factor=2, settle_seconds=1)
        # A cleaning writes as well, so it has to wait for the expansion.
        cleaning = daemon.submit(table, "cleaning")
        daemon.wait(expansion, lambda job: has_reached(job, step))
        queued = daemon.call("POST", f"/v1/jobs/{cleaning}/cancel")
        asked = daemon.call("POST", f"/v1/jobs/{expansion}/cancel")

        assert (queued.status_code, queued.json()["state"]) == (202, "cancelled")
        assert asked.status_code == 202
        job = daemon.wait(expansion)
        assert job["state"] == "cancelled", f"{job}\n{daemon.log.read_text()[-6000:]}"
    assert daemon.job(cleaning)["attempt"] == 0
    assert left_behind(spark, base) == []
    assert {name for name in listing(base) if ".hoodie" not in name} == files
    assert tables.snapshot(spark, base) == before
    tables.upsert(tables.rows(spark, 200, 400, ts=9), base, options)
    assert daemon.succeed(table, "bucket_expansion", factor=2, settle_seconds=1)["buckets"] == [4, 8]
    tables.in_order(spark, base, 8)
    assert left_behind(spark, base) == []
    again = daemon.call("POST", f"/v1/jobs/{expansion}/cancel")
    assert again.json()["state"] == "cancelled"
