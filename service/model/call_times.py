"""The time that a call takes, in parts. The answer names them in the header `Server-Timing`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class CallTimes:
    """Measures one call, from its arrival at the service."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._parts: dict[str, float] = {}

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Measures the time in the thread that answers the call. The time before that is the part `wait`."""
        on_processor = time.thread_time()
        self._parts = {"wait": time.perf_counter() - self._began, "database": 0.0}
        try:
            yield
        finally:
            self._parts["cpu"] = time.thread_time() - on_processor

    @contextmanager
    def in_database(self) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            if "database" in self._parts:
                self._parts["database"] += time.perf_counter() - began

    def header(self) -> str:
        """Returns the measured parts and the total, in milliseconds. The parts `cpu` and `database` are within the time
        between `wait` and `total`."""
        parts = {**self._parts, "total": time.perf_counter() - self._began}
        return ", ".join(f"{name};dur={1000 * seconds:.1f}" for name, seconds in parts.items())


# The threads that run calls of the API inherit this variable.
current: ContextVar[CallTimes | None] = ContextVar("call_times", default=None)
"""The times of the current call."""
