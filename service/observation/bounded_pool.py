"""A bounded pool of threads that poll tables: a table whose storage hangs delays no other."""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Item = TypeVar("Item")

# Hanging threads cannot be ended. This many are replaced; each further one makes the pool smaller.
_MAX_STUCK = 64
# More threads do not speed up work that does not wait for storage; they only take the interpreter from the threads that
# answer calls. So items run one at a time, and one that has waited this long has met one that waits for storage.
_TURN_SECONDS = 0.02


class BoundedPool(Generic[Item]):
    """Works on at most `size` items at once, not counting those that take longer than `seconds`.

    `work` must not raise. `on_late` is called once for each item that takes too long; its thread is replaced, and ends
    when the item is done. `on_idle` is called when no item waits.

    The threads are daemons, so they never keep a process from ending. Those of anyio and of `concurrent.futures` are
    not: with one of them in a read of a named pipe, the process had not ended 25 s after SIGTERM.
    """

    def __init__(
        self,
        work: Callable[[Item], None],
        *,
        key: Callable[[Item], str],
        size: int,
        seconds: float,
        on_late: Callable[[Item], None],
        on_idle: Callable[[], None],
    ) -> None:
        self._work = work
        self._key = key
        self._size = size
        self._seconds = seconds
        self._on_late = on_late
        self._on_idle = on_idle
        self._waiting: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._turn = threading.Lock()
        self._guard = threading.Condition()
        self._busy: dict[str, Item] = {}
        self._since: dict[str, float] = {}
        self._late: set[str] = set()
        self._threads = 0

    @property
    def busy(self) -> frozenset[str]:
        """The keys of the items that wait or are worked on."""
        with self._guard:
            return frozenset(self._busy)

    @property
    def capacity(self) -> int:
        """The number of further items that keep the pool busy for the next moments."""
        with self._guard:
            return max(0, 16 * self._size - (len(self._busy) - len(self._late)))

    def add(self, item: Item) -> None:
        with self._guard:
            self._busy[self._key(item)] = item
            self._add_thread()
        self._waiting.put(item)

    def check(self) -> None:
        """Finds the items that take too long. Must be called regularly."""
        now = time.monotonic()
        with self._guard:
            late = [key for key, since in self._since.items() if now - since > self._seconds and key not in self._late]
            items = [self._busy[key] for key in late]
            for key in late:
                self._late.add(key)
                self._add_thread()
        for item in items:
            self._on_late(item)

    def wait(self, seconds: float) -> bool:
        """Waits until all items but the late ones are done; returns False if that took longer than `seconds`."""
        with self._guard:
            return self._guard.wait_for(lambda: len(self._busy) == len(self._late), seconds)

    def _add_thread(self) -> None:
        """Starts one more thread if there is work for it and the limits allow it."""
        working = self._threads - len(self._late)
        unfinished = len(self._busy) - len(self._late)
        if working < min(self._size, unfinished) and self._threads < self._size + _MAX_STUCK:
            self._threads += 1
            threading.Thread(target=self._run, name="poll", daemon=True).start()

    def _run(self) -> None:
        while True:
            item = self._waiting.get()
            key = self._key(item)
            with self._guard:
                self._since[key] = time.monotonic()
            has_turn = self._turn.acquire(timeout=_TURN_SECONDS)
            try:
                self._work(item)
            finally:
                if has_turn:
                    self._turn.release()
            with self._guard:
                del self._busy[key], self._since[key]
                was_late = key in self._late
                self._late.discard(key)
                is_spare = was_late and self._threads - len(self._late) > self._size
                if is_spare:
                    self._threads -= 1
                self._guard.notify_all()
            if self._waiting.empty():
                self._on_idle()
            if is_spare:
                return
