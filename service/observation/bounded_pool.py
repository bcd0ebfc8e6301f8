"""Threads that look at tables, so that one whose storage hangs keeps nobody but itself waiting."""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Item = TypeVar("Item")

# Threads that hang cannot be ended. So many are replaced by others; then the crew shrinks with each further one.
_MOST_STUCK = 64
# Work that waits for no storage gets done no sooner by many threads; they only keep those that answer calls from the
# interpreter. So it is one at a time, and whoever has waited for so long has met somebody who waits for storage.
_TURN_SECONDS = 0.02


class BoundedPool(Generic[Item]):
    """At most `size` items are worked on at once, not counting those that take longer than `seconds`.

    `work` must not raise. `on_late` is told once of each item that takes too long; its thread is replaced and goes when
    it comes back. The threads are daemons: they never keep a process from ending.
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
    def room(self) -> int:
        """How many more items keep the crew at work for the next moments."""
        with self._guard:
            return max(0, 16 * self._size - (len(self._busy) - len(self._late)))

    def add(self, item: Item) -> None:
        with self._guard:
            self._busy[self._key(item)] = item
            self._staff()
        self._waiting.put(item)

    def check(self) -> None:
        """Finds those that take too long. To be called every now and then."""
        now = time.monotonic()
        with self._guard:
            late = [key for key, since in self._since.items() if now - since > self._seconds and key not in self._late]
            items = [self._busy[key] for key in late]
            for key in late:
                self._late.add(key)
                self._staff()
        for item in items:
            self._on_late(item)

    def wait(self, seconds: float) -> bool:
        """Until all is done but what is late; false if it was not in time."""
        with self._guard:
            return self._guard.wait_for(lambda: len(self._busy) == len(self._late), seconds)

    def _staff(self) -> None:
        """One more thread, if there is work for it and it may be."""
        at_work = self._threads - len(self._late)
        to_do = len(self._busy) - len(self._late)
        if at_work < min(self._size, to_do) and self._threads < self._size + _MOST_STUCK:
            self._threads += 1
            threading.Thread(target=self._run, name="look", daemon=True).start()

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
