"""The order in which the threads of one process write to SQLite, which admits one of them at a time."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextvars import ContextVar
from typing import Self

# The threads in which calls of the API run inherit this variable.
is_call: ContextVar[bool] = ContextVar("is_call", default=False)
"""Whether a caller of the API waits for the current work."""

# At most this many calls in a row go before waiting threads. So even many calls do not keep polls from recording their
# results.
_CALLS_IN_A_ROW = 20


class Turns:
    """A reentrant lock for `with`. Threads of calls get the lock first, other threads in the order in which they asked
    for it. Each turn ends with a pause, in which another process may begin to write."""

    def __init__(self, pause_seconds: float = 0.0) -> None:
        self._pause_seconds = pause_seconds
        self._guard = threading.Lock()
        self._holder: int | None = None
        self._depth = 0
        self._calls: deque[_Waiting] = deque()
        self._others: deque[_Waiting] = deque()
        self._in_a_row = 0

    @property
    def waiting(self) -> int:
        """The number of threads that wait for their turn."""
        with self._guard:
            return len(self._calls) + len(self._others)

    def __enter__(self) -> Self:
        me = threading.get_ident()
        with self._guard:
            if self._holder in (None, me):
                self._holder, self._depth = me, self._depth + 1
                return self
            waiting = _Waiting(me)
            (self._calls if is_call.get() else self._others).append(waiting)
        waiting.turn.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        if self._pause_seconds and self._depth == 1:
            time.sleep(self._pause_seconds)
        with self._guard:
            self._depth -= 1
            if self._depth:
                return
            following = self._next()
            self._holder, self._depth = (following.thread, 1) if following else (None, 0)
        if following:
            following.turn.release()

    def _next(self) -> _Waiting | None:
        if self._calls and not (self._others and self._in_a_row >= _CALLS_IN_A_ROW):
            self._in_a_row += 1
            return self._calls.popleft()
        self._in_a_row = 0
        return self._others.popleft() if self._others else None


class _Waiting:
    """A thread that waits for its turn."""

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.turn = threading.Lock()
        self.turn.acquire()
