"""A standby: a worker that its supervisor has started ahead of time. It takes over at once when another worker ends."""

from __future__ import annotations

import os
import sys
import threading

from jobs.local_process import STANDBY


def call() -> threading.Event:
    """Returns an event that is set when the worker is called to take jobs. A standby is called by a line on standard
    input; for any other worker the event is set from the beginning."""
    called = threading.Event()
    if STANDBY not in os.environ:
        called.set()
        return called

    def listen() -> None:
        # If the pipe is closed without a line, the supervisor is gone, and `jobs.worker.parent_process` ends the
        # worker.
        if sys.stdin.buffer.readline():
            called.set()

    threading.Thread(target=listen, name="standby", daemon=True).start()
    return called
