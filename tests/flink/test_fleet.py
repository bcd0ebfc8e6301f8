"""Runs all real components of a fleet together, and kills some of them.

The fleet has PostgreSQL, two services, a Spark cluster of two workers, a table on S3 that Spark writes with a lock in
ZooKeeper, a table on HDFS that Flink writes, and webhooks. Policies and calls start each kind of job.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import threading
import time
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from jobs.hudi.hadoop import close_file_system
from jobs.hudi.jvm import Jvm
from service.lake.active_timeline import read_active_timeline
from tests.acceptance.daemon import ENDED, Daemon
from tests.flink.check import differences
from tests.flink.job import FlinkJob
from tests.flink.test_flink_writer import BESIDE_OTHERS
from tests.integration import tables
from tests.integration.cluster_worker import ClusterWorker
from tests.integration.receiver import Receiver
from tests.support import hdfs, s3, zookeeper
from tests.support.session_storage import reached_by
from tests.support.spark_cluster import CONF, Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.cluster import FlinkCluster
    from tests.support.postgresql import Server

PATIENCE_SECONDS = 420.0
ROWS = 300
POLICY = {
    "compaction": {"commits": 4, "min_interval_seconds": 0},
    "cleaning": {"commits": 8, "retain": 4, "min_interval_seconds": 0},
}
SETTINGS = {
    "automatic": "true",
    "lease_seconds": "5",
    "max_attempts": "10",
    "plan_seconds": "0.5",
    "poll_seconds": "1",
    "recover_seconds": "0.5",
    "retry_first_seconds": "0.2",
    "secret_keys": base64.urlsafe_b64encode(bytes(range(32))).decode(),
    "webhook_allowed_hosts": "127.0.0.1",
    "workers": "0",
}
# The test looks announced commits up on this timeline, so none may be archived meanwhile.
KEEPS_TIMELINE = {"hoodie.archive.automatic": "false"}
# The writer follows the guide for writers, so an expansion may commit during a write.
RETRIES = {"hoodie.write.num.retries.on.conflict.failures": "5"}
# A writer in one JVM runs out of connections to S3 otherwise, which Hudi does not give back (guide for storage).
BATCHES_OF_A_FILE_SYSTEM = 5
Job = dict[str, Any]


class SparkWriter:
    """Writes all keys again and again until `end`, with a higher `ts` each time."""

    def __init__(self, spark: SparkSession, base: str, options: dict[str, str]) -> None:
        self._spark, self._base, self._options = spark, base, options
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error: BaseException | None = None
        self.last = 0
        self._write()

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Writes once more, so that the last write follows all jobs, and ends."""
        self._ended.set()
        self._thread.join()
        assert self.error is None, self.error
        self._write()

    def _run(self) -> None:
        try:
            while not self._ended.wait(1.0):
                self._write()
        except BaseException as error:  # `end` raises this error.
            self.error = error

    def _write(self) -> None:
        tables.upsert(tables.rows(self._spark, 0, ROWS, ts=self.last + 1), self._base, self._options)
        self.last += 1
        if self.last % BATCHES_OF_A_FILE_SYSTEM == 0:
            close_file_system(Jvm(self._spark), self._base)


@pytest.fixture
def stores(spark: SparkSession) -> Iterator[tuple[s3.Server, hdfs.Cluster]]:
    """Starts the storages, and sets the options of the session as in a writer."""
    with (
        s3.running() as bucket,
        hdfs.running() as files,
        reached_by(spark, {**bucket.options, **files.options}, "s3a://lake"),
    ):
        yield bucket, files


@pytest.mark.exhaustive
@pytest.mark.timeout(2400)
def test_parts_of_a_fleet_are_killed_and_no_row_and_no_event_is_lost(
    spark: SparkSession,
    postgresql: Server,
    flink: FlinkCluster,
    stores: tuple[s3.Server, hdfs.Cluster],
    tmp_path: Path,
) -> None:
    bucket, files = stores
    options = {**bucket.options, **files.options}
    trips, numbers = "s3a://lake/trips", f"{files.uri}/lake/numbers"
    settings = {
        **SETTINGS,
        "allowed_roots": f"s3a://lake,{files.uri}/lake",
        "database": postgresql.new_database(),
        "flink_hosts": urlsplit(flink.url).netloc,
        "storage_options": json.dumps(options),
    }
    of_worker = {
        "GROUNDSKEEPER_ALLOWED_ROOTS": settings["allowed_roots"],
        "GROUNDSKEEPER_PACKAGES": "s3a",
        "GROUNDSKEEPER_STORAGE_OPTIONS": settings["storage_options"],
    }
    conf = {**CONF, "spark.cores.max": "1"}
    receiver = Receiver()
    with zookeeper.running() as locks, Cluster(tmp_path / "cluster") as cluster:
        trips_options = tables.writer_options(
            trips, num_buckets=2, partitioned=False, **locks.writer_options("trips"), **KEEPS_TIMELINE, **RETRIES
        )
        spark_writer = SparkWriter(spark, trips, trips_options)
        # The filesystem's lock: Hudi's bundle for Flink lacks Curator, which its ZooKeeper provider needs.
        flink_options = {**BESIDE_OTHERS, **KEEPS_TIMELINE}
        job = FlinkJob(
            numbers, last=12_000, keys=600, late=450, rate=20, buckets=2, name="numbers", options=flink_options
        )
        running = flink.start(job)
        flink.wait_for_checkpoints(running, 2)

        first, second = (Daemon(tmp_path / name, **settings) for name in ("first", "second"))

        def worker(name: str) -> ClusterWorker:
            more = ("--slots", "1", "--service", second.url)
            return ClusterWorker(first, tmp_path / name, cluster.url, *more, conf=conf, environment=of_worker)

        with first, second, worker("a") as doomed, worker("b"):
            assert first.call("POST", "/v1/webhooks", {"url": receiver.url}).status_code == 201
            assert first.call("PUT", "/v1/policies/*", POLICY).status_code == 201
            lock = locks.lock("trips")
            ids = {
                trips: first.register(
                    trips,
                    2,
                    lock={"provider": lock.provider, "options": dict(lock.options)},
                    writers={"hudi_version": "1.2.0", "engines": ["spark"], "retry_conflicts": True},
                ),
                numbers: first.register(
                    numbers,
                    2,
                    writers={
                        "hudi_version": "1.2.0",
                        "engines": ["flink"],
                        "flink": {
                            "rest_url": flink.url,
                            "job": "numbers",
                            "savepoint_folder": (tmp_path / "saved").as_uri(),
                        },
                    },
                ),
            }
            # Commits from before the registration are not announced. Instants are local times.
            registered = f"{datetime.now():%Y%m%d%H%M%S%f}"[:17]
            spark_writer.start()
            for table in ids.values():
                _wait(second, lambda jobs, table=table: _done(jobs, table, "compaction"))

            # Kills a worker as soon as it has a job, and the service to which it reported.
            _wait(second, lambda jobs: any(_is_held(each) and _is_run_by(each, doomed) for each in jobs))
            doomed.kill()
            os.kill(first.process.pid, signal.SIGKILL)
            with worker("c"):
                expansion = _submitted(second, ids[trips], "bucket_expansion", num_buckets=4)
                _wait(second, lambda _: _has_tasks(second.job(expansion)))
                os.kill(cluster.executors()[0], signal.SIGKILL)
                done = _finished(second, expansion)
                assert done["state"] == "succeeded", done
                clustering = _finished(second, _submitted(second, ids[trips], "clustering", sort_by=["city"]))
                assert clustering["state"] == "succeeded", clustering

                # The service stops Flink, and the operator starts it again.
                stopping = _finished(second, _submitted(second, ids[numbers], "bucket_expansion", num_buckets=4))
                assert stopping["state"] == "succeeded", stopping
                savepoint = stopping["hand_over"]["savepoint"]
                resumed = flink.start(replace(job, rate=2000), savepoint=savepoint)
                flink.wait(resumed, "FINISHED", seconds=PATIENCE_SECONDS)
                for table in ids.values():
                    _wait(second, lambda jobs, table=table: _done(jobs, table, "cleaning"))
                spark_writer.end()

                second.call("PUT", "/v1/pause", {})
                jobs = _wait(second, lambda jobs: all(each["state"] in ENDED for each in jobs))
                assert {each["state"] for each in jobs} <= {"succeeded", "cancelled"}, jobs
                audits = [_finished(second, second.submit(table, "audit")) for table in ids.values()]
                completed = {(ids[base], instant) for base in ids for instant in _completed(base, options)}
                wanted = {each for each in completed if each[1] > registered}
                _eventually(lambda: wanted <= _announced(receiver), f"{wanted - _announced(receiver)}")
    receiver.close()

    assert [each["result"]["clean"] for each in audits] == [True, True], audits
    for base in ids:
        assert not read_active_timeline(base, options).pending
    found = tables.in_order(spark, trips, 4)
    assert len(found) == ROWS
    assert spark.read.format("hudi").load(trips).where(f"ts = {spark_writer.last}").count() == ROWS
    wrong = differences(spark, numbers, job.expected(), num_buckets=4)
    assert wrong.none, wrong
    print(f"{len(wanted)} commits, each announced; {spark_writer.last} batches of Spark; {len(jobs)} jobs")


def _jobs(daemon: Daemon) -> list[Job]:
    found: list[Job] = daemon.call("GET", "/v1/jobs", params={"limit": "200"}).json()["items"]
    return found


def _wait(daemon: Daemon, until: Callable[[list[Job]], bool]) -> list[Job]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not until(jobs := _jobs(daemon)):
        assert time.monotonic() < deadline, f"{jobs[:6]}\n{daemon.log.read_text()[-4000:]}"
        time.sleep(0.1)
    return jobs


def _submitted(daemon: Daemon, table_id: str, kind: str, **params: Any) -> str:
    """Submits the job, again and again while a job of the policy is active and the service refuses another one."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        answer = daemon.call("POST", f"/v1/tables/{table_id}/jobs", {"kind": kind, "params": params})
        if answer.status_code != 409:
            assert answer.status_code == 202, answer.text
            return str(answer.json()["id"])
        assert time.monotonic() < deadline, answer.text
        time.sleep(0.2)


def _finished(daemon: Daemon, job_id: str) -> Job:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (job := daemon.job(job_id))["state"] not in ENDED:
        assert time.monotonic() < deadline, f"{job}\n{daemon.log.read_text()[-4000:]}"
        time.sleep(0.1)
    return job


def _done(jobs: list[Job], table: str, kind: str) -> bool:
    return any((each["table_id"], each["kind"], each["state"]) == (table, kind, "succeeded") for each in jobs)


def _is_held(job: Job) -> bool:
    return job["state"] in ("leased", "running")


def _is_run_by(job: Job, worker: ClusterWorker) -> bool:
    return f"-{worker.process.pid}-" in (job["worker_id"] or "")


def _has_tasks(job: Job) -> bool:
    return job["state"] in ENDED or bool((job["progress"] or {}).get("tasks_total"))


def _completed(base: str, options: dict[str, str]) -> set[str]:
    return {each.requested_time for each in read_active_timeline(base, options).completed}


def _announced(receiver: Receiver) -> set[tuple[str, str]]:
    events = [each.event for each in list(receiver.received)]
    return {
        (event["data"]["table"]["id"], event["data"]["commit"]["instant"])
        for event in events
        if event["type"].endswith("commit.published")
    }


def _eventually(holds: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.2)
