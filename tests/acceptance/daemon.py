"""Runs `groundskeeper serve` in its own process, as a user does, and calls it over REST."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import httpx

from tests.support.forked_service import Forked

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]
# Without tokens the service requires this header, even for calls without a body.
JSON = {"Content-Type": "application/json"}

ENDED = ("succeeded", "failed", "cancelled")
PATIENCE_SECONDS = 150.0
_LONG_SECONDS = 20


class Daemon:
    """The service and its local worker in `folder`, which keeps the database and the log when it ends.

    No job starts without a call, unless `automatic` is "true".
    """

    def __init__(self, folder: Path, **settings: str) -> None:
        folder.mkdir(exist_ok=True)
        settings = {"automatic": "false", **settings}
        own = {key: value for key, value in os.environ.items() if not key.startswith("GROUNDSKEEPER_")}
        self.log = folder / "log"
        with self.log.open("ab") as log:
            environment = {**own, **{f"GROUNDSKEEPER_{key.upper()}": value for key, value in settings.items()}}
            self.process = Forked("serve", "--port", "0", cwd=folder, env=environment, stderr=log.fileno())
        first = self.process.stdout.readline()
        found = re.search(r"ready at (http://\S+)", first)
        assert found, first + self.log.read_text()
        self.url = found.group(1)
        self._http = httpx.Client(base_url=self.url, timeout=60, headers=JSON)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=40)

    # -- REST

    def call(self, method: str, path: str, body: object = None, **more: Any) -> httpx.Response:
        return self._http.request(method, path, json=body, **more)

    def register(self, base: Path | str, num_buckets: int | None = 4, **more: Any) -> str:
        """Registers the table, and returns its id."""
        body: Json = {"base_path": str(base), "writers": {"hudi_version": "1.2.0"}, **more}
        if num_buckets:
            body["index"] = {"type": "bucket", "num_buckets": num_buckets, "hash_fields": ["id"]}
        answer = self.call("POST", "/v1/tables", body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def unregister(self, table_id: str) -> None:
        answer = self.call("DELETE", f"/v1/tables/{table_id}")
        assert answer.status_code == 204, answer.text

    def submit(self, table_id: str, kind: str, *, dry_run: bool = False, **params: Any) -> str:
        """Submits a job, and returns its id."""
        body = {"kind": kind, "params": params, "dry_run": dry_run}
        answer = self.call("POST", f"/v1/tables/{table_id}/jobs", body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def job(self, job_id: str, *, wait_seconds: int = 0) -> Json:
        """Returns the job, as soon as it has ended or the time is over."""
        found: Json = self.call("GET", f"/v1/jobs/{job_id}", params={"wait_seconds": wait_seconds}).json()
        return found

    def wait(self, job_id: str, until: Callable[[Json], bool] | None = None) -> Json:
        """Waits until the job fulfils the condition, or else for its end, and returns it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        # The service answers a call as soon as the job has ended, so no polling slows the service and the worker.
        while not (until or has_ended)(job := self.job(job_id, wait_seconds=0 if until else _LONG_SECONDS)):
            assert time.monotonic() < deadline, f"{job}\n{self.log.read_text()[-8000:]}"
            time.sleep(0.02)
        return job

    def run(self, table_id: str, kind: str, **params: Any) -> Json:
        """Submits a job and waits for its end."""
        return self.wait(self.submit(table_id, kind, **params))

    def succeed(self, table_id: str, kind: str, **params: Any) -> Json:
        """Runs a job, asserts its success, and returns its result."""
        job = self.run(table_id, kind, **params)
        assert job["state"] == "succeeded", f"{job}\n{self.log.read_text()[-8000:]}"
        result: Json = job["result"]
        return result

    def wait_for_worker(self) -> None:
        """Waits until a worker has started, is warm and leases jobs."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (pid := self.worker()) is None or not re.search(rf"-{pid}-\w+ is ready", self.log.read_text()):
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    # -- processes

    def worker(self) -> int | None:
        """Returns the process id of the local worker's Python."""
        return _child(self.process.pid, b"\0worker\0")

    def jvm(self) -> int | None:
        """Returns the process id of the local worker's JVM."""
        worker = self.worker()
        return _child(worker, b"java") if worker else None


def has_ended(job: Json) -> bool:
    return job["state"] in ENDED


def has_reached(job: Json, step: str) -> bool:
    """Returns whether the job is in this step or has ended, because a short step may end before it is seen."""
    return has_ended(job) or (job["progress"] or {"step": ""})["step"].startswith(step)


def _child(parent: int, words: bytes) -> int | None:
    """Returns the process id of the child with these bytes in its command line; the service has other children, too."""
    for pid in children(parent):
        with suppress(OSError):  # The process has ended.
            if words in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
    return None


def children(parent: int) -> list[int]:
    """Returns the process ids of all children of these processes, by /proc."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.name))
    return found
