"""Starts processes that will be killed (see `victim.py`), each one while the previous one is still running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jobs.contract import Json, WorkOrder

ROOT = Path(__file__).parents[2]
# Python workers of Spark outlive their JVM for a moment.
LAST_BREATH_SECONDS = 30.0
PATIENCE_SECONDS = 120.0


@dataclass
class Death:
    """The reports of an attempt until its process died; `stored` are the instants that the service had stored by
    then. `is_lost`: the attempt has noticed that the job is another attempt's. `memory` is the most that Python and the
    JVM had in memory, in MiB, when the last report was made."""

    steps: list[str] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    memory: tuple[int, int] = (0, 0)
    is_lost: bool = False
    result: Json | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Surroundings:
    """Options that a process needs besides the jars of the test's own session; `storage` are Hadoop's options, and
    `heap` is the maximum heap of its JVM."""

    java_options: str = ""
    storage: Mapping[str, str] = field(default_factory=dict)
    heap: str = "1g"


class Doomed:
    """A warm worker process that is the leader of its own session."""

    def __init__(self, jars: Sequence[Path], log: Path, surroundings: Surroundings | None = None) -> None:
        self.log = log
        self.death = Death()
        all_jars = ",".join(map(str, jars))
        surroundings = surroundings or Surroundings()
        more = json.dumps(asdict(surroundings))
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.integration.victim", all_jars, more],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def run(
        self, plan: WorkOrder, point: Json, *, hold: str | None = None, meanwhile: Callable[[], None] | None = None
    ) -> Death:
        """Runs the plan until the process and all its children are dead.

        `meanwhile` is called while the process is suspended, and may read `death`.
        """
        self._await_ready()
        started = time.monotonic()
        self._send_line({"plan": plan.to_json(), "point": point, "hold": hold})
        death = self.death
        for line in self._process.stdout or ():
            what, _, value = line.strip().partition(" ")
            match what:
                case "step":
                    death.steps.append(value)
                case "stored":
                    death.stored.append(value)
                case "memory":
                    python, jvm = map(int, value.split())
                    death.memory = python, jvm
                case "ended":
                    death.result = json.loads(value)
                case "held":
                    if meanwhile:
                        meanwhile()
                    self._send_line("go on")
                case "lost":
                    death.is_lost = True
                case "frozen":
                    os.waitpid(self._process.pid, os.WUNTRACED)
                    try:
                        if meanwhile:
                            meanwhile()
                    finally:
                        os.killpg(self._process.pid, signal.SIGCONT)
        self._process.wait(PATIENCE_SECONDS)
        self._await_silence()
        death.seconds = time.monotonic() - started
        return death

    def end(self) -> None:
        """Ends a spare process that nobody has used."""
        self._process.kill()
        self._process.communicate()

    def _await_ready(self) -> None:
        line = self._process.stdout.readline() if self._process.stdout else ""
        assert line.strip() == "ready", line + self.log.read_text()[-4000:]

    def _send_line(self, what: object) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()

    def _await_silence(self) -> None:
        """Waits until all processes of its session have ended; JVM and Spark's Python workers end without a signal."""
        deadline = time.monotonic() + LAST_BREATH_SECONDS
        while left := _of_session(self._process.pid):
            assert time.monotonic() < deadline, f"still alive: {left}"
            time.sleep(0.01)


class Spares:
    """Starts one warm process before its use, except after the last one that a test needs."""

    def __init__(self, jars: Sequence[Path], folder: Path, surroundings: Surroundings | None = None) -> None:
        self._jars = jars
        self._surroundings = surroundings or Surroundings()
        self._folder = folder
        self._count = 0
        self._spare: Doomed | None = self._next_process()

    def take(self, *, is_last: bool = False) -> Doomed:
        taken = self._spare or self._next_process()
        self._spare = None if is_last else self._next_process()
        return taken

    def end(self) -> None:
        if self._spare:
            self._spare.end()

    def _next_process(self) -> Doomed:
        self._count += 1
        return Doomed(self._jars, self._folder / f"victim-{self._count}.log", self._surroundings)


def _of_session(session: int) -> list[str]:
    """Returns the living processes of this session, by /proc."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue
            state, _, _, of = stat[2].split()[:4]
            if int(of) == session and state not in "ZX":
                found.append(stat[0])
    return found
