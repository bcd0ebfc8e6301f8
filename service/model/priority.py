"""Lets threads for which nobody waits leave the processors to those that answer calls."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

# Beside busy threads of the usual priority, such a thread still gets a tenth of a processor.
_NICENESS = 10


def give_way() -> None:
    """Lowers the priority of the calling thread for good: without a privilege, a process cannot raise it again. Only
    Linux has a priority for each thread; elsewhere nothing changes."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
