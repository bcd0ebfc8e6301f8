"""A standalone Spark cluster from the jars that PySpark brings: a master, and workers whose executors can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import httpx
import pyspark

from jobs.hudi.java import java_home
from tests.support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

SPARK = Path(pyspark.__file__).parent
START_SECONDS = 60.0
HOST = "127.0.0.1"
# The daemons need little memory, and the executors only process small tables.
CORES, MEMORY, EXECUTOR_MEMORY = 1, "700m", "640m"
# Options for a driver on such a cluster.
CONF = {
    "spark.executor.memory": EXECUTOR_MEMORY,
    "spark.executor.cores": "1",
    "spark.driver.host": HOST,
    "spark.sql.shuffle.partitions": "2",
}


class Cluster:
    """The master and its workers, each with one core. `url` is the address for drivers."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._web = free_port()
        port = free_port()
        self.url = f"spark://{HOST}:{port}"
        self.log = folder / "log"
        self.master = self._start(
            "master.Master", "--host", HOST, "--port", str(port), "--webui-port", str(self._web), name="master"
        )
        self.workers: list[subprocess.Popen[bytes]] = []
        self._wait_for(lambda: self.state() is not None)
        for _ in range(workers):
            self.add_worker(wait=False)
        self._wait_for(lambda: len(self._alive()) == workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.workers, self.master):
            _end(process)

    def add_worker(self, *, wait: bool = True) -> None:
        number = len(self.workers)
        before = len(self._alive()) if wait else 0
        self.workers.append(
            self._start(
                "worker.Worker",
                *("--host", HOST, "--webui-port", "0", "--cores", str(CORES), "--memory", MEMORY),
                *("--work-dir", str(self._folder / f"work-{number}"), self.url),
                name=f"worker-{number}",
            )
        )
        if wait:
            self._wait_for(lambda: len(self._alive()) > before)

    def executors(self, worker: int | None = None) -> list[int]:
        """Returns the process ids of the executors of all workers or of one."""
        workers = self.workers if worker is None else [self.workers[worker]]
        parents = {process.pid for process in workers}
        return [pid for pid in children(parents) if b"ExecutorBackend" in command_line(pid)]

    def kill_worker(self, number: int) -> None:
        """Sends SIGKILL to a worker and its executors, as after a loss of its machine."""
        for pid in (self.workers[number].pid, *self.executors(number)):
            os.kill(pid, signal.SIGKILL)
        self.workers[number].wait()

    def state(self) -> dict[str, Any] | None:
        """Returns the state that the master reports; None if it does not answer."""
        try:
            found: dict[str, Any] = httpx.get(f"http://{HOST}:{self._web}/json/", timeout=5).json()
        except (httpx.HTTPError, ValueError):
            return None
        return found

    def _alive(self) -> list[Any]:
        return [worker for worker in (self.state() or {}).get("workers", []) if worker["state"] == "ALIVE"]

    def _start(self, name_of_class: str, *arguments: str, name: str) -> subprocess.Popen[bytes]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SPARK_")}
        # The children must die with this process, so that a killed test leaves no executors.
        with (self._folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [SPARK / "bin" / "spark-class", f"org.apache.spark.deploy.{name_of_class}", *arguments],
                env={
                    **environment,
                    "JAVA_HOME": str(java_home()),
                    "SPARK_HOME": str(SPARK),
                    "SPARK_LOCAL_IP": HOST,
                    "SPARK_DAEMON_MEMORY": "192m",
                },
                stdout=log,
                stderr=log,
            )

    def _wait_for(self, is_so: Callable[[], bool]) -> None:
        wait_for(is_so, START_SECONDS, self._folder)


def children(parents: Collection[int]) -> list[int]:
    """Returns the process ids of all children of these processes, by /proc."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) in parents:
                    found.append(int(entry.name))
    return sorted(found)


def command_line(pid: int) -> bytes:
    """Returns the command line of a process; empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@contextmanager
def running(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    with Cluster(folder, workers) as cluster:
        yield cluster


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_for(is_so: Callable[[], bool], seconds: float, logs: Path) -> None:
    """Waits until a cluster fulfils the condition. Fails after this time, with the ends of the logs in the folder."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "\n".join(path.read_text()[-3000:] for path in logs.glob("*.log"))
        time.sleep(0.1)
