"""The CPU time of attempts: that of the worker's process and of all processes below it, such as its JVM and Spark's
Python workers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Spent:
    """CPU seconds of an attempt, up to the last reading; None if they cannot be read on this machine."""

    seconds: float | None = 0.0


class ProcessorTime:
    """Shares the CPU time among the attempts that run at once, in equal parts: threads of a JVM do not say for which
    attempt they work."""

    def __init__(self, processes: ProcessTree | None = None) -> None:
        self._processes = processes
        self._guard = threading.Lock()
        self._running: list[Spent] = []
        self._read: float | None = None

    @contextmanager
    def measured(self) -> Iterator[Spent]:
        """Yields the CPU time of an attempt, which is known when the block has ended."""
        spent = Spent()
        with self._guard:
            self._share()
            self._running.append(spent)
        try:
            yield spent
        finally:
            with self._guard:
                self._share()
                self._running = [each for each in self._running if each is not spent]

    def _share(self) -> None:
        # The process is looked up only now, because a worker may be forked from one that has imported this module.
        self._processes = self._processes or ProcessTree(_root())
        before, self._read = self._read, self._processes.seconds()
        for each in self._running:
            if before is None or self._read is None or each.seconds is None:
                each.seconds = None
            else:
                # A process that ended and was never waited for takes its time with it.
                each.seconds += max(0.0, self._read - before) / len(self._running)


def _root() -> int:
    """Under `spark-submit` the JVM is not below this process but above it."""
    return os.getppid() if "PYSPARK_GATEWAY_PORT" in os.environ else os.getpid()


class ProcessTree:
    """A process and all below it. To find them, Linux lists every process of the machine, which costs milliseconds
    where hundreds run. So they are found anew only after `most_age` seconds: a process that has begun since then, and
    still runs, counts from the next time on."""

    def __init__(self, root: int, *, most_age: float = 2.0) -> None:
        self._root, self._most_age = root, most_age
        self._found: list[int] = []
        self._found_at: float | None = None

    def seconds(self) -> float | None:
        """Returns the CPU seconds, including ended processes if their parent has waited for them. None without a
        `/proc` of Linux."""
        now = time.monotonic()
        if self._found_at is None or now - self._found_at > self._most_age:
            self._found, self._found_at = _tree(self._root), now
        known = [(process, stat) for process in self._found if (stat := _stat(process))]
        if not known:
            return None
        return sum(
            _exact(process, (int(stat[11]) + int(stat[12])) / _TICKS) + (int(stat[13]) + int(stat[14])) / _TICKS
            for process, stat in known
        )


def _tree(root: int) -> list[int]:
    """Returns the numbers of a process and of all below it; none without a `/proc`."""
    children: dict[int, list[int]] = {}
    try:
        with os.scandir("/proc") as entries:
            every = [int(each.name) for each in entries if each.name.isdigit()]
    except OSError:
        return []
    for process in every:
        if stat := _stat(process):
            children.setdefault(int(stat[1]), []).append(process)
    found = [root]
    for process in found:
        found += children.get(process, ())
    return found


def _exact(process: int, seconds: float) -> float:
    """Returns the CPU seconds of a process by its own clock, because a tick is a tenth of a small job
    (`clock_getcpuclockid(3)`; Linux makes the number by `MAKE_PROCESS_CPUCLOCK`). Without that clock returns `seconds`.
    """
    try:
        return time.clock_gettime(~process << 3 | 2)
    except OSError:
        return seconds


def _stat(process: int) -> list[bytes] | None:
    """Returns the fields of `/proc/PID/stat` from the state on, which has number 3 in proc(5): the parent is number 4,
    the ticks of the process and of its ended children are numbers 14 to 17. The name before them may have any
    characters."""
    try:
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        # The process has ended.
        return None


of_worker = ProcessorTime()
"""The time of this process, which all slots share."""
