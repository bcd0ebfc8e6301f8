"""Dry runs correctly report the table's lock, dead writers, pending plans, and that there is nothing to do. The lock
breaker breaks the lock that a writer of Hudi left, so that the waiting job continues."""

from __future__ import annotations

import os
import re
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock, for_at_most
from jobs.hudi.lock_provider import Provider
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.job_context import JobContext
from jobs.services.compaction import DUE
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db.engine import writing
from service.events.database import Database
from service.locks.errors import LockFreeError, WritersAliveError
from service.locks.lock_breaking import LockBreaker
from service.model.clock import utc_now
from service.observation.lake_access import LakeAccess
from tests.integration import tables
from tests.integration.control_plane.databases import open_sqlite
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import let_heartbeat_expire
from tests.support import zookeeper
from tests.support.contexts import no_examination

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.contract import Result

UNSIGNED = "a writer that Hudi's lock file does not name"


@pytest.fixture
def breaker(tmp_path: Path) -> Iterator[LockBreaker]:
    """The `LockBreaker` of a service with the table `trips`, whose id is `tbl_1`."""
    engine = open_sqlite(tmp_path / "gk.db")
    now = utc_now()
    with writing(engine) as connection:
        table_store.register(connection, Registration("tbl_1", str(tmp_path / "trips"), "trips", now, now))
    yield LockBreaker(Database(engine), LakeAccess(no_examination), timedelta(hours=1))
    engine.dispose()


def planned_details(spark: SparkSession, base: Path, kind: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    before = files(base)
    found = dict(run_job(spark, base, kind, params, dry_run=True).details)
    assert files(base) == before
    return found


def files(base: Path) -> set[Path]:
    return {path for path in base.rglob("*") if path.is_file()}


def age(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds, time.time() - seconds))


def test_a_dead_writer_and_its_lock_are_named_by_a_plan_and_the_job_goes_on_when_the_lock_is_broken(
    spark: SparkSession, base: Path, breaker: LockBreaker
) -> None:
    tables.write_table(spark, base, count=60, partitioned=False)
    idle = planned_details(spark, base, "compaction")
    assert (idle["nothing_to_do"], idle["lock"]["held"], idle["notes"]) == (True, False, [])

    table = hudi_table(spark, base, INDEX)
    client = WriteClient(table, UNDER_OUR_LOCK)._client
    instant = client.startCommit("deltacommit", table.meta)
    # Hudi's own provider takes the lock, and never releases it.
    Provider(table).take()
    lock = base / ".hoodie" / "lock"
    age(lock, 2 * 3600)
    with pytest.raises(WritersAliveError, match=instant):
        breaker.break_lock("tbl_1", reason="it looks old", by="me")
    client.getHeartbeatClient().stopHeartbeatTimers()
    let_heartbeat_expire(base, instant)

    plan = planned_details(spark, base, "cleaning", {"retain": 1})
    assert plan["beside"] == {"dead_writers": [instant], "writers": [], "plans": []}
    assert (plan["would_roll_back"], plan["nothing_to_do"], plan["refusals"]) == ([instant], False, [])
    assert plan["lock"] | {"held": True, "holder": f"held for 2 h by {UNSIGNED}"} == plan["lock"]
    assert plan["notes"] == [
        f"The table's lock is held for 2 h by {UNSIGNED}: the job would wait for it.",
        f"The job would roll back these instants of dead writers: {instant}.",
    ]

    context = JobContext()
    ended: list[Result] = []
    job = threading.Thread(
        target=lambda: ended.append(run_job(spark, base, "cleaning", {"retain": 1}, context=context))
    )
    job.start()
    deadline = time.monotonic() + 60
    while "waits for the table's lock" not in context.shown_step():
        assert job.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    broken = breaker.break_lock("tbl_1", reason="its machine is gone", by="me")
    assert broken.file.holder == UNSIGNED
    job.join(60)
    assert [done.details["rolled_back"] for done in ended] == [[instant]]
    assert not lock.exists()
    assert list(lock.parent.glob("lock.broken-*")) == []
    with pytest.raises(LockFreeError):
        breaker.break_lock("tbl_1", reason="again", by="me")


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_only_jobs_with_nothing_to_do_say_so_in_dry_and_real_runs(
    spark: SparkSession, base: Path, version: int
) -> None:
    options = tables.write_table(spark, base, count=100, version=version)
    jobs: list[tuple[str, dict[str, Any]]] = [
        ("compaction", {}),
        ("compaction", {"limit_file_groups": 1}),
        ("cleaning", {"retain": 1}),
        ("archival", {"retain": 5}),
        ("repair", {}),
    ]
    for kind, params in jobs:
        assert planned_details(spark, base, kind, params)["nothing_to_do"] is True, kind
        if kind != "repair":
            assert run_job(spark, base, kind, params).details["nothing_to_do"] is True, kind
    for ts in (1, 2):
        tables.upsert(tables.rows(spark, 0, 100, ts=ts), base, options)
    assert planned_details(spark, base, "compaction")["nothing_to_do"] is False
    assert planned_details(spark, base, "compaction", {"limit_file_groups": 1})["nothing_to_do"] is False
    assert planned_details(spark, base, "clustering", {"sort_by": ["city"]})["nothing_to_do"] is False
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK, DUE) as client:
        pending = client.schedule_compaction()
    refused = planned_details(spark, base, "clustering", {"sort_by": ["city"]})
    assert refused["beside"]["plans"] == [f"{pending} (compaction)"]
    [refusal] = refused["refusals"]
    assert refusal["type"] == "pending-plan"
    assert re.fullmatch(
        rf"{pending} \(compaction, requested, \d+ s old, probably made by a writer\)", refusal["detail"]
    )
    command = f"groundskeeper jobs run compaction test --param 'plans=[\"{pending}\"]'"
    assert refusal["hint"] == f"Execute it: `{command}`."
    assert planned_details(spark, base, "compaction")["nothing_to_do"] is False
    done = run_job(spark, base, "compaction").details
    assert done["nothing_to_do"] is False
    assert planned_details(spark, base, "compaction")["nothing_to_do"] is True
    # The files that the last commit replaced remain.
    assert planned_details(spark, base, "cleaning", {"retain": 1})["nothing_to_do"] is True
    tables.upsert(tables.rows(spark, 0, 100, ts=3), base, options)
    run_job(spark, base, "compaction")
    assert planned_details(spark, base, "cleaning", {"retain": 1})["nothing_to_do"] is False
    assert run_job(spark, base, "cleaning", {"retain": 1}).details["nothing_to_do"] is False
    assert len(proved(spark, base, 4)) == 100


@pytest.mark.exhaustive
def test_hudis_own_clustering_says_that_no_small_files_are_left(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=100, table_type="COPY_ON_WRITE", num_buckets=None)
    assert run_job(spark, base, "clustering", index=None, dry_run=True).details["nothing_to_do"] is True
    assert run_job(spark, base, "clustering", index=None).details["nothing_to_do"] is True


@pytest.mark.exhaustive
def test_a_lock_on_a_server_is_looked_at_without_being_taken(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=10)
    with zookeeper.running() as server:
        declared = server.lock("trips")
        free = run_job(spark, base, "compaction", dry_run=True, lock=declared).details["lock"]
        assert (free["reachable"], free["held"], free["holder"]) == (True, False, None)
        with TableLock(hudi_table(spark, base, INDEX, lock=declared), "other").held(for_at_most(30)):
            found = run_job(spark, base, "compaction", dry_run=True, lock=declared).details
            assert found["lock"]["held"] is True
            assert "by the ZooKeeper session 0x" in found["lock"]["holder"]
            assert "the job would wait for it" in found["notes"][0]
        again = run_job(spark, base, "compaction", dry_run=True, lock=declared).details["lock"]
        assert again["held"] is False
