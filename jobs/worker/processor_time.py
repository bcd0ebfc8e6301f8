"""The CPU time of attempts: that of the worker's process and of all processes below it, such as its JVM and Spark's
Python workers."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Spent:
    """CPU seconds of an attempt, up to the last reading; None if they cannot be read on this machine."""

    seconds: float | None = 0.0


class ProcessorTime:
    """Shares the CPU time among the attempts that run at once, in equal parts: threads of a JVM do not say for which
    attempt they work."""

    def __init__(self) -> None:
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
        before, self._read = self._read, seconds_of_tree(_root())
        for each in self._running:
            if before is None or self._read is None or each.seconds is None:
                each.seconds = None
            else:
                # A process that ended and was never waited for takes its time with it.
                each.seconds += max(0.0, self._read - before) / len(self._running)


def _root() -> int:
    """Under `spark-submit` the JVM is not below this process but above it."""
    return os.getppid() if "PYSPARK_GATEWAY_PORT" in os.environ else os.getpid()


def seconds_of_tree(root: int) -> float | None:
    """Returns the CPU seconds of a process and of all below it, ended ones included whose parent has waited for them.
    None without a `/proc` of Linux."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    try:
        with os.scandir("/proc") as entries:
            found = [int(each.name) for each in entries if each.name.isdigit()]
    except OSError:
        return None
    for process in found:
        if stat := _stat(process):
            children.setdefault(int(stat[1]), []).append(process)
            ticks[process] = sum(map(int, stat[11:15]))
    if root not in ticks:
        return None
    total, todo = 0, [root]
    while todo:
        process = todo.pop()
        total += ticks[process]
        todo += children.get(process, ())
    return total / os.sysconf("SC_CLK_TCK")


def _stat(process: int) -> list[bytes] | None:
    """Returns the fields of `/proc/PID/stat` from the state on, which has number 3 in proc(5): the parent is number 4,
    the ticks of the process and of its ended children are numbers 14 to 17. The name before them may have any
    characters."""
    try:
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        # It has ended.
        return None


of_worker = ProcessorTime()
"""That of this process, which all slots share."""
