"""The Spark workers that `serve` starts on its own machine. They are restarted while it runs, and end with it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

from service.model.backoff import BackOff

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

log = logging.getLogger(__name__)

# Time that an idle worker takes to end.
_END_SECONDS = 5.0
# A worker that lived this long was healthy: its death starts a new count for the back-off.
_HEALTHY_SECONDS = 60.0
# Settings with secrets of the service, which a worker has no use for: it gets those of a table with a job.
_OF_SERVICE = {
    "GROUNDSKEEPER_DATABASE",
    "GROUNDSKEEPER_SECRET_KEYS",
    "GROUNDSKEEPER_CALLBACK_KEY",
    "GROUNDSKEEPER_ADMIN_TOKEN",
}


class LocalWorkers:
    """`count` subprocesses of `command`. A thread for each restarts it with back-off when it dies."""

    def __init__(
        self,
        command: list[str],
        *,
        count: int,
        environment: Mapping[str, str],
        rng: Random,
        backoff: BackOff | None = None,
        drain_seconds: float = 10.0,
    ) -> None:
        self._command = command
        self._environment = dict(environment)
        self._count = count
        self._rng = rng
        self._backoff = backoff or BackOff(first=1.0, most=60.0)
        self._drain_seconds = drain_seconds
        self._stopping = threading.Event()
        self._guard = threading.Lock()
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._watchers: list[threading.Thread] = []

    def start(self, *, on_death: Callable[[str], None]) -> None:
        """Starts the watchers. `on_death` is called if a watcher cannot go on, for example if no process can be
        started."""
        for number in range(1, self._count + 1):
            watcher = threading.Thread(
                target=self._watch, args=(number, on_death), name=f"worker-{number}", daemon=True
            )
            self._watchers.append(watcher)
            watcher.start()

    def stop(self) -> None:
        """Terminates all workers, waits, and kills those that do not end. May be called twice."""
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
                    # A new session: Ctrl-C reaches only the service, which then stops the worker in order.
                    process = subprocess.Popen(
                        self._command,
                        env={**_inherited(), **self._environment, "GROUNDSKEEPER_PARENT_PID": str(os.getpid())},
                        start_new_session=True,
                    )
                except OSError as error:
                    on_death(f"the local worker cannot be started: {error}")
                    return
                self._running[number] = process
            started = time.monotonic()
            code = process.wait()
            with self._guard:
                self._running.pop(number, None)
                if self._stopping.is_set():
                    return
            if code == 0:
                log.info("Local worker %d ended by itself; starting a new one", number)
                deaths = 0
                continue
            deaths = 1 if time.monotonic() - started > _HEALTHY_SECONDS else deaths + 1
            pause = self._backoff.delay(deaths, self._rng).total_seconds()
            log.warning("Local worker %d ended with code %d; restarting it in %.1f s", number, code, pause)
            if self._stopping.wait(pause):
                return


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
