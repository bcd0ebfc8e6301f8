"""Executors whose machine has neither our packages nor Hudi get both from the driver."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import jobs
from tests.acceptance.daemon import Daemon
from tests.acceptance.storage import left_behind
from tests.integration import tables
from tests.integration.cluster_worker import ClusterWorker
from tests.support import packed_environment, spark_cluster
from tests.support.spark_cluster import CONF, SPARK, children, command_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 200


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed_environment.pack(tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="module")
def jars(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed_environment.hudi_jars(spark, tmp_path_factory.mktemp("jars"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("by", ["groundskeeper", "spark-submit"])
def test_a_cluster_without_our_environment_gets_python_jobs_and_hudi_from_the_worker(
    spark: SparkSession, environment: Path, jars: Path, tmp_path: Path, by: str
) -> None:
    conf = {
        **CONF,
        "spark.archives": f"{environment}#environment",
    }
    python = "./environment/bin/python"
    # The session has no cache of Ivy, because it must not download anything.
    own = {"HOME": str(tmp_path / "home"), "GROUNDSKEEPER_JARS": str(jars)}
    (tmp_path / "home").mkdir()
    lake = tmp_path / "lake"
    lake.mkdir()
    command = None
    if by == "groundskeeper":
        conf["spark.pyspark.python"] = python
    else:
        program = Path(jobs.__path__[0]) / "worker" / "__main__.py"
        options = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
        own = {"HOME": own["HOME"], "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable}
        own["JAVA_HOME"] = os.environ["JAVA_HOME"]
        all_jars = ",".join(map(str, jars.iterdir()))
        submit = [str(SPARK / "bin" / "spark-submit"), "--driver-memory", "1g", "--jars", all_jars, *options]
    with (
        spark_cluster.running(tmp_path / "cluster") as cluster,
        Daemon(tmp_path / "service", workers="0", allowed_roots=str(lake)) as daemon,
    ):
        if by == "spark-submit":
            command = [*submit, "--master", cluster.url, str(program)]
        base = lake / "orders"
        tables.write_table(spark, base, count=ROWS, updates=1, partitioned=False)
        before = tables.snapshot(spark, base)
        table = daemon.register(base)
        with ClusterWorker(daemon, tmp_path, cluster.url, conf=conf, command=command, environment=own) as worker:
            shown = worker.wait_until("ready", executors=2)
            assert shown["master"] == cluster.url
            assert shown["spark_conf"]["spark.executor.memory"] == CONF["spark.executor.memory"]
            daemon.succeed(table, "compaction")
            daemon.succeed(table, "bucket_expansion", num_buckets=8, settle_seconds=1)
            pythons = [command_line(pid) for pid in children(set(cluster.executors()))]
            assert pythons
            assert all(line.startswith(b"./environment/bin/python\0") for line in pythons), pythons
        assert tables.in_order(spark, base, 8) == before
        assert left_behind(spark, base) == []


@pytest.mark.exhaustive
def test_executors_whose_python_lacks_a_package_end_the_worker_with_its_name(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    conf = {**CONF, "spark.pyspark.python": str(tmp_path / "bare" / "bin" / "python")}
    with (
        spark_cluster.running(tmp_path / "cluster", workers=1) as cluster,
        Daemon(tmp_path / "service", workers="0") as daemon,
        ClusterWorker(daemon, tmp_path, cluster.url, conf=conf) as worker,
    ):
        assert worker.process.wait(150) == 1
    ends = "its executors cannot run the tasks of jobs: ModuleNotFoundError: No module named"
    assert ends in worker.log.read_text()
