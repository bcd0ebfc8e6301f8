"""The process that signed a lock file, and whether it is still alive."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def machine() -> dict[str, str]:
    """Returns host, boot and process namespace, which distinguish processes with the same id."""
    found = {"host": socket.gethostname()}
    with suppress(OSError):
        found["boot"] = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        found["processes"] = str(Path("/proc/self/ns/pid").readlink())
    return found


def has_died(note: Mapping[str, Any]) -> bool:
    """Returns whether the process that signed no longer exists; false if it did not run on this machine."""
    here = machine()
    if "boot" not in here or any(note.get(key) != value for key, value in here.items()):
        return False
    try:
        os.kill(int(note["pid"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, KeyError, ValueError):
        return False
    return False
