"""Lets longer work of this process give way to calls. Python runs only one thread at a time. Whenever a thread that
answers a call reads a row, it lets other threads run. While another thread computes, the call would therefore wait at
each row."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

_Item = TypeVar("_Item")

_ITEMS_AT_ONCE = 100
_MOST_SECONDS = 0.5


class Calls:
    """Knows whether calls are being answered now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = 0
        self._none = threading.Event()
        self._none.set()
        self._here = threading.local()

    @contextmanager
    def answering(self) -> Iterator[None]:
        with self._lock:
            self._number += 1
            self._none.clear()
        self._here.answers = True
        try:
            yield
        finally:
            self._here.answers = False
            with self._lock:
                self._number -= 1
                if not self._number:
                    self._none.set()

    def give_way(self, seconds: float) -> None:
        """Waits until no call is being answered, but at most for `seconds`. Returns at once if this thread itself
        answers a call."""
        if not self._none.is_set() and not getattr(self._here, "answers", False):
            self._none.wait(seconds)

    def giving_way(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yields the items, and gives way after every hundred of them, for at most half a second in all. The limit is
        needed because a call may wait for a lock that the caller holds. Without the limit, the call and the caller
        would wait for each other."""
        left = _MOST_SECONDS
        for number, item in enumerate(items, 1):
            yield item
            if number % _ITEMS_AT_ONCE == 0 and left > 0 and not self._none.is_set():
                began = time.monotonic()
                self.give_way(left)
                left -= time.monotonic() - began


calls = Calls()
"""The calls of this process."""
