"""Tests the files that Flink leaves on a table, and the jobs that are refused then; `tests/flink` has a real Flink."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import pytest

from jobs.contract import WriterEngine
from jobs.errors import RefusedError, WritersActiveError
from jobs.hudi import flink_lock
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.lock_errors import LockLostError, TableLockedError
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import At, let_heartbeat_expire

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.job_context import JobContext

FLINK = {"writers_engines": (WriterEngine.FLINK,)}
KINDS = (("bucket_expansion", {"factor": 2}), ("clustering", {"sort_by": ["city"]}))


def flink_has_started(base: Path) -> None:
    """Writes what Hudi's Flink writer does when its job starts."""
    folder = base / ".hoodie" / ".aux"
    folder.mkdir(exist_ok=True)
    (folder / "view_storage_conf").write_text("hoodie.filesystem.view.remote.port=4711\n")


def test_file_groups_are_not_replaced_where_a_flink_job_may_run(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=60, partitioned=False)
    flink_has_started(base)
    for kind, params in KINDS:
        with pytest.raises(RefusedError, match="view_storage_conf") as caught:
            run_job(spark, base, kind, params)
        assert caught.value.problem().type == "flink-may-be-running"
        plan = run_job(spark, base, kind, params, dry_run=True).details
        assert [problem["type"] for problem in plan["refusals"]] == ["flink-may-be-running"]
    run_job(spark, base, "compaction")
    run_job(spark, base, "cleaning", {"retain": 1})

    run_job(spark, base, "bucket_expansion", {"factor": 2}, writers_stopped=True)
    proved(spark, base, 8)


def test_an_instant_that_flink_left_is_never_rolled_back(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=60, partitioned=False)
    flink_has_started(base)
    table = hudi_table(spark, base, INDEX)
    client = WriteClient(table, UNDER_OUR_LOCK)._client
    instant = client.startCommit("deltacommit", table.meta)
    client.getHeartbeatClient().stopHeartbeatTimers()
    let_heartbeat_expire(base, instant)

    with pytest.raises(WritersActiveError, match=instant):
        run_job(spark, base, "bucket_expansion", {"factor": 2, "wait_seconds": 1}, writers_stopped=True)
    run_job(spark, base, "cleaning", {"retain": 1})

    # The restarted job would commit this instant.
    assert hudi_table(spark, base, INDEX).state_of(instant) == "REQUESTED"


@pytest.mark.parametrize("leaves", ["checkpoint", "empty inflight"])
def test_nothing_is_replaced_once_flink_has_committed_beside_the_job(
    spark: SparkSession, base: Path, leaves: str
) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False)
    marked = {"hoodie.datasource.write.commitmeta.key.prefix": "flink_", "flink_checkpoint_id": "7"}

    def writes() -> None:
        more = marked if leaves == "checkpoint" else {}
        tables.upsert(tables.rows(spark, 0, 60, ts=1, partitions=1), base, {**options, **more})
        if leaves == "empty inflight":
            newest = max((base / ".hoodie" / "timeline").glob("*.deltacommit.inflight"))
            newest.write_bytes(b"")

    with pytest.raises(RefusedError, match="committed by Flink") as caught:
        expand(spark, base, At("rewriting", writes))
    assert (caught.value.problem().type, caught.value.problem().retriable) == ("flink-may-be-running", True)
    assert [item.action for item in hudi_table(spark, base, INDEX).pending()] == []
    tables.in_order(spark, base, 4)

    expand(spark, base)
    assert {row["ts"] for row in tables.collected(spark, base).rows} == {1}
    proved(spark, base, 8)


def expand(spark: SparkSession, base: Path, context: JobContext | None = None) -> None:
    run_job(spark, base, "bucket_expansion", {"factor": 2}, writers_stopped=True, context=context)


def test_jobs_hold_the_lock_of_a_flink_job_whose_options_name_none(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=200, updates=1, partitioned=False)
    table = hudi_table(spark, base, INDEX, **FLINK)
    file = base / ".hoodie" / ".aux" / "lock"
    hudi = table.jvm.hudi
    provider = hudi.client.transaction.lock.FileSystemBasedLockProvider
    config = hudi.common.config.LockConfiguration(provider.getLockConfig(str(base)))
    flink = provider(config, table.jvm.storage_conf())
    at_once = (0, table.jvm.java.java.util.concurrent.TimeUnit.MILLISECONDS)
    assert flink.tryLock(*at_once)
    assert file.exists()
    ended: list[float] = []

    def waits(waits_for: str = "") -> None:
        if (base / ".hoodie" / "lock").exists() and not ended:
            ended.append(file.stat().st_mtime)
            flink.unlock()

    lock = TableLock(table, "job_1")
    with lock.held(waits):
        assert ended
        assert not flink.tryLock(*at_once)
        lock.verify()
        # Flink removes a file that has expired while a worker was suspended.
        content = file.read_text()
        file.unlink()
        with pytest.raises(LockLostError):
            lock.verify()
        file.write_text(content)
    assert not file.exists()
    assert not (base / ".hoodie" / "lock").exists()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(flink_lock, "KEPT_EVERY_SECONDS", 0.1)
        with lock.held(waits):
            os.utime(file, (0, 0))
            time.sleep(1)
            assert file.stat().st_mtime > 0

    # A lock file is removed if a dead worker of this service has left it, or if it is older than ten minutes.
    file.write_text(json.dumps({"owner": "groundskeeper job_2", "token": "other"}))
    run_job(spark, base, "compaction", declared=FLINK)
    assert not file.exists()
    file.touch()
    an_hour_ago = time.time() - 3600
    os.utime(file, (an_hour_ago, an_hour_ago))
    with TableLock(table, "job_1").held(waits):
        assert "job_1" in file.read_text()
    assert not file.exists()

    # A file that is two minutes old stays: its Flink job may be suspended during a commit, and go on with it later.
    file.touch()
    os.utime(file, (time.time() - 120, time.time() - 120))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(flink_lock, "WAIT_SECONDS", 0.0)
        with pytest.raises(TableLockedError, match="Flink takes by default"):
            run_job(spark, base, "bucket_expansion", {"factor": 2}, writers_stopped=True, declared=FLINK)
    assert file.exists()
    assert not (base / ".hoodie" / "lock").exists()
