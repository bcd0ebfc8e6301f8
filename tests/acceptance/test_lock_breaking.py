"""Tests with a real worker: a lock that Hudi left can be broken, and a lock that our worker holds cannot."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from jobs.hudi.lock_provider import Provider
from tests.acceptance.daemon import ENDED
from tests.integration import tables
from tests.integration.run import hudi_table
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.acceptance.daemon import Daemon, Json

REASON = {"reason": "its machine is gone"}


def waits_for_lock(job: Json) -> bool:
    return job["state"] in ENDED or "lock" in (job["waits_for"] or "")


def age(path: Path) -> None:
    os.utime(path, (time.time() - 2 * 3600, time.time() - 2 * 3600))


@pytest.mark.exhaustive
def test_a_job_that_waits_for_the_lock_of_a_dead_writer_goes_on_when_it_is_broken(
    daemon: Daemon, spark: SparkSession, lake: Path
) -> None:
    base = lake / "locked"
    tables.write_table(spark, base, count=100, updates=1, copied=False)
    Provider(hudi_table(spark, base, INDEX)).take()
    lock = base / ".hoodie" / "lock"
    age(lock)
    table = daemon.register(base)
    plan = daemon.wait(daemon.submit(table, "compaction", dry_run=True))
    assert (plan["verdict"], plan["result"]["lock"]["held"]) == ("ready", True)
    assert plan["result"]["notes"][0].startswith(
        "The table's lock is held for 2 h by a writer that Hudi's lock file does not name"
    )

    job = daemon.submit(table, "compaction")
    assert daemon.wait(job, waits_for_lock)["state"] == "queued"
    shown = daemon.call("GET", f"/v1/tables/{table}/lock").json()
    assert (shown["is_breakable"], [each["waits"] for each in shown["jobs"]]) == (True, [True])
    broken = daemon.call("DELETE", f"/v1/tables/{table}/lock", params={**REASON, "lock_id": shown["id"]})
    assert (broken.status_code, broken.json()["waiting_jobs"]) == (200, [job])
    assert daemon.wait(job)["state"] == "succeeded"
    assert not lock.exists()
    again = daemon.wait(daemon.submit(table, "compaction", dry_run=True))
    assert (again["state"], again["verdict"]) == ("succeeded", "nothing_to_do")


@pytest.mark.exhaustive
def test_the_lock_of_our_own_worker_is_not_broken_however_old_it_looks(
    daemon: Daemon, spark: SparkSession, lake: Path
) -> None:
    base = lake / "ours"
    tables.write_table(spark, base, count=300, updates=1, copied=False)
    table, lock = daemon.register(base), base / ".hoodie" / "lock"
    daemon.wait_for_worker()
    jvm = daemon.jvm()
    assert jvm is not None
    job = daemon.submit(table, "bucket_expansion", factor=2, settle_seconds=1)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if lock.exists() and b"groundskeeper job_" in lock.read_bytes():
            os.kill(jvm, signal.SIGSTOP)
            break
    try:
        assert lock.exists(), "it was released a moment ago"
        age(lock)
        answer = daemon.call("DELETE", f"/v1/tables/{table}/lock", params=REASON)
        assert (answer.status_code, answer.json()["type"], answer.json()["job_id"]) == (
            409,
            "/problems/lock-held-by-job",
            job,
        )
        [shown] = daemon.call("GET", f"/v1/tables/{table}/lock").json()["jobs"]
        assert (shown["id"], shown["holds"]) == (job, True)
    finally:
        os.kill(jvm, signal.SIGCONT)
    assert daemon.wait(job)["state"] == "succeeded"
    assert not lock.exists()
