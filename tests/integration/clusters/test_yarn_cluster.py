"""Tests workers on a real YARN cluster: their state, and their jobs when a part of the cluster dies."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.clusters.test_spark_cluster import JOBS, Scene
from tests.integration.clusters.yarn_worker import EACH_FILE, FILES, Start, sort_scene
from tests.support import yarn_cluster
from tests.support.spark_cluster import children, command_line, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.acceptance.daemon import Daemon
    from tests.support.yarn_cluster import Cluster

pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with yarn_cluster.running(tmp_path_factory.mktemp("yarn")) as running:
        yield running


def test_each_service_runs_on_yarn(
    spark: SparkSession, cluster: Cluster, daemon: Daemon, start: Start, lake: Path, tmp_path: Path
) -> None:
    scenes = [Scene(spark, daemon, lake / f"each-{kind}".replace(" ", "_"), kind) for kind in JOBS]
    with start(cluster, tmp_path, "--slots", "2") as worker:
        shown = worker.wait_until("ready", executors=2)
        assert shown["master"] == "yarn"
        [application] = cluster.applications("RUNNING")
        assert application["applicationType"] == "SPARK"
        for scene in scenes:
            scene.submit()
        for scene in scenes:
            scene.prove()
        pythons = [command_line(pid) for pid in children(set(cluster.executors()))]
        assert pythons
        assert all(line.startswith(b"./environment/bin/python\0") for line in pythons), pythons
        assert worker.end() == 0
        log = worker.log.read_text()
    assert "Same path resource" not in log
    assert [each["id"] for each in cluster.applications("FINISHED")] == [application["id"]]


def test_a_worker_waits_for_a_full_queue_and_runs_its_job_afterwards(
    spark: SparkSession, cluster: Cluster, daemon: Daemon, start: Start, lake: Path, tmp_path: Path
) -> None:
    scene = Scene(spark, daemon, lake / "full", "compaction")
    # Two executors of 1408 MB and one application master of 640 MB leave room for another application master only.
    large = {"spark.executor.memory": "1000m"}
    with start(cluster, tmp_path / "first", **large) as first:
        first.wait_until("ready", executors=2)
        with start(cluster, tmp_path / "second", "--group", "second", **large) as second:
            second.wait_until("waits_for_executors")
            scene.submit()
            scene.prove()
            assert first.end() == 0
            second.wait_until("ready", executors=2)
            assert second.end() == 0


@pytest.mark.parametrize("kind", ["compaction", "bucket_expansion"])
@pytest.mark.parametrize("victim", ["executor", "application-master", "node", "application"])
def test_a_job_runs_once_and_leaves_no_files_whatever_yarn_loses_in_its_middle(
    spark: SparkSession, daemon: Daemon, start: Start, lake: Path, tmp_path: Path, victim: str, kind: str
) -> None:
    with yarn_cluster.running(tmp_path / "yarn") as cluster:
        scene = Scene(spark, daemon, lake / f"{kind}-{victim}", kind)
        with start(cluster, tmp_path / "worker") as worker:
            worker.wait_until("ready", executors=2)
            scene.submit()
            scene.wait_for_middle()
            destroy(victim, cluster)
            if victim != "application":
                scene.prove(attempts=(1, 2))
                return
            # Spark ends the driver of an application that was killed.
            assert worker.process.wait(60) != 0
        with start(cluster, tmp_path / "next"):
            # The worker may have committed before it ended, and may even have reported this.
            scene.prove(attempts=(1, 2))


def destroy(victim: str, cluster: Cluster) -> None:
    match victim:
        case "executor":
            os.kill(cluster.executors()[0], signal.SIGKILL)
        case "application-master":
            os.kill(cluster.application_masters()[0], signal.SIGKILL)
        case "node":
            # If the application master runs on this node, its replacement starts on the other node.
            cluster.kill_node(0)
        case "application":
            [application] = cluster.applications("RUNNING")
            cluster.kill_application(application["id"])


def test_executors_that_are_allocated_dynamically_come_with_the_first_task(
    spark: SparkSession, cluster: Cluster, daemon: Daemon, start: Start, lake: Path, tmp_path: Path
) -> None:
    scene = Scene(spark, daemon, lake / "dynamic", "clustering")
    dynamic: dict[str, Any] = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.maxExecutors": "2",
        "spark.dynamicAllocation.executorIdleTimeout": "5s",
        "spark.executor.instances": "0",
    }
    with start(cluster, tmp_path, fetches=True, **dynamic) as worker:
        worker.wait_until("ready")
        scene.submit()
        scene.prove()
        worker.wait(lambda shown: shown.get("executors") == 0)
        assert worker.end() == 0
        # YARN's client warns of each jar that is listed twice, and Ivy's jars would be.
        assert "Same path resource" not in worker.log.read_text()


WITH_SERVICE = {
    "spark.shuffle.service.enabled": "true",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.executorIdleTimeout": "5s",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.executor.instances": "0",
    # The nodes are one machine, so executors would read each other's files themselves.
    "spark.shuffle.readHostLocalDisk": "false",
    "spark.executor.extraClassPath": "$HADOOP_CONF_DIR",
    **EACH_FILE,
}


@pytest.mark.parametrize("victim", ["executors", "node"])
def test_node_managers_serve_what_lost_executors_have_written_for_a_sort(
    spark: SparkSession, daemon: Daemon, start: Start, lake: Path, tmp_path: Path, victim: str
) -> None:
    scene = sort_scene(spark, daemon, lake / f"sort-{victim}")
    with yarn_cluster.running(tmp_path / "yarn", options=yarn_cluster.shuffle_service(spark)) as cluster:
        (tmp_path / "events").mkdir()
        with start(
            cluster, tmp_path / "worker", **WITH_SERVICE, **{"spark.eventLog.dir": f"file:{tmp_path}/events"}
        ) as worker:
            worker.wait_until("ready")
            scene.submit()
            # An executor has one core, so all but the last task of each of them have been reported.
            wait_for(lambda: len(cluster.shuffle_files()) >= FILES // 3, 240, tmp_path)
            if victim == "node":
                cluster.kill_node(0)
            for executor in cluster.executors():
                os.kill(executor, signal.SIGKILL)
            scene.prove()
            # The node serves the shuffle files of its executors, so idle executors are released although they have
            # files.
            worker.wait(lambda shown: shown.get("executors") == 0)
            assert worker.end() == 0
    if victim == "executors":
        assert_nothing_was_written_twice(tmp_path / "events")


def assert_nothing_was_written_twice(events: Path) -> None:
    """Asserts that tasks have read what lost executors had written. Without the service Spark repeats what those
    executors have done."""
    [log] = events.iterdir()
    every = [json.loads(line) for line in log.read_text().splitlines()]
    gone = {
        event["Executor ID"]
        for event in every
        if event["Event"] == "SparkListenerExecutorRemoved" and "killed by driver" not in event["Removed Reason"]
    }
    ended = [event for event in every if event["Event"] == "SparkListenerTaskEnd"]
    done = [event for event in ended if event["Task End Reason"]["Reason"] == "Success"]
    wrote = [event for event in done if event["Task Type"] == "ShuffleMapTask"]
    lost = [event for event in wrote if event["Task Info"]["Executor ID"] in gone]
    assert len(lost) >= FILES // 3 - 2
    assert len({(event["Stage ID"], event["Task Info"]["Index"]) for event in wrote}) == len(wrote)
    reasons = {event["Task End Reason"]["Reason"] for event in ended}
    assert reasons == {"Success", "ExecutorLostFailure"}
    written = sum(event["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"] for event in lost)
    read = sum(event["Task Metrics"]["Shuffle Read Metrics"]["Remote Bytes Read"] for event in done)
    assert read >= written > 0
