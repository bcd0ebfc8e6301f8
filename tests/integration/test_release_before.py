"""Tests the upgrade of an installation that works: an earlier version with two replicas, a worker, and PostgreSQL."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.acceptance.daemon import JSON, Daemon
from tests.integration.cluster_worker import ClusterWorker
from tests.integration.clusters.test_spark_cluster import Scene
from tests.integration.receiver import Receiver
from tests.integration.serving import eventually
from tests.support.guides import ROOT
from tests.support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.postgresql import Server

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1200)]

# A commit from before two migrations. Services of that commit work beside services of this version.
WORKS_BESIDE = "e890ab3a"
# The expansion of the test runs for at least this time.
SETTLE_SECONDS = 90
# People set these members of tables and webhooks; all others change with each commit and delivery.
SET = ("name", "base_path", "index", "writers", "owner", "tags", "url", "types", "tables", "enabled")


class Replica:
    """A replica at the same port whatever its version is."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        folder.mkdir()
        self._folder = folder
        self._settings = settings
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.log = folder / "log"

    def start(self, tree: Path) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "service.cli", "serve", "--workers", "0", "--port", str(self._port)],
                cwd=self._folder,
                env={**_environment(tree), **self._settings},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        assert re.search(r"ready at", self.process.stdout.readline()), self.log.read_text()[-4000:]
        assert eventually(lambda: httpx.get(f"{self.url}/readyz", timeout=60).status_code == 200, 30)

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(60) == 0, self.log.read_text()[-4000:]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Installation(Daemon):
    """Two replicas. A call goes to the first that answers."""

    def __init__(self, folder: Path, database: str, lake: Path) -> None:
        settings = {
            "DATABASE": database,
            "SECRET_KEYS": base64.urlsafe_b64encode(bytes(range(32))).decode(),
            "ALLOWED_ROOTS": str(lake),
            "AUTOMATIC": "false",
            "POLL_SECONDS": "1",
            "RETRY_FIRST_SECONDS": "0.2",
            "WEBHOOK_ALLOWED_HOSTS": "127.0.0.1",
        }
        named = {f"GROUNDSKEEPER_{name}": value for name, value in settings.items()}
        self.replicas = [Replica(folder / name, named) for name in ("a", "b")]
        self.url = self.replicas[0].url
        self.log = self.replicas[0].log

    def __exit__(self, *_: object) -> None:
        for each in self.replicas:
            each.kill()

    def call(self, method: str, path: str, body: object = None, **more: Any) -> httpx.Response:
        for each in self.replicas:
            try:
                return httpx.request(method, each.url + path, json=body, headers=JSON, timeout=60, **more)
            except httpx.ConnectError:
                continue
        raise AssertionError("no replica answers")

    def events(self) -> dict[str, dict[str, Any]]:
        """Returns all events by their ids, in their order."""
        found: dict[str, dict[str, Any]] = {}
        after = 0
        while True:
            accepted = {**JSON, "Accept": "application/json"}
            answer = httpx.get(f"{self._alive()}/v1/events", params={"after": after}, headers=accepted, timeout=60)
            page = answer.json()
            if not page["items"]:
                return found
            found |= {each["id"]: each for each in page["items"]}
            after = page["next_after"]

    def facts(self) -> dict[str, dict[str, Any]]:
        """Returns what people have set of tables and webhooks, and the jobs that have ended, by their ids."""
        items = [
            {name: value for name, value in each.items() if name in ("id", *SET)}
            for path in ("tables", "webhooks")
            for each in self.call("GET", f"/v1/{path}").json()["items"]
        ]
        jobs = self.call("GET", "/v1/jobs").json()["items"]
        items += [self.job(each["id"]) for each in jobs if each["state"] in ("succeeded", "cancelled", "failed")]
        return {each["id"]: each for each in items}

    def _alive(self) -> str:
        return next(each.url for each in self.replicas if each.process.poll() is None)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.mark.parametrize("commit", [WORKS_BESIDE])
def test_an_upgrade_with_running_jobs_loses_no_job_and_no_event(
    spark: SparkSession, postgresql: Server, receiver: Receiver, tmp_path: Path, commit: str
) -> None:
    """One job has ended, one was cancelled, one runs during the upgrade, and one waits."""
    old, lake = _tree(commit, tmp_path / "old"), tmp_path / "lake"
    with Installation(tmp_path, postgresql.new_database(), lake) as service:
        first, second = service.replicas
        for each in service.replicas:
            each.start(old)
        hook = service.call("POST", "/v1/webhooks", {"url": receiver.url, "types": ["*"]})
        assert hook.status_code == 201, hook.text
        # The scenes make their tables by the session of the test, while the worker starts.
        with _worker(service, tmp_path / "worker", old) as worker:
            kinds = {"runs": "bucket_expansion", "waits": "compaction"}
            scenes = {name: Scene(spark, service, lake / name, kind) for name, kind in kinds.items()}
            worker.wait_until("ready")
            ended = service.run(scenes["waits"].table, "audit")
            assert ended["state"] == "succeeded", ended
            scenes["runs"].job = service.submit(
                scenes["runs"].table, "bucket_expansion", num_buckets=8, settle_seconds=SETTLE_SECONDS
            )
            service.wait(scenes["runs"].job, lambda job: job["state"] == "running")
            cancelled = service.submit(scenes["waits"].table, "cleaning")
            assert service.call("POST", f"/v1/jobs/{cancelled}/cancel", {}).status_code in (200, 202)
            scenes["waits"].submit()
            events, facts = service.events(), service.facts()
            # Two tables, and at least a start and an end of the two jobs that have ended.
            assert len(events) > 6
            assert {ended["id"], cancelled} < set(facts)
            assert service.job(scenes["runs"].job)["state"] == "running"

            first.stop()
            first.start(ROOT)
            # The older version works on the newer schema.
            assert httpx.get(f"{second.url}/readyz", timeout=60).status_code == 200
            beside = httpx.get(f"{second.url}/v1/jobs/{scenes['waits'].job}", timeout=60)
            assert beside.json()["table_id"] == scenes["waits"].table, beside.text
            second.kill()
            assert service.job(scenes["runs"].job)["state"] == "running", service.job(scenes["runs"].job)
            second.start(ROOT)

            found, kept = service.events(), service.facts()
            assert {each: _kept(event, found[each]) for each, event in events.items()} == events
            assert {each: _kept(fact, kept[each]) for each, fact in facts.items()} == facts
            scenes["runs"].prove()
            assert worker.end() == 0
        with _worker(service, tmp_path / "newer", ROOT) as worker:
            scenes["waits"].prove()
            assert service.succeed(scenes["waits"].table, "audit")["clean"]
            assert worker.end() == 0
        assert service.job(cancelled)["state"] == "cancelled"
        _prove_events(service, receiver, [scene.job for scene in scenes.values()])


def _prove_events(service: Installation, receiver: Receiver, jobs: list[str]) -> None:
    """Asserts that each job was announced once, and that the receiver has got every event."""
    events = service.events()
    for job in jobs:
        types = [each["type"] for each in events.values() if each["data"].get("job", {}).get("id") == job]
        ends = [each for each in types if each.endswith((".succeeded", ".failed", ".cancelled"))]
        assert len(ends) == 1, types
        assert ends[0].endswith(".succeeded"), types
    assert eventually(lambda: set(receiver.ids) >= set(service.events()), 60), set(events) - set(receiver.ids)
    assert set(receiver.ids) == set(service.events())


def _kept(old: Any, new: Any) -> Any:
    """Returns the newer answer without the members that the older one lacks."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {name: _kept(value, new[name]) for name, value in old.items() if name in new}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [_kept(*pair) for pair in zip(old, new, strict=True)]
    return new


def _worker(service: Installation, folder: Path, tree: Path) -> ClusterWorker:
    program = [sys.executable, "-m", "service.cli", "worker", "--master", "local[2,4]", "--driver-memory", "1g"]
    return ClusterWorker(
        service,
        folder,
        "local",
        # Otherwise the waiting jobs would run beside the long one.
        *("--service", service.replicas[1].url, "--spare-slots", "0"),
        conf={"spark.sql.shuffle.partitions": "2"},
        command=program,
        environment=_environment(tree),
    )


def _environment(tree: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("GROUNDSKEEPER_")}
    return {**own, "PYTHONPATH": os.pathsep.join(map(str, (tree, tree / "service" / "client")))}


def _tree(commit: str, folder: Path) -> Path:
    """Returns the packages of a commit. Skips the test if the history does not reach so far."""
    packed = folder.with_suffix(".tar")
    command = ["git", "archive", "--output", str(packed), commit, "service", "jobs", "migrations"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"the history does not have the commit {commit}: {made.stderr.strip()}")
    with tarfile.open(packed) as file:
        file.extractall(folder, filter="data")
    return folder
