"""The parts of the time that a call takes, which its answer names in the header `Server-Timing`."""

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
        """Measures the thread that answers the call. What came before it was waiting."""
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
        """Returns the parts that were measured and the total, in milliseconds. `cpu` and `database` are parts of what
        remains of `total` after `wait`."""
        parts = {**self._parts, "total": time.perf_counter() - self._began}
        return ", ".join(f"{name};dur={1000 * seconds:.1f}" for name, seconds in parts.items())


# The threads in which calls of the API run inherit this variable.
current: ContextVar[CallTimes | None] = ContextVar("call_times", default=None)
"""The times of the current call."""
