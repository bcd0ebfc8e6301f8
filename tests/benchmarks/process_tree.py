"""What a piece of work costs this process and all that it started: CPU seconds and peak memory, as /proc tells them."""

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

    Roles are `jvm` (Spark's driver, which is the executor too in local mode), `worker` (any Python process below us)
    and `driver` (this process).
    """

    seconds: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)
    peak_bytes: dict[str, int] = field(default_factory=dict)

    @property
    def cpu_seconds(self) -> float:
        return sum(self.cpu.values())


@contextmanager
def measured() -> Iterator[Cost]:
    """The cost of what is done inside; its fields are set when the block ends."""
    cost = Cost()
    for pid in tree():
        _forget_peak(pid)
    ended = threading.Event()
    sampling: list[float] = []
    sampler = threading.Thread(target=_sample, args=(cost, ended, sampling), daemon=True)
    before, started = _cpu_seconds(), time.monotonic()
    sampler.start()
    try:
        yield cost
    finally:
        cost.seconds = time.monotonic() - started
        cost.cpu = {role: seconds - before.get(role, 0.0) for role, seconds in _cpu_seconds().items()}
        ended.set()
        sampler.join()
        cost.cpu["driver"] -= sum(sampling)


def tree(root: int | None = None) -> list[int]:
    """The ids of a process (this one by default) and of all its living descendants."""
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


def _cpu_seconds() -> dict[str, float]:
    """Of the whole tree by role.

    A process that has ended counts in its parent's sum of reaped children, so those of the JVM are workers.
    """
    found: dict[str, float] = {}
    for pid in tree():
        if stat := _stat(pid):
            role = _role(pid)
            own, reaped = (sum(int(ticks) for ticks in part) / _TICKS for part in (stat[11:13], stat[13:15]))
            found[role] = found.get(role, 0.0) + own
            reaped_role = "worker" if role == "jvm" else role
            found[reaped_role] = found.get(reaped_role, 0.0) + reaped
    return found


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat from the state on: proc(5) numbers them from 3."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return None


def _sample(cost: Cost, ended: threading.Event, sampling: list[float]) -> None:
    """Peaks are kept by the kernel (VmHWM); they are looked at now and then only because processes may end.

    `sampling` gets the CPU seconds that this takes, which are not the cost of what is measured.
    """
    while True:
        is_last = ended.wait(_SAMPLE_SECONDS)
        for pid in tree():
            role, peak = _role(pid), _peak_bytes(pid)
            cost.peak_bytes[role] = max(cost.peak_bytes.get(role, 0), peak)
        if is_last:
            return
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
