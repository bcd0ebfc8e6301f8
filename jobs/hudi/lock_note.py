"""The process that signed a lock file, and whether it is still alive."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def process() -> dict[str, Any]:
    """Returns what identifies this process. A worker that a container starts again may have the process id of the
    worker before, but not its time of start."""
    return {"pid": os.getpid(), "started": _started(os.getpid()), **_machine()}


def _machine() -> dict[str, str]:
    """Returns host, boot and process namespace, which distinguish processes with the same id."""
    found = {"host": socket.gethostname()}
    with suppress(OSError):
        found["boot"] = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        found["processes"] = str(Path("/proc/self/ns/pid").readlink())
    return found


def has_died(note: Mapping[str, Any]) -> bool:
    """Returns whether the process that signed no longer exists; false if it did not run on this machine."""
    machine = _machine()
    if "boot" not in machine or any(note.get(key) != value for key, value in machine.items()):
        return False
    try:
        started = _started(int(note["pid"]))
        if started is not None and note.get("started") is not None:
            return bool(note["started"] != started)
        os.kill(int(note["pid"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, KeyError, ValueError, TypeError):
        return False
    return False


def _started(pid: int) -> int | None:
    """Returns when a process was started, in ticks of the kernel's clock since the boot; None if this is not known."""
    with suppress(OSError, IndexError, ValueError):
        # The name of the program, in parentheses, may have spaces and parentheses. The start is field 22.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return None
