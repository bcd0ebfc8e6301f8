"""Tests workers on a real standalone Spark cluster: their state, and their jobs when a part of the cluster dies."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex
from jobs.dataplane.driver_processes import MOST_PIECES
from service.queue.worker import ALIVE
from tests.acceptance.daemon import Daemon, has_reached
from tests.acceptance.storage import left_behind, listing
from tests.integration import tables
from tests.integration.cluster_worker import ClusterWorker
from tests.integration.run import run_job
from tests.support import spark_cluster
from tests.support.spark_cluster import CONF, children, command_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.spark_cluster import Cluster

ROWS = 400
# Hudi itself executes the clustering of a table without a bucket index.
BY_HUDI = "clustering by Hudi"
MANY = (
    MOST_PIECES + 8
)  # Spark's executors rewrite as many files, which are too many for the processes beside the driver.
JOBS: dict[str, dict[str, Any]] = {
    "compaction": {},
    "cleaning": {"policy": "KEEP_LATEST_FILE_VERSIONS", "retain": 2},
    "clustering": {"sort_by": ["city", "fare"], "layout": "zorder"},
    BY_HUDI: {"sort_by": ["city", "fare"]},
    "bucket_expansion": {"factor": 2, "settle_seconds": 1},
}
# Files whose appearance shows that a job is in the middle of its work.
MIDDLE = {
    "compaction": ".hoodie/timeline/*.compaction.inflight",
    "cleaning": ".hoodie/timeline/*.clean.inflight",
    "clustering": ".hoodie/.temp/*/**/*.marker.*",
    BY_HUDI: ".hoodie/timeline/*.replacecommit.inflight",
    "bucket_expansion": ".hoodie/.temp/*/**/*.marker.*",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with spark_cluster.running(tmp_path_factory.mktemp("cluster")) as running:
        yield running


class Scene:
    """A table, which is written unless it exists, and the job for it."""

    def __init__(
        self, spark: SparkSession, daemon: Daemon, base: Path, kind: str, *, updates: int = 2, **shape: Any
    ) -> None:
        self.spark, self.daemon, self.base, self.kind = spark, daemon, base, kind
        shape = {"table_type": "COPY_ON_WRITE", **shape} if kind in ("cleaning", BY_HUDI) else shape
        shape = {"num_buckets": None if kind == BY_HUDI else tables.INDEX.num_buckets, **shape}
        self.buckets = shape["num_buckets"]
        if not base.exists():
            tables.write_table(spark, base, count=ROWS, updates=updates, partitioned=False, **shape)
        self.before = tables.snapshot(spark, base)
        self.table = daemon.register(base, num_buckets=self.buckets)
        self.files = set(listing(base))
        self.job = ""

    def submit(self) -> None:
        self.job = self.daemon.submit(self.table, self.kind.partition(" ")[0], **JOBS[self.kind])

    def wait_for_middle(self) -> None:
        deadline = time.monotonic() + 120
        while not [
            path for path in self.base.glob(MIDDLE[self.kind]) if str(path.relative_to(self.base)) not in self.files
        ]:
            assert time.monotonic() < deadline, self.daemon.job(self.job)
            assert self.daemon.job(self.job)["state"] not in ("failed", "succeeded"), "too fast to be hit"
            time.sleep(0.002)

    def prove(self, *, attempts: tuple[int, ...] = (1,)) -> None:
        """Asserts that no row is lost, duplicate or misplaced, and that no file is left."""
        job = self.daemon.wait(self.job)
        assert job["state"] == "succeeded", job
        assert job["attempt"] in attempts, job
        if self.kind == BY_HUDI:
            assert job["result"]["inside_buckets"] is False
            assert tables.snapshot(self.spark, self.base) == self.before
            assert tables.duplicates(self.spark, self.base) == 0
        else:
            buckets = self.buckets * (2 if self.kind == "bucket_expansion" else 1)
            assert tables.in_order(self.spark, self.base, buckets) == self.before
        assert left_behind(self.spark, self.base) == []
        # The check does not run on the cluster, whose executors have just started.
        index = None if self.kind == BY_HUDI else BucketIndex(self.buckets, ("id",))
        audit = run_job(self.spark, self.base, "audit", index=index).details
        assert (audit["clean"], audit["rows"]) == (True, ROWS), audit


@pytest.mark.exhaustive
def test_a_worker_waits_for_executors_and_a_job_survives_their_death(
    spark: SparkSession, daemon: Daemon, lake: Path, tmp_path: Path
) -> None:
    # The table has no logs, because executors that have just started read them slowly.
    scene = Scene(spark, daemon, lake / "quick", "bucket_expansion", table_type="COPY_ON_WRITE", updates=1)
    with (
        spark_cluster.running(tmp_path / "cluster", workers=0) as cluster,
        ClusterWorker(daemon, tmp_path, cluster.url, "--slots", "2", "--conf", "spark.task.maxFailures=6") as worker,
    ):
        scene.submit()
        assert worker.wait(bool)["state"] == "starting"
        worker.wait_until("waits_for_executors")
        job = daemon.job(scene.job)
        assert job["state"] == "queued"
        assert job["waits_for"] == "executors: 1 worker of the group default, none of them ready"
        for _ in range(2):
            cluster.add_worker(wait=False)
        shown = worker.wait_until("ready", executors=1)
        assert shown["master"] == cluster.url
        assert shown["spark_conf"]["spark.executor.memory"] == spark_cluster.EXECUTOR_MEMORY
        assert shown["spark_conf"]["spark.task.maxFailures"] == "6"
        scene.wait_for_middle()
        for executor in cluster.executors():
            os.kill(executor, signal.SIGKILL)
        progress = daemon.wait(scene.job, lambda job: has_reached(job, "rewriting"))["progress"]
        assert progress["bytes_total"] > 0
        scene.prove()
        assert worker.end() == 0


@pytest.mark.exhaustive
def test_a_second_worker_on_a_full_cluster_leaves_the_jobs_to_the_first(
    spark: SparkSession, cluster: Cluster, daemon: Daemon, lake: Path, tmp_path: Path
) -> None:
    scene = Scene(spark, daemon, lake / "full", "compaction")
    with ClusterWorker(daemon, tmp_path, cluster.url, "--slots", "2") as worker:
        worker.wait_until("ready", executors=2)
        with ClusterWorker(daemon, tmp_path / "second", cluster.url) as second:
            second.wait_until("waits_for_executors")
            scene.submit()
            scene.prove()
            assert second.shown()["state"] == "waits_for_executors"
            # A worker of another test, which has ended, still counts for a while.
            deadline = time.monotonic() + ALIVE.total_seconds() + 10
            while _demand(daemon) != (1, 1, 2):
                assert time.monotonic() < deadline, _demand(daemon)
                time.sleep(1)
            assert worker.end() == 0
            second.wait_until("ready", executors=2)
            assert second.end() == 0


def _demand(daemon: Daemon) -> tuple[int, int, int]:
    found = daemon.call("GET", "/v1/workers/demand").json()["groups"]["default"]
    return found["workers"], found["waiting_workers"], found["slots"]


def hit(victim: str, cluster: Cluster, worker: ClusterWorker) -> None:
    """Kills one executor, one of Spark's workers with or without its executors, the driver, or only its Python or
    JVM."""
    match victim:
        case "executor":
            os.kill(cluster.executors()[0], signal.SIGKILL)
        case "spark-worker":
            # The executors notice that their worker is gone, and end; their tasks run again elsewhere.
            cluster.workers[0].kill()
        case "machine":
            cluster.kill_worker(0)
        case "driver":
            worker.kill()
        case "python":
            worker.kill_python()
        case "jvm":
            os.kill(worker.jvm(), signal.SIGKILL)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", JOBS)
@pytest.mark.parametrize("victim", ["executor", "spark-worker", "machine", "driver", "python", "jvm"])
def test_a_job_runs_once_and_leaves_no_files_whatever_process_dies_in_its_middle(
    spark: SparkSession, daemon: Daemon, lake: Path, tmp_path: Path, victim: str, kind: str
) -> None:
    with spark_cluster.running(tmp_path / "cluster") as cluster:
        scene = Scene(spark, daemon, lake / f"{kind}-{victim}".replace(" ", "_"), kind)
        with ClusterWorker(daemon, tmp_path, cluster.url) as worker:
            worker.wait_until("ready", executors=2)
            scene.submit()
            scene.wait_for_middle()
            hit(victim, cluster, worker)
            if victim in ("executor", "spark-worker", "machine"):
                scene.prove()
                return
            assert victim == "driver" or worker.process.wait(30) != 0
            with ClusterWorker(daemon, tmp_path / "next", cluster.url):
                # The worker may have committed before it died, and may even have reported this.
                scene.prove(attempts=(1, 2))


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_tasks_of_a_large_expansion_are_repeated_when_their_executor_dies(
    spark: SparkSession, daemon: Daemon, lake: Path, tmp_path: Path
) -> None:
    scene = Scene(spark, daemon, lake / "many", "bucket_expansion", num_buckets=MANY, table_type="COPY_ON_WRITE")
    (tmp_path / "events").mkdir()
    conf = {**CONF, "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{tmp_path}/events"}
    with (
        spark_cluster.running(tmp_path / "cluster", workers=1) as cluster,
        ClusterWorker(daemon, tmp_path, cluster.url, conf=conf) as worker,
    ):
        worker.wait_until("ready", executors=1)
        scene.submit()
        scene.wait_for_middle()
        [victim] = cluster.executors()
        os.kill(victim, signal.SIGKILL)
        scene.prove()
        assert worker.end() == 0
    every = events(tmp_path / "events")
    ended = [event for event in every if event["Event"] == "SparkListenerTaskEnd"]
    lost = [event for event in ended if event["Task End Reason"]["Reason"] == "ExecutorLostFailure"]
    assert lost
    # The same stage had a task for each bucket, and the tasks that were lost were done by the next executor.
    for event in lost:
        again = [each for each in ended if each["Stage ID"] == event["Stage ID"] and not each["Task Info"]["Failed"]]
        assert len({each["Task Info"]["Index"] for each in again}) == MANY
        assert event["Task Info"]["Executor ID"] not in {
            each["Task Info"]["Executor ID"]
            for each in again
            if each["Task Info"]["Index"] == event["Task Info"]["Index"]
        }


def descendants(process: int) -> list[int]:
    """Returns the ids of a process and of all that it and they have started."""
    found, last = [process], [process]
    while last := children(last):
        found += last
    return found


def suspended_between_marker_and_file(cluster: Cluster, base: Path) -> list[int]:
    """Suspends the machine of the only worker, where a task has announced a file and has not begun it yet. Returns its
    processes."""
    machine = descendants(cluster.workers[0].pid)
    python = [pid for pid in machine if b"java" not in command_line(pid)]
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        announced = [path for path in base.glob(".hoodie/.temp/*/*.marker.*") if not _is_begun(base, path)]
        if not announced:
            python = [pid for pid in descendants(cluster.workers[0].pid) if b"java" not in command_line(pid)]
            continue
        for pid in python:
            os.kill(pid, signal.SIGSTOP)
        if any(not _is_begun(base, path) for path in announced):
            machine = descendants(cluster.workers[0].pid)
            for pid in machine:
                os.kill(pid, signal.SIGSTOP)
            return machine
        for pid in python:
            os.kill(pid, signal.SIGCONT)
    pytest.fail("no task was between its marker and its file")


def _is_begun(base: Path, marker: Path) -> bool:
    return (base / marker.name.partition(".marker.")[0]).exists()


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_a_machine_that_goes_on_after_the_commit_of_others_adds_no_file(
    spark: SparkSession, daemon: Daemon, lake: Path, tmp_path: Path
) -> None:
    # Readers of a table without a metadata table list its folders.
    shape = {"num_buckets": MANY, "table_type": "COPY_ON_WRITE", "metadata": False}
    scene = Scene(spark, daemon, lake / "suspended", "bucket_expansion", **shape)
    conf = {
        **CONF,
        "spark.network.timeout": "8s",
        "spark.network.timeoutInterval": "2s",
        "spark.storage.blockManagerHeartbeatTimeoutMs": "8000",
        "spark.executor.heartbeatInterval": "2s",
    }
    with (
        spark_cluster.running(tmp_path / "cluster", workers=1) as cluster,
        ClusterWorker(daemon, tmp_path, cluster.url, conf=conf) as worker,
    ):
        worker.wait_until("ready", executors=1)
        scene.submit()
        machine = suspended_between_marker_and_file(cluster, scene.base)
        try:
            cluster.add_worker(wait=False)
            job = daemon.wait(scene.job)
            files = {path for path in listing(scene.base) if path.endswith(".parquet")}
        finally:
            for pid in machine:
                os.kill(pid, signal.SIGCONT)
        assert job["state"] == "succeeded", job
        time.sleep(10)
        assert {path for path in listing(scene.base) if path.endswith(".parquet")} == files
        scene.prove()


def events(folder: Path) -> list[dict[str, Any]]:
    """Returns what the only application with its event log in the folder has logged."""
    [log] = folder.iterdir()
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.exhaustive
def test_slots_share_the_executors_by_a_pool_each(
    spark: SparkSession, cluster: Cluster, daemon: Daemon, lake: Path, tmp_path: Path
) -> None:
    scenes = [Scene(spark, daemon, lake / f"side-{kind}".replace(" ", "_"), kind) for kind in JOBS]
    conf = {**CONF, "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{tmp_path}/events"}
    (tmp_path / "events").mkdir()
    with ClusterWorker(daemon, tmp_path, cluster.url, "--slots", "3", conf=conf) as worker:
        worker.wait_until("ready", executors=2)
        for scene in scenes:
            scene.submit()
        for scene in scenes:
            scene.prove()
        assert worker.end() == 0
    started = [event for event in events(tmp_path / "events") if event["Event"] == "SparkListenerStageSubmitted"]
    pools: dict[str, set[str]] = {}
    for event in started:
        properties = event["Properties"]
        if group := properties.get("spark.jobGroup.id"):
            pools.setdefault(group, set()).add(properties.get("spark.scheduler.pool", "none"))
    # Each job ran in the pool of one slot, and the slots worked at once.
    assert all(len(each) == 1 for each in pools.values()), pools
    assert set.union(*pools.values()) == {"slot 0", "slot 1", "slot 2"}


@pytest.mark.exhaustive
def test_a_job_whose_executors_do_not_come_back_goes_back_to_the_queue_and_is_done_later(
    spark: SparkSession, daemon: Daemon, lake: Path, tmp_path: Path
) -> None:
    scene = Scene(spark, daemon, lake / "starved", "bucket_expansion")
    limit = {"GROUNDSKEEPER_EXECUTOR_SECONDS": "5"}
    with (
        spark_cluster.running(tmp_path / "cluster", workers=1) as cluster,
        ClusterWorker(daemon, tmp_path, cluster.url, environment=limit) as worker,
    ):
        worker.wait_until("ready", executors=1)
        scene.submit()
        scene.wait_for_middle()
        cluster.kill_worker(0)
        given_up = daemon.wait(scene.job, lambda job: job["state"] == "queued" and job["attempt"] == 1)
        assert given_up["error"]["type"].endswith("/no-executors")
        worker.wait_until("waits_for_executors")
        time.sleep(3)
        waiting = daemon.job(scene.job)
        assert waiting["state"] == "queued"
        assert waiting["waits_for"] == "executors: 1 worker of the group default, none of them ready"
        cluster.add_worker()
        worker.wait_until("ready", executors=1)
        scene.prove(attempts=(2,))


@pytest.mark.exhaustive
def test_with_dynamic_allocation_executors_come_for_a_job_and_go_after_it(
    spark: SparkSession, cluster: Cluster, daemon: Daemon, lake: Path, tmp_path: Path
) -> None:
    scene = Scene(spark, daemon, lake / "dynamic", "clustering")
    conf = {
        **CONF,
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.timeout": "5s",
        "spark.dynamicAllocation.executorIdleTimeout": "10s",
        "spark.dynamicAllocation.minExecutors": "0",
    }
    with ClusterWorker(daemon, tmp_path, cluster.url, conf=conf) as worker:
        worker.wait_until("ready")
        worker.wait(lambda shown: shown["executors"] == 0)
        assert worker.shown()["state"] == "ready"
        scene.submit()
        scene.prove()
        worker.wait(lambda shown: shown["executors"] == 0)


@pytest.mark.exhaustive
def test_a_master_that_does_not_answer_is_named_and_ends_the_worker(daemon: Daemon, tmp_path: Path) -> None:
    with ClusterWorker(daemon, tmp_path, "spark://127.0.0.1:1") as worker:
        assert worker.wait(bool)["state"] == "starting"
        assert worker.process.wait(150) == 1
    said = worker.log.read_text()
    assert "takes no jobs: Spark is starting on spark://127.0.0.1:1 for 30 s" in said
    assert "ends: Spark did not start on spark://127.0.0.1:1" in said
    assert "Traceback" not in said


@pytest.mark.exhaustive
def test_a_master_that_dies_for_good_ends_the_worker(daemon: Daemon, tmp_path: Path) -> None:
    with (
        spark_cluster.running(tmp_path / "cluster") as cluster,
        ClusterWorker(daemon, tmp_path, cluster.url) as worker,
    ):
        worker.wait_until("ready", executors=2)
        cluster.master.kill()
        for number in range(2):
            cluster.kill_worker(number)
        worker.wait_until("waits_for_executors")
