"""A value whose computation is costly. All callers that need the value within about a second share it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

_Value = TypeVar("_Value")

SECOND = 1.0


class Paced(Generic[_Value]):
    """Computes the value in a thread of its own, so that no thread of the calls is occupied. Thread-safe. A value is
    kept for `rest(seconds)`, where `seconds` is the duration of its computation. For `beyond` seconds after that,
    callers still get the old value while the next one is computed."""

    def __init__(
        self,
        make: Callable[[], _Value],
        name: str,
        rest: Callable[[float], float] = lambda _: SECOND,
        *,
        beyond: float = 0.0,
    ) -> None:
        self._make = make
        self._rest = rest
        self._beyond = beyond
        self._before: Future[_Value] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._guard = threading.Lock()
        self._latest: Future[_Value] | None = None
        self._stands_until = 0.0

    def latest(self) -> Future[_Value]:
        """Returns the present value, or the value that is being computed."""
        now = time.monotonic()
        with self._guard:
            if self._latest is None or (self._latest.done() and now >= self._stands_until):
                self._before, self._latest = self._latest, self._thread.submit(self._made)
            is_recent = now < self._stands_until + self._beyond
            return self._before if self._before and is_recent and not self._latest.done() else self._latest

    def _made(self) -> _Value:
        started = time.monotonic()
        try:
            return self._make()
        finally:
            ended = time.monotonic()
            self._stands_until = ended + self._rest(ended - started)
