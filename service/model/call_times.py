"""The parts of the time that a call takes, which its answer names in the header `Server-Timing`."""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class CallTimes:
    """Measures one call, from its arrival at the service."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._waited = self._in_database = self._on_processor = 0.0

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Measures the thread that answers the call. What came before it was waiting."""
        on_processor, self._waited = time.thread_time(), time.perf_counter() - self._began
        try:
            yield
        finally:
            self._on_processor = time.thread_time() - on_processor

    @contextmanager
    def in_database(self) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self._in_database += time.perf_counter() - began

    def header(self) -> str:
        """Returns the parts in milliseconds. `cpu` and `database` are parts of what remains of `total` after `wait`."""
        parts = {
            "wait": self._waited,
            "database": self._in_database,
            "cpu": self._on_processor,
            "total": time.perf_counter() - self._began,
        }
        return ", ".join(f"{name};dur={1000 * seconds:.1f}" for name, seconds in parts.items())


# The threads in which calls of the API run inherit this variable.
current: ContextVar[CallTimes | None] = ContextVar("call_times", default=None)
"""The times of the current call, if it reads."""
