"""Runs `groundskeeper worker` on a Spark cluster, in its own process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Self

from tests.acceptance.daemon import Daemon
from tests.support.spark_cluster import CONF, children, command_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType


PATIENCE_SECONDS = 150.0


def service_without_worker(folder: Path, lake: Path) -> Daemon:
    """Returns a service for the tables in `lake`, which notices soon that a worker has died."""
    settings = {"workers": "0", "lease_seconds": "5", "recover_seconds": "0.5", "retry_first_seconds": "0.2"}
    return Daemon(folder, allowed_roots=str(lake), **settings)


class ClusterWorker:
    """A worker of the service `daemon`. `command` is `groundskeeper worker` by default."""

    def __init__(
        self,
        daemon: Daemon,
        folder: Path,
        master: str,
        *arguments: str,
        conf: Mapping[str, str] = CONF,
        command: list[str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.daemon = daemon
        self.log = folder / "worker.log"
        default = [sys.executable, "-m", "service.cli", "worker", "--master", master, "--driver-memory", "1g"]
        own = {key: value for key, value in os.environ.items() if not key.startswith(("GROUNDSKEEPER_", "PYSPARK_"))}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*(command or default), "--service", daemon.url, *arguments],
                cwd=folder,
                env={
                    **own,
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "GROUNDSKEEPER_SPARK_CONF": json.dumps(dict(conf)),
                    **(environment or {}),
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> int:
        """Asks the worker to end, and returns the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        return self.process.wait()

    def kill(self) -> None:
        """Sends SIGKILL to Python and JVM of the driver at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill_python(self) -> None:
        self.process.kill()
        self.process.wait()

    def jvm(self) -> int:
        """Returns the process id of the worker's JVM."""
        [found] = [pid for pid in children({self.process.pid}) if b"java" in command_line(pid)]
        return found

    def shown(self) -> dict[str, Any]:
        """Returns the worker as the service shows it; empty while the service does not know it."""
        # Under spark-submit Python is a child of the JVM.
        pids = {self.process.pid, *children({self.process.pid})}
        workers = self.daemon.call("GET", "/v1/workers").json()["items"]
        return next((each for each in workers if int(each["id"].split("-")[-2]) in pids), {})

    def wait(self, is_so: Callable[[dict[str, Any]], bool], seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """Waits until the worker fulfils the condition, and returns what the service shows."""
        deadline = time.monotonic() + seconds
        while not is_so(shown := self.shown()):
            assert self.process.poll() is None, self.log.read_text()[-6000:]
            assert time.monotonic() < deadline, f"{shown}\n{self.log.read_text()[-6000:]}"
            time.sleep(0.1)
        return shown

    def wait_until(self, state: str, executors: int = 0) -> dict[str, Any]:
        return self.wait(lambda shown: shown.get("state") == state and (shown["executors"] or 0) >= executors)
