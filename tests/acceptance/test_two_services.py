"""Two services with one worker each share a PostgreSQL database: no work is done twice, and the work of a killed
service is finished by the other one."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from service.db import schema
from service.db.engine import open_engine, reading
from service.events.event import EventType
from tests.acceptance.conftest import SETTINGS
from tests.acceptance.daemon import ENDED, PATIENCE_SECONDS, Daemon
from tests.acceptance.storage import completed_instants, left_behind
from tests.integration import tables
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.postgresql import Server

ROWS = 300
POLICY = {
    "compaction": {"commits": 2, "min_interval_seconds": 0},
    "cleaning": {"commits": 3, "retain": 1, "min_interval_seconds": 0},
}


@pytest.mark.exhaustive
def test_two_services_do_nothing_twice_and_one_finishes_what_the_other_leaves(
    spark: SparkSession, tmp_path: Path, postgresql: Server
) -> None:
    database = postgresql.new_database()
    names = ("orders", "trips")
    options = {name: tables.write_table(spark, tmp_path / name, count=ROWS, partitioned=False) for name in names}

    def write(batches: range) -> None:
        for batch in batches:
            for name in names:
                tables.upsert(tables.rows(spark, 0, ROWS, ts=batch), tmp_path / name, options[name])

    settings = {
        **SETTINGS,
        "database": database,
        "automatic": "true",
        "plan_seconds": "0.2",
        "poll_seconds": "1",
        "slots": "1",
        "max_attempts": "10",
    }
    first, second = (Daemon(tmp_path / name, **settings) for name in ("first", "second"))
    with first, second:
        ids = [each.register(tmp_path / name) for each, name in zip((first, second), names, strict=True)]
        assert first.call("PUT", "/v1/policies/*", POLICY).status_code == 201
        for each in (first, second):
            each.wait_for_worker()
        write(range(1, 5))
        _wait(second, lambda jobs: _all_done(jobs, ids, compaction=1, cleaning=1))
        workers = {job["worker_id"] for job in _jobs(second)}
        assert len(workers) == 2, "one of them had nothing to do"

        with ThreadPoolExecutor(1) as meanwhile:
            killed = meanwhile.submit(_kill_one_in_a_job, first, second)
            write(range(5, 9))
            left = killed.result()
        _wait(left, lambda jobs: _all_done(jobs, ids, compaction=2, cleaning=2))
        left.call("PUT", "/v1/pause", {})
        _wait(left, lambda jobs: all(job["state"] in ENDED for job in jobs))
        jobs = _jobs(left)
        assert {job["state"] for job in jobs} <= {"succeeded", "cancelled"}, jobs
        audits = [left.succeed(table, "audit") for table in ids]

    assert [audit["clean"] for audit in audits] == [True] * len(names)
    for name, table in zip(names, ids, strict=True):
        base = tmp_path / name
        assert spark.read.format("hudi").load(str(base)).where("ts = 8").count() == ROWS
        assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
        assert left_behind(spark, base) == []
        instants = [instant for job in jobs if job["table_id"] == table for instant in job["instants"]]
        assert len(set(instants)) == len(instants), "two jobs did the same"
        assert set(instants) & completed_instants(base), "nothing was done"
    _assert_each_once(database)


def _kill_one_in_a_job(*services: Daemon) -> Daemon:
    """Ends the first service whose worker has a job, and so its worker, by kill -9. Returns the other one."""
    workers = {service: f"-{service.worker()}-" for service in services}
    busy: list[Daemon] = []

    def has_busy(jobs: list[dict[str, Any]]) -> bool:
        held = [job["worker_id"] or "" for job in jobs if job["state"] not in ENDED]
        busy.extend(service for service, own in workers.items() if any(own in worker for worker in held))
        return bool(busy)

    _wait(services[0], has_busy)
    os.kill(busy[0].process.pid, signal.SIGKILL)
    return next(service for service in services if service is not busy[0])


def _jobs(daemon: Daemon) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.call("GET", "/v1/jobs", params={"limit": "200"}).json()["items"]
    return found


def _wait(daemon: Daemon, until: Callable[[list[dict[str, Any]]], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not until(jobs := _jobs(daemon)):
        assert time.monotonic() < deadline, f"{jobs}\n{daemon.log.read_text()[-8000:]}"
        time.sleep(0.1)


def _all_done(jobs: list[dict[str, Any]], tables: list[str], **wanted: int) -> bool:
    return all(
        sum((job["table_id"], job["kind"], job["state"]) == (table, kind, "succeeded") for job in jobs) >= number
        for table in tables
        for kind, number in wanted.items()
    )


def _assert_each_once(database: str) -> None:
    """Asserts by the database that no two attempts on a table were concurrent, and that each commit was published
    once."""
    engine = open_engine(database)
    with reading(engine) as connection:
        attempt, job = schema.job_attempts.c, schema.jobs.c
        query = sa.select(job.table_id, attempt.started_at, attempt.ended_at).join(schema.job_attempts)
        spans = sorted(tuple(row) for row in connection.execute(query.where(job.mutating)))
        event = schema.events.c
        told = connection.execute(
            sa.select(event.table_id, event.data).where(event.type == EventType.COMMIT_PUBLISHED.value)
        )
        commits = [(row.table_id, row.data["commit"]["instant"], row.data["commit"]["action"]) for row in told]
    engine.dispose()
    for (table, _, ended), (other, started, _) in pairwise(spans):
        assert table != other or ended <= started
    assert len(set(commits)) == len(commits)
    # The writer's batches, and what the services did.
    assert len(commits) > 8 * 2
