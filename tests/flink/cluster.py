"""A Flink session cluster on this machine: a JobManager and a TaskManager with their own processes."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING, Any, Self

import httpx

from tests.flink.distribution import MODULES, distribution
from tests.flink.sql_client import SqlClient
from tests.support.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.flink.job import FlinkJob

Json = dict[str, Any]

PATIENCE_SECONDS = 90.0
SLOTS = 2
ENDED = ("FINISHED", "CANCELED", "FAILED")
_MIB = 1024 * 1024

_LOG4J = """rootLogger.level = INFO
rootLogger.appenderRef.file.ref = File
appender.file.name = File
appender.file.type = File
appender.file.fileName = ${sys:log.file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c{1} %m%n
logger.pekko.name = org.apache.pekko
logger.pekko.level = WARN
logger.hfile.name = org.apache.hudi.io.hfile
logger.hfile.level = WARN
"""
# `bash-java-utils` computes these sizes from one; a TaskManager that is started without it needs each of them.
_TASK_MANAGER = {
    "taskmanager.cpu.cores": "2.0",
    "taskmanager.memory.framework.heap.size": f"{128 * _MIB}b",
    "taskmanager.memory.framework.off-heap.size": f"{128 * _MIB}b",
    "taskmanager.memory.jvm-metaspace.size": f"{256 * _MIB}b",
    "taskmanager.memory.jvm-overhead.max": f"{192 * _MIB}b",
    "taskmanager.memory.jvm-overhead.min": f"{192 * _MIB}b",
    "taskmanager.memory.managed.size": f"{64 * _MIB}b",
    "taskmanager.memory.network.max": f"{64 * _MIB}b",
    "taskmanager.memory.network.min": f"{64 * _MIB}b",
    "taskmanager.memory.task.heap.size": f"{896 * _MIB}b",
    "taskmanager.memory.task.off-heap.size": "0b",
    "taskmanager.numberOfTaskSlots": str(SLOTS),
    "external-resources": "none",
}


class FlinkCluster:
    """A cluster whose state, savepoints and logs are in `folder`; about 1.5 GiB of memory.

    `java_options` are options of its processes, `settings` additional settings of Flink.
    """

    def __init__(
        self,
        folder: Path,
        *,
        java_options: Sequence[str] = (),
        **settings: str,
    ) -> None:
        self._folder = folder
        self._software = distribution()
        rpc, rest = free_ports(2)
        self.url = f"http://127.0.0.1:{rest}"
        self._client = SqlClient(self._software, rest)
        self._http = httpx.Client(base_url=self.url, timeout=20)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._started = 0
        self._java_options = java_options
        self._configure(rpc, rest, settings)

    def _configure(self, rpc: int, rest: int, settings: dict[str, str]) -> None:
        conf = {
            "jobmanager.rpc.address": "127.0.0.1",
            "jobmanager.rpc.port": str(rpc),
            "jobmanager.bind-host": "127.0.0.1",
            "rest.address": "127.0.0.1",
            "rest.bind-address": "127.0.0.1",
            "rest.port": str(rest),
            "rest.bind-port": str(rest),
            "taskmanager.host": "127.0.0.1",
            "taskmanager.bind-host": "127.0.0.1",
            "parallelism.default": str(SLOTS),
            "state.backend.type": "hashmap",
            "execution.checkpointing.dir": (self._folder / "checkpoints").as_uri(),
            "execution.checkpointing.savepoint-dir": (self._folder / "savepoints").as_uri(),
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1000",
            "restart-strategy.fixed-delay.delay": "1s",
            # The JobManager notices a killed TaskManager after two failed heartbeats.
            "heartbeat.interval": "1000",
            # On a busy machine waiting for the lock may take longer than Flink's 10 s.
            "pekko.ask.timeout": "60 s",
            "classloader.check-leaked-classloader": "false",
            "classloader.resolve-order": "parent-first",
            "io.tmp.dirs": str(self._folder / "tmp"),
            **settings,
        }
        for name in ("conf", "tmp"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        lines = [f"{key}: {value}\n" for key, value in conf.items()]
        (self._folder / "conf" / "config.yaml").write_text("".join(lines))
        (self._folder / "conf" / "log4j.properties").write_text(_LOG4J)

    # -- processes

    def __enter__(self) -> Self:
        try:
            self._run("jobmanager", 400, ["org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"])
            self.start_task_manager()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start_task_manager(self) -> None:
        """Starts a TaskManager, and waits until its slots are available."""
        dynamic = [part for key, value in _TASK_MANAGER.items() for part in ("-D", f"{key}={value}")]
        self._run("taskmanager", 1024, ["org.apache.flink.runtime.taskexecutor.TaskManagerRunner"], dynamic)
        self._wait_until(lambda: self._overview().get("slots-total", 0) >= SLOTS, "a TaskManager")

    def kill_task_manager(self) -> None:
        """Kills the TaskManager with SIGKILL. The jobs of the TaskManager fail over as soon as another one is
        started."""
        process = self._processes.pop("taskmanager")
        process.kill()
        process.wait()
        self._wait_until(lambda: self._overview().get("slots-total") == 0, "the loss of a TaskManager")

    def close(self) -> None:
        for name in reversed(list(self._processes)):
            process = self._processes.pop(name)
            process.kill()
            process.wait()
        self._client.close()
        self._http.close()

    def _run(self, name: str, heap: int, main: list[str], more: Sequence[str] = ()) -> None:
        self._started += 1
        log = self._folder / f"{name}-{self._started}"
        command = [*self._java(heap, log), "-cp", self._software.class_path, *main]
        with log.with_suffix(".out").open("wb") as out:
            self._processes[name] = subprocess.Popen(
                [*command, "--configDir", str(self._folder / "conf"), *more],
                env=self._environment(),
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def _java(self, heap: int, log: Path) -> list[str]:
        conf = self._folder / "conf"
        logging = [f"-Dlog.file={log}.log", f"-Dlog4j.configurationFile={conf}/log4j.properties"]
        return [
            str(self._software.java),
            f"-Xmx{heap}m",
            "-XX:MaxDirectMemorySize=300m",
            *MODULES,
            *logging,
            *self._java_options,
        ]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "FLINK_CONF_DIR": str(self._folder / "conf")}

    def log(self) -> str:
        """Returns the logs of all processes."""
        return "".join(path.read_text(errors="replace") for path in sorted(self._folder.glob("*.log")))

    def printed(self) -> str:
        """Returns what jobs have printed (connector `print`)."""
        return "".join(path.read_text(errors="replace") for path in sorted(self._folder.glob("taskmanager-*.out")))

    # -- jobs

    def start(self, job: FlinkJob, *, savepoint: str | None = None) -> str:
        """Starts a job, from a `savepoint` if one is given, and returns its id as soon as its tasks run."""
        settings = job.settings()
        if savepoint:
            settings["execution.state-recovery.path"] = savepoint
        started = self._client.submit(job.statements(), settings)
        self.wait(started)
        return started

    def state(self, job: str) -> str:
        return str(self.get(f"/jobs/{job}")["state"])

    def wait(self, job: str, state: str = "RUNNING", *, seconds: float = 0.0) -> None:
        """Waits until all tasks of the job are in this state. Raises AssertionError as soon as the job has failed."""

        def is_in_state() -> bool:
            found = self.get(f"/jobs/{job}")
            # A short job may end before a poll has seen it running.
            assert found["state"] in (state, "FINISHED") or found["state"] not in ENDED, self.exceptions(job)
            return all(vertex["status"] in (state, "FINISHED") for vertex in found["vertices"])

        self._wait_until(is_in_state, f"{job} {state}", seconds)

    def checkpoints(self, job: str) -> int:
        """Returns the number of completed checkpoints, including savepoints."""
        return int(self.get(f"/jobs/{job}/checkpoints")["counts"]["completed"])

    def wait_for_checkpoints(self, job: str, count: int) -> None:
        self._wait_until(lambda: self.checkpoints(job) >= count, f"checkpoint {count} of {job}")

    def exceptions(self, job: str) -> list[str]:
        """Returns the causes of the job's failures, the latest first."""
        entries = self.get(f"/jobs/{job}/exceptions")["exceptionHistory"]["entries"]
        return [str(entry["stacktrace"]) for entry in entries]

    def savepoint(self, job: str) -> str:
        """Makes a savepoint of a job that continues, and returns its location."""
        return self._saved(job, "savepoints", {"cancel-job": False})

    def stop_with_savepoint(self, job: str) -> str:
        """Stops the job, and returns the savepoint's location. The job has ended then, but its last commit may still be
        pending."""
        location = self._saved(job, "stop", {"drain": False})
        self._wait_until(lambda: self.state(job) in ENDED, f"the end of {job}")
        return location

    def _saved(self, job: str, verb: str, body: Json) -> str:
        asked = self._http.post(f"/jobs/{job}/{verb}", json=body)
        assert asked.status_code == 202, asked.text
        trigger = asked.json()["request-id"]

        def status() -> Json:
            return self.get(f"/jobs/{job}/savepoints/{trigger}")

        self._wait_until(lambda: status()["status"]["id"] == "COMPLETED", f"the savepoint of {job}")
        operation = status()["operation"]
        assert "location" in operation, f"{operation['failure-cause']['stack-trace']}\n{self.exceptions(job)}"
        return str(operation["location"])

    def cancel(self, job: str) -> None:
        """Ends a job at once, without a savepoint."""
        self._http.patch(f"/jobs/{job}", params={"mode": "cancel"})
        self._wait_until(lambda: self.state(job) in ENDED, f"the end of {job}")

    def cancel_all(self) -> None:
        """Ends all jobs, which frees their slots."""
        for job in self.get("/jobs")["jobs"]:
            if job["status"] not in ENDED:
                self.cancel(job["id"])

    def get(self, path: str) -> Json:
        answer = self._http.get(path)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    def _overview(self) -> Json:
        try:
            return self.get("/overview")
        except (httpx.TransportError, AssertionError):  # The JobManager is still starting.
            return {}

    def _wait_until(self, holds: Callable[[], bool], what: str, seconds: float = 0.0) -> None:
        deadline = time.monotonic() + max(seconds, PATIENCE_SECONDS)
        while not holds():
            assert time.monotonic() < deadline, f"{what} never came\n{self.log()[-8000:]}"
            for name, process in self._processes.items():
                assert process.poll() is None, f"the {name} has ended\n{self.log()[-8000:]}"
            time.sleep(0.1)
