"""Tests the set-up of Hudi's FAQ: the writers' inline services are off, and policies compact and clean."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.conftest import NO_POLLING, SETTINGS
from tests.acceptance.daemon import ENDED, PATIENCE_SECONDS, Daemon
from tests.acceptance.storage import left_behind, pending
from tests.integration import tables
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.serving import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

PLANS_BY_THE_WRITER = {"hoodie.compact.schedule.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}


def policy(batches: int) -> dict[str, Any]:
    """Returns a policy that compacts after this number of batches, and cleans after twice as many."""
    return {
        "paused": False,
        "compaction": {"commits": batches, "min_interval_seconds": 0},
        "cleaning": {"commits": 2 * batches, "retain": 1, "min_interval_seconds": 0},
    }


class Writer:
    """Writes batches with the options that the service hands out for a writer of this table."""

    def __init__(self, spark: SparkSession, daemon: Daemon, base: Path, table_id: str, **more: str) -> None:
        handed = daemon.call("GET", f"/v1/tables/{table_id}/writer-options").json()["options"]
        self._options = {**tables.writer_options(base, partitioned=False), **handed, **more}
        self._spark = spark
        self._base = base
        self._batch = 0

    def write(self, batches: int) -> None:
        for _ in range(batches):
            self._batch += 1
            rows = tables.rows(self._spark, 0, rows_of(self._batch), ts=self._batch)
            tables.upsert(rows, self._base, self._options)


def rows_of(batch: int) -> int:
    return 600 + 50 * batch


def started_by_policy(daemon: Daemon, table_id: str, kind: str, number: int = 1) -> dict[str, Any]:
    """Waits for the end of the policies' job of this kind with this number, and returns it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        jobs = daemon.call("GET", "/v1/jobs", params={"table_id": table_id, "kind": kind}).json()["items"]
        found = sorted((job for job in jobs if job["requested_by"] == "policy"), key=lambda job: job["created_at"])
        if len(found) >= number and found[number - 1]["state"] in ENDED:
            job: dict[str, Any] = found[number - 1]
            assert job["state"] == "succeeded", job
            return job
        if time.monotonic() > deadline:
            decisions = daemon.call("GET", f"/v1/tables/{table_id}/decisions").text
            pytest.fail(f"{jobs}\n{decisions}\n{daemon.log.read_text()[-8000:]}")
        time.sleep(0.1)


def upserts(daemon: Daemon, table_id: str) -> list[dict[str, Any]]:
    """Returns the commits of batches, the latest first."""
    found = daemon.call("GET", "/v1/commits", params={"table_id": table_id}).json()["items"]
    return [commit for commit in found if commit["is_news"] and commit["operation"] == "UPSERT"]


@contextmanager
def _serving(request: pytest.FixtureRequest, folder: Path, poll_seconds: str) -> Iterator[Daemon]:
    """Yields the shared service, or a separate one that polls."""
    if poll_seconds == NO_POLLING:
        yield request.getfixturevalue("daemon")
    else:
        settings = {**SETTINGS, "automatic": "true", "plan_seconds": "0.2", "poll_seconds": poll_seconds}
        with Daemon(folder / "service", **settings) as daemon:
            yield daemon


@pytest.mark.parametrize(
    ("poll_seconds", "batches", "options", "reason"),
    [
        pytest.param(NO_POLLING, 2, {}, "2 commits and no compaction yet, threshold 2", id="by callbacks"),
        pytest.param(
            "1",
            3,
            {"hoodie.write.commit.callback.on": "false"},
            "3 commits and no compaction yet, threshold 3",
            id="by polling",
            marks=pytest.mark.exhaustive,
        ),
        # The writer's last plan may follow its last callback, and then only a poll finds the plan.
        pytest.param(
            "1", 3, PLANS_BY_THE_WRITER, "plan", id="of plans that the writer leaves", marks=pytest.mark.exhaustive
        ),
    ],
)
def test_policies_run_all_services_that_a_table_needs_and_no_batch_fails(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    lake: Path,
    tmp_path: Path,
    poll_seconds: str,
    batches: int,
    options: dict[str, str],
    reason: str,
) -> None:
    base, rows = lake / tmp_path.name, rows_of(2 * batches)
    tables.write_table(spark, base, partitioned=False)
    with _serving(request, tmp_path, poll_seconds) as daemon:
        table = daemon.register(base, writers={"hudi_version": "1.2.0", "retry_conflicts": True})
        assert daemon.call("PUT", f"/v1/tables/{table}/policy", policy(batches)).status_code == 200
        daemon.wait_for_worker()
        writer = Writer(spark, daemon, base, table, **options)

        writer.write(batches)
        compaction = started_by_policy(daemon, table, "compaction")
        assert reason in compaction["reason"]
        assert compaction["result"]["log_files"] > 0
        writer.write(batches)
        cleaning = started_by_policy(daemon, table, "cleaning")
        assert cleaning["result"]["files_deleted"] > 0
        started_by_policy(daemon, table, "compaction", 2)
        # A planning writer may have left one more plan, which is executed later. If a batch conflicts with a
        # compaction, its writer repeats it, and the instant of the first try stays until a cleaning.
        if not eventually(lambda: pending(base) == set(), 20):
            daemon.succeed(table, "cleaning", retain=1)
        assert eventually(lambda: pending(base) == set(), PATIENCE_SECONDS), daemon.log.read_text()[-8000:]

        # A callback reports the last one at once; without it the next poll finds it.
        assert eventually(lambda: len(upserts(daemon, table)) == 2 * batches, PATIENCE_SECONDS), upserts(daemon, table)
        assert upserts(daemon, table)[0]["rows_written"] == rows
        audit = daemon.succeed(table, "audit")
    assert (audit["clean"], audit["rows"]) == (True, rows)
    assert spark.read.format("hudi").load(str(base)).where(f"ts = {2 * batches}").count() == rows
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    assert left_behind(spark, base) == []
