"""Lets longer work of this process give way to calls. Python runs one thread at a time, and a thread that answers a
call gives up its turn at each row that it reads, so beside a computing thread it would wait again and again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Calls:
    """The calls that are being answered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = 0
        self._none = threading.Event()
        self._none.set()

    @contextmanager
    def answering(self) -> Iterator[None]:
        with self._lock:
            self._number += 1
            self._none.clear()
        try:
            yield
        finally:
            with self._lock:
                self._number -= 1
                if not self._number:
                    self._none.set()

    def give_way(self, seconds: float) -> None:
        """Waits until no call is being answered, at most for `seconds`."""
        if not self._none.is_set():
            self._none.wait(seconds)


calls = Calls()
"""The calls of this process."""
