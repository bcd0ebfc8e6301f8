"""Tests service and worker where only the volumes of the manifests can be written: /data and /tmp."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml

from jobs.hudi.java import java_home
from tests.image.read_only_root import DATA, VARIABLES, in_read_only_root
from tests.integration.cluster_worker import ClusterWorker, service_without_worker
from tests.integration.clusters.test_spark_cluster import JOBS, Scene
from tests.integration.serving import eventually
from tests.support import packed_environment
from tests.support.commands import called
from tests.support.guides import ROOT
from tests.support.small_table import SmallTable
from tests.support.spark_cluster import SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_service_serves_and_reads_tables_on_a_read_only_root(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    SmallTable(lake / "orders").commit("20260101120000000")
    log = tmp_path / "log"
    command = in_read_only_root(lake, tmp_path, sys.executable, "-m", "service.cli", "serve", "--workers", "0")
    settings = {"ALLOWED_ROOTS": str(lake), "DATABASE": f"sqlite:///{DATA}/groundskeeper.db", "AUTOMATIC": "false"}
    with log.open("wb") as written:
        process = subprocess.Popen(
            [*command, "--port", "0"],
            env={**_environment(), **{f"GROUNDSKEEPER_{name}": value for name, value in settings.items()}},
            stdout=subprocess.PIPE,
            stderr=written,
            text=True,
        )
    try:
        assert process.stdout is not None
        found = re.search(r"ready at (http://\S+)", process.stdout.readline())
        assert found, log.read_text()
        with httpx.Client(base_url=found.group(1), timeout=60) as client:
            table = client.post("/v1/tables", json={"base_path": f"{lake}/orders"})
            assert table.status_code == 201, table.text
            assert eventually(lambda: len(client.get("/v1/commits").json()["items"]) == 1, 30), log.read_text()
            assert client.get("/readyz").status_code == 200
    finally:
        process.terminate()
        process.wait(30)
    assert "Read-only" not in log.read_text()


@pytest.mark.exhaustive
def test_a_worker_runs_each_service_on_a_read_only_root(spark: SparkSession, tmp_path: Path) -> None:
    lake, jars = tmp_path / "lake", tmp_path / "jars"
    lake.mkdir()
    jars.mkdir()
    packed_environment.hudi_jars(spark, jars)
    command = [sys.executable, "-m", "service.cli", "worker", "--master", "local[2,4]", "--driver-memory", "1g"]
    environment = {**VARIABLES, "PYTHONPATH": _environment()["PYTHONPATH"], "GROUNDSKEEPER_JARS": str(jars)}
    with service_without_worker(tmp_path / "service", lake) as daemon:
        scenes = [Scene(spark, daemon, lake / kind.replace(" ", "_"), kind) for kind in JOBS]
        with ClusterWorker(
            daemon,
            tmp_path / "worker",
            "local",
            conf={"spark.sql.shuffle.partitions": "2"},
            command=in_read_only_root(lake, jars, *command),
            environment=environment,
        ) as worker:
            worker.wait_until("ready")
            for scene in scenes:
                scene.submit()
                scene.prove()
            assert worker.end() == 0
            assert "Read-only" not in worker.log.read_text()


@pytest.mark.exhaustive
def test_a_driver_of_the_spark_operator_is_a_worker_on_a_read_only_root(spark: SparkSession, tmp_path: Path) -> None:
    """The properties are those of the operator, except for the master: the tasks run in the driver."""
    lake, read = tmp_path / "lake", tmp_path / "read"
    lake.mkdir()
    read.mkdir()
    packed_environment.hudi_jars(spark, read)
    spec = next(each for each in _manifests("--executors", "3") if each["kind"] == "SparkApplication")["spec"]
    (container,) = spec["driver"]["template"]["spec"]["containers"]
    program = ROOT / spec["mainApplicationFile"].partition("site-packages/")[2]
    (read / "spark.properties").write_text(
        "spark.master=local[2,4]\nspark.driver.memory=1g\nspark.sql.shuffle.partitions=2\nspark.ui.enabled=false\n"
    )
    with service_without_worker(tmp_path / "service", lake) as daemon:
        scenes = [Scene(spark, daemon, lake / kind, kind) for kind in ("compaction", "bucket_expansion")]
        name, *arguments = spec["arguments"]
        arguments[arguments.index("--service") + 1] = daemon.url
        asked = ("--properties-file", read / "spark.properties", "--class", "org.apache.spark.deploy.PythonRunner")
        command = (ROOT / ".image" / "entrypoint", "driver", *asked, f"local://{program}", name, *arguments)
        roots = next(each["value"] for each in container["env"] if each["name"] == "GROUNDSKEEPER_ALLOWED_ROOTS")
        with ClusterWorker(
            daemon,
            tmp_path / "worker",
            "local",
            command=in_read_only_root(lake, read, *command),
            environment={
                **VARIABLES,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "PYTHONPATH": _environment()["PYTHONPATH"],
                "JAVA_HOME": str(java_home()),
                "SPARK_HOME": str(SPARK),
                "SPARK_DRIVER_BIND_ADDRESS": "127.0.0.1",
                "GROUNDSKEEPER_JARS": str(read),
                "GROUNDSKEEPER_ALLOWED_ROOTS": roots.replace("/lake", str(lake)),
            },
        ) as worker:
            shown = worker.wait_until("ready")
            assert shown["slots"] == 4
            for scene in scenes:
                scene.submit()
                scene.prove()
            log = worker.log.read_text()
        assert "Read-only" not in log


def _manifests(*options: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(called(["manifests", "kubernetes", *options]).stdout))


def _environment() -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GROUNDSKEEPER_")}
    return {**clean, **VARIABLES, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "service" / "client")))}
