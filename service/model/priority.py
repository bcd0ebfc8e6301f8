"""Gives a low priority to threads for which nobody waits, so that threads that answer calls get the processors."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

# If other threads of the usual priority are busy, a thread with this priority still gets a tenth of a processor.
_NICENESS = 10


def give_way() -> None:
    """Lowers the priority of the calling thread for ever, because a process cannot raise a priority without a
    privilege. Only Linux has a priority for each thread; other systems do nothing here."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
