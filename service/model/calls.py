"""Lets longer work of this process give way to calls. Python runs one thread at a time, and a thread that answers a
call gives up its turn at each row that it reads, so beside a computing thread it would wait again and again."""

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
    """The calls that are being answered."""

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
        """Waits until no call is being answered, at most for `seconds`. Returns at once if this thread answers one."""
        if not self._none.is_set() and not getattr(self._here, "answers", False):
            self._none.wait(seconds)

    def giving_way(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yields the items, and gives way between every hundred of them, for half a second in all. For as long a call
        waits in vain if it waits for a lock of the caller."""
        left = _MOST_SECONDS
        for number, item in enumerate(items, 1):
            yield item
            if number % _ITEMS_AT_ONCE == 0 and left > 0 and not self._none.is_set():
                began = time.monotonic()
                self.give_way(left)
                left -= time.monotonic() - began


calls = Calls()
"""The calls of this process."""
