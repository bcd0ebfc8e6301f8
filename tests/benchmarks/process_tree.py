"""Measures the cost of some work in this process and all that it started: CPU seconds and peak memory, read from
/proc."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TICKS = os.sysconf("SC_CLK_TCK")
_SAMPLE_SECONDS = 0.5


@dataclass
class Cost:
    """Seconds on the clock, and for each role CPU seconds of all its processes and the largest peak RSS in bytes.

    Roles are `jvm` (Spark's driver, which is the executor too in local mode), `driver` (this process, if it is the root
    of the tree) and `worker` (any other process, such as a Python worker).
    """

    seconds: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)
    peak_bytes: dict[str, int] = field(default_factory=dict)

    @property
    def cpu_seconds(self) -> float:
        return sum(self.cpu.values())


@contextmanager
def measured(root: int | None = None) -> Iterator[Cost]:
    """Yields the cost of the block in a process (this one by default) and all below it; its fields are set when the
    block ends."""
    cost = Cost()
    for pid in tree(root):
        _forget_peak(pid)
    ended = threading.Event()
    sampling: list[float] = []
    # The CPU time of each process at the beginning, and when it was last seen. A process may end at any time, and then
    # its time can no longer be read (nobody waits for Spark's Python workers).
    before = _cpu_seconds(root)
    latest = dict(before)
    sampler = threading.Thread(target=_sample, args=(root, cost, latest, ended, sampling), daemon=True)
    started = time.monotonic()
    sampler.start()
    try:
        yield cost
    finally:
        cost.seconds = time.monotonic() - started
        latest |= _cpu_seconds(root)
        ended.set()
        sampler.join()
        for role, seconds in _between(before, latest):
            cost.cpu[role] = cost.cpu.get(role, 0.0) + seconds
        if root is None:
            cost.cpu["driver"] -= sum(sampling)


def tree(root: int | None = None) -> list[int]:
    """Returns the ids of a process (this one by default) and of all its living descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))):
            children.setdefault(int(stat[1]), []).append(int(entry.name))
    found, todo = [], [os.getpid() if root is None else root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def memory(root: int, *, without: int | None = None) -> int:
    """Returns the bytes of memory of a process and all its living descendants, except one; shared pages count once."""
    total = 0
    for pid in {*tree(root)} - {without}:
        with suppress(OSError):  # The process has ended.
            total += int(Path(f"/proc/{pid}/smaps_rollup").read_text().partition("\nPss:")[2].split()[0])
    return total * 1024


@dataclass(frozen=True)
class _Used:
    """The CPU seconds of a process, and of its children that have ended and for which it has waited."""

    parent: int
    seconds: float = 0.0
    waited_for: float = 0.0


def _cpu_seconds(root: int | None) -> dict[tuple[int, str], _Used]:
    """Returns the CPU time of each living process of the tree, with its role."""
    living = ((pid, stat) for pid in tree(root) if (stat := _stat(pid)))
    return {
        (pid, _role(pid)): _Used(int(stat[1]), *(sum(map(int, stat[at : at + 2])) / _TICKS for at in (11, 13)))
        for pid, stat in living
    }


def _between(before: dict[tuple[int, str], _Used], latest: dict[tuple[int, str], _Used]) -> Iterator[tuple[str, float]]:
    """Yields role and CPU seconds of each process. A child that lives only between two samples, such as each
    `chmod` that Hadoop starts, is known by the time that its parent has for ended children. That time includes the
    children that were sampled, so these are subtracted."""
    of_children: dict[int, float] = {}
    for key, now in latest.items():
        spent = now.seconds - (before[key].seconds if key in before else 0.0)
        if not Path(f"/proc/{key[0]}").exists():
            of_children[now.parent] = of_children.get(now.parent, 0.0) + spent
        yield key[1], spent
    for key, now in latest.items():
        waited_for = now.waited_for - (before[key].waited_for if key in before else 0.0)
        yield key[1], max(0.0, waited_for - of_children.get(key[0], 0.0))


def _stat(pid: int) -> list[str] | None:
    """Returns the fields of /proc/<pid>/stat from the state on, which has number 3 in proc(5)."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return None


def _sample(
    root: int | None,
    cost: Cost,
    latest: dict[tuple[int, str], _Used],
    ended: threading.Event,
    sampling: list[float],
) -> None:
    """Reads the peaks of memory that the kernel keeps (VmHWM) repeatedly, because processes may end. `sampling`
    gets the CPU seconds of this reading, which do not belong to the measured work.
    """
    while True:
        is_last = ended.wait(_SAMPLE_SECONDS)
        for pid in tree(root):
            role, peak = _role(pid), _peak_bytes(pid)
            cost.peak_bytes[role] = max(cost.peak_bytes.get(role, 0), peak)
        if is_last:
            return
        latest.update(_cpu_seconds(root))
        sampling[:] = [time.thread_time()]


def _role(pid: int) -> str:
    if pid == os.getpid():
        return "driver"
    name = ""
    with suppress(OSError):
        name = Path(f"/proc/{pid}/comm").read_text().strip()
    return "jvm" if name.startswith("java") else "worker"


def _peak_bytes(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def _forget_peak(pid: int) -> None:
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")
