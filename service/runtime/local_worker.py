"""The Spark workers that `serve` starts on its own machine. `serve` restarts workers that have ended, and ends all
workers when it ends itself."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random

from jobs.local_process import STANDBY
from service.model.backoff import BackOff

log = logging.getLogger(__name__)

# An idle worker ends within this time.
_END_SECONDS = 5.0
# A worker that lived this long was healthy, so its death begins a new count for the back-off.
_HEALTHY_SECONDS = 60.0
# How long to wait for the end of the processes that a dead worker has started. If they still run after that, the
# worker's jobs are taken back only when their leases expire.
_LEFT_SECONDS = 20.0
# Settings with secrets of the service that a worker does not need: each job brings the secrets of its table.
_OF_SERVICE = {
    "GROUNDSKEEPER_DATABASE",
    "GROUNDSKEEPER_SECRET_KEYS",
    "GROUNDSKEEPER_CALLBACK_KEY",
    "GROUNDSKEEPER_ADMIN_TOKEN",
    "GROUNDSKEEPER_READER_TOKEN",
}


class LocalWorkers:
    """Runs `count` subprocesses of `command`, and `standbys` more; a standby takes over as soon as one of the others
    has ended. Each process has a thread that starts it again when it ends, with back-off if it dies again and again.
    `on_lost` is called with the number of a process when this process, and all processes that it started, have
    ended."""

    def __init__(
        self,
        command: list[str],
        *,
        count: int,
        standbys: int = 0,
        environment: Mapping[str, str],
        rng: Random,
        backoff: BackOff | None = None,
        drain_seconds: float = 10.0,
        on_lost: Callable[[int], object] | None = None,
    ) -> None:
        self._command = command
        self._environment = {**environment, "GROUNDSKEEPER_PARENT_PID": str(os.getpid()), STANDBY: "1"}
        self._count = count
        self._processes = count + standbys if count else 0
        self._rng = rng
        self._backoff = backoff or BackOff(first=1.0, most=60.0)
        self._drain_seconds = drain_seconds
        self._on_lost = on_lost
        self._stopping = threading.Event()
        self._guard = threading.Lock()
        self._running: dict[int, subprocess.Popen[bytes]] = {}  # The oldest first.
        self._called: set[int] = set()
        self._watchers: list[threading.Thread] = []

    def start(self, *, on_death: Callable[[str], None]) -> None:
        """Starts the watchers. `on_death` is called if a watcher cannot go on, for example if no process can be
        started."""
        for number in range(1, self._processes + 1):
            watcher = threading.Thread(
                target=self._watch, args=(number, on_death), name=f"worker-{number}", daemon=True
            )
            self._watchers.append(watcher)
            watcher.start()

    def stop(self) -> None:
        """Terminates all workers, waits, and kills those that do not end. It is safe to call this twice."""
        with self._guard:
            self._stopping.set()
            running = list(self._running.values())
        for process in running:
            process.terminate()
        end = time.monotonic() + self._drain_seconds + _END_SECONDS
        for process in running:
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("Local worker %s does not end; killing it", process.pid)
                process.kill()
                process.wait()
        for watcher in self._watchers:
            watcher.join(timeout=5)

    def _watch(self, number: int, on_death: Callable[[str], None]) -> None:
        deaths = 0
        while True:
            with self._guard:
                if self._stopping.is_set():
                    return
                try:
                    process = self._open()
                except OSError as error:
                    on_death(f"the local worker cannot be started: {error}")
                    return
                self._running[number] = process
                self._call()
            started = time.monotonic()
            code = process.wait()
            with self._guard:
                self._running.pop(number, None)
                self._called.discard(number)
                if self._stopping.is_set():
                    return
                self._call()
            if self._on_lost:
                threading.Thread(target=self._lost, args=(process.pid,), name="lost worker", daemon=True).start()
            if code == 0:
                log.info("Local worker %d ended by itself; starting a new one", number)
                deaths = 0
                continue
            deaths = 1 if time.monotonic() - started > _HEALTHY_SECONDS else deaths + 1
            pause = self._backoff.delay(deaths - 1, self._rng).total_seconds() if deaths > 1 else 0.0
            log.warning("Local worker %d ended with code %d; restarting it in %.1f s", number, code, pause)
            if self._stopping.wait(pause):
                return

    def _open(self) -> subprocess.Popen[bytes]:
        # The process gets a new session, so that Ctrl-C reaches only the service, which then stops the worker in order.
        return subprocess.Popen(
            self._command, env={**_inherited(), **self._environment}, stdin=subprocess.PIPE, start_new_session=True
        )

    def _call(self) -> None:
        """Tells the oldest processes to take jobs, so that `count` processes take jobs."""
        for number, process in self._running.items():
            if len(self._called) >= self._count:
                return
            if number not in self._called and process.stdin is not None:
                self._called.add(number)
                with suppress(OSError):  # The process has just died, which its watcher is about to notice.
                    process.stdin.write(b"\n")
                    process.stdin.close()

    def _lost(self, process: int) -> None:
        """Waits until the JVM and all other processes that could still write to a table have ended, then calls
        `on_lost`."""
        end = time.monotonic() + _LEFT_SECONDS
        while _is_any_left(process) and not self._stopping.wait(0.1):
            if time.monotonic() > end:
                return
        if self._on_lost and not self._stopping.is_set():
            self._on_lost(process)


def _is_any_left(session: int) -> bool:
    """Returns whether a process of this session runs. Also returns True if there is no /proc to read."""
    processes = Path("/proc")
    if not (processes / "self").exists():
        return True
    for entry in processes.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # The process has ended meanwhile.
                # After the name, which is in brackets, `stat` has the fields state, parent, process group and session.
                state, _, _, of_session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(of_session) == session and state != "Z":
                    return True
    return False


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _OF_SERVICE}


def command(
    service_url: str, *, master: str, slots: int, spare_slots: int, group: str, driver_memory: str
) -> list[str]:
    """Returns the command line of this installation's `groundskeeper worker`."""
    return [
        *(sys.executable, "-m", "service.cli", "worker"),
        *("--service", service_url, "--master", master),
        *("--slots", str(slots), "--spare-slots", str(spare_slots)),
        *("--group", group, "--driver-memory", driver_memory),
    ]
