"""Tests workers in the queues of YARN's capacity scheduler: they wait for room, and lose executors to another queue."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from subprocess import PIPE
from typing import TYPE_CHECKING

import pytest

from tests.integration.clusters.test_spark_cluster import Scene
from tests.integration.clusters.yarn_worker import CONF, EACH_FILE, FILES, Start, sort_scene
from tests.support import yarn_cluster
from tests.support.spark_cluster import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.acceptance.daemon import Daemon
    from tests.support.yarn_cluster import Cluster

pytestmark = pytest.mark.exhaustive


def queues(tables: int, **more: str) -> dict[str, str]:
    """Returns options for two queues. The queue `tables` has this percentage of the cluster, and the queue `others` the
    rest; one of them may take all of it while the other is empty."""
    return {
        "yarn.scheduler.capacity.root.queues": "tables,others",
        **{
            f"yarn.scheduler.capacity.root.{queue}.{name}": value
            for queue, share in (("tables", tables), ("others", 100 - tables))
            # Without this factor the one user of a queue would never get more than the share of the queue.
            for name, value in (("capacity", str(share)), ("maximum-capacity", "100"), ("user-limit-factor", "10"))
        },
        **{f"yarn.scheduler.capacity.{name.replace('_', '-')}": value for name, value in more.items()},
    }


def test_a_worker_starts_when_its_queue_has_room_for_its_application_master(
    spark: SparkSession, daemon: Daemon, start: Start, lake: Path, tmp_path: Path
) -> None:
    """Spark waits within its start, before it asks for any executor."""
    scene = Scene(spark, daemon, lake / "one-at-a-time", "compaction")
    # The share of application masters, a quarter of 4096 MB, has room for one of 640 MB.
    capacity = queues(50, maximum_am_resource_percent="0.25")
    with yarn_cluster.running(tmp_path / "yarn", scheduler=yarn_cluster.CAPACITY, capacity=capacity) as cluster:
        queue = {"spark.yarn.queue": "tables", "spark.executor.instances": "1"}
        with start(cluster, tmp_path / "first", "--group", "first", **queue) as first:
            first.wait_until("ready", executors=1)
            with start(cluster, tmp_path / "second", **queue) as second:
                second.wait_until("starting")
                wait_for(lambda: bool(cluster.applications("ACCEPTED")), 60, tmp_path)
                scene.submit()
                assert first.end() == 0
                second.wait_until("ready", executors=1)
                scene.prove()


_PREEMPTION = "yarn.resourcemanager.monitor.capacity.preemption"
PREEMPTING = {
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    f"{_PREEMPTION}.monitoring_interval": "200",
    f"{_PREEMPTION}.max_wait_before_kill": "400",
    f"{_PREEMPTION}.total_preemption_per_round": "1.0",
    f"{_PREEMPTION}.natural_termination_factor": "1.0",
    # Two application masters of 640 MB, two executors of 1024 MB, and less than another executor.
    "yarn.nodemanager.resource.memory-mb": "3456",
}
# The application of another team, which holds its executors until its standard input is closed.
OTHERS = """
import sys
from pyspark.sql import SparkSession
SparkSession.builder.master("yarn").getOrCreate()
sys.stdin.read()
"""


@contextmanager
def other_application(cluster: Cluster, folder: Path, executors: int) -> Iterator[None]:
    conf = {**CONF, "spark.yarn.queue": "others", "spark.executor.instances": str(executors)}
    conf["spark.yarn.stagingDir"] = str(folder / "staging-of-others")
    arguments = " ".join(f"--conf {name}={value}" for name, value in conf.items())
    environment = {**os.environ, "HADOOP_CONF_DIR": str(cluster.conf_folder), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["PYSPARK_SUBMIT_ARGS"] = f"{arguments} pyspark-shell"
    with (
        (folder / "others.log").open("ab") as log,
        subprocess.Popen([sys.executable, "-c", OTHERS], env=environment, stdin=PIPE, stdout=log, stderr=log),
    ):
        # Standard input is closed at the end, and so the application ends.
        yield


def stopped_in_the_midst(scene: Scene, cluster: Cluster, folder: Path) -> list[int]:
    """Submits the job and stops its executors, so that they are still in the midst of it when the other application
    wants its share. Returns their processes."""
    scene.submit()
    wait_for(lambda: len(cluster.shuffle_files()) >= FILES // 3, 240, folder)
    found = cluster.executors()
    for executor in found:
        os.kill(executor, signal.SIGSTOP)
    return found


def test_a_job_survives_that_an_executor_is_preempted_for_another_queue(
    spark: SparkSession, daemon: Daemon, start: Start, lake: Path, tmp_path: Path
) -> None:
    # A job on a small table would not need executors, except Hudi's own clustering.
    scene = sort_scene(spark, daemon, lake / "preempted")
    (tmp_path / "events").mkdir()
    conf = {"spark.yarn.queue": "tables", **EACH_FILE, "spark.eventLog.dir": f"file:{tmp_path}/events"}
    capacity = queues(50, maximum_am_resource_percent="1.0")
    with (
        yarn_cluster.running(
            tmp_path / "yarn", 1, scheduler=yarn_cluster.CAPACITY, options=PREEMPTING, capacity=capacity
        ) as cluster,
        start(cluster, tmp_path / "worker", **conf) as worker,
    ):
        worker.wait_until("ready", executors=2)
        [application] = cluster.applications("RUNNING")
        before = stopped_in_the_midst(scene, cluster, tmp_path)
        with other_application(cluster, tmp_path, 1):
            wait_for(lambda: len(set(before) - set(cluster.executors())) == 1, 90, tmp_path)
            for executor in set(before) & set(cluster.executors()):
                os.kill(executor, signal.SIGCONT)
            scene.prove()
        shown = (cluster.call(f"/cluster/apps/{application['id']}") or {})["app"]
        assert shown["numNonAMContainerPreempted"] == 1
        assert worker.end() == 0
    [log] = (tmp_path / "events").iterdir()
    every = [json.loads(line) for line in log.read_text().splitlines()]
    ended = [event["Task End Reason"] for event in every if event["Event"] == "SparkListenerTaskEnd"]
    gone = [reason["Loss Reason"] for reason in ended if reason["Reason"] == "ExecutorLostFailure"]
    [reason] = gone
    assert "preempted" in reason


# The test starts two applications, and the second attempt begins when one of them has ended.
@pytest.mark.timeout(1800)
def test_a_job_whose_executors_are_all_preempted_is_not_taken_again_until_one_comes_back(
    spark: SparkSession, daemon: Daemon, start: Start, lake: Path, tmp_path: Path
) -> None:
    scene = sort_scene(spark, daemon, lake / "all-preempted")
    # The queue `tables` has a share of 691 MB, which has room for an application master only. The share of the queue
    # `others` has room for two executors too.
    capacity = queues(20, maximum_am_resource_percent="1.0")
    conf = {**EACH_FILE, "spark.yarn.queue": "tables", "spark.eventLog.enabled": "false"}
    limit = {"GROUNDSKEEPER_EXECUTOR_SECONDS": "5"}
    with (
        yarn_cluster.running(
            tmp_path / "yarn", 1, scheduler=yarn_cluster.CAPACITY, options=PREEMPTING, capacity=capacity
        ) as cluster,
        start(cluster, tmp_path / "worker", environment=limit, **conf) as worker,
    ):
        worker.wait_until("ready", executors=2)
        before = stopped_in_the_midst(scene, cluster, tmp_path)
        with other_application(cluster, tmp_path, 2):
            given_up = daemon.wait(scene.job, lambda job: job["state"] == "queued" and job["attempt"] > 0)
            assert given_up["error"]["type"].endswith("/no-executors")
            # Until the other application has its two executors, the job may get a new one, which is preempted as well.
            wait_for(lambda: not set(before) & set(cluster.executors()) and len(cluster.executors()) == 2, 90, tmp_path)
            worker.wait_until("waits_for_executors")
            waiting = daemon.wait(scene.job, lambda job: job["state"] == "queued")
            time.sleep(5)
            assert daemon.job(scene.job)["attempt"] == waiting["attempt"]
            assert waiting["max_attempts"] == 3 + waiting["attempt"]
        scene.prove(attempts=(waiting["attempt"] + 1,))
        assert worker.end() == 0
