"""A pool with a limited number of threads. Its threads spend most of their time waiting for storage, a cluster or the
database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")

# Number of waiting items for each thread, enough to keep the thread busy for the next moments.
_WAITING = 15
# Items run one at a time as long as they only compute, because more threads would not be faster, and would slow down
# calls. An item that has waited for this long begins anyway: the running item probably waits for storage.
_TURN_SECONDS = 0.02


class BoundedPool(Generic[Item]):
    """Works on at most `size` items at the same time. `work` must not raise, and must limit its own time. `work` may
    return the unfinished parts of an item, each as an item of its own. `keys` returns the tables that an item is about.
    `on_idle` is called when no item waits for a thread."""

    def __init__(
        self,
        work: Callable[[Item], Iterable[Item] | None],
        *,
        keys: Callable[[Item], Collection[str]],
        size: int,
        on_idle: Callable[[], None] = lambda: None,
    ) -> None:
        self._work = work
        self._keys = keys
        self._size = size
        self._on_idle = on_idle
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="pool")
        self._turn = threading.Lock()
        self._guard = threading.Condition()
        self._busy: set[str] = set()

    @property
    def busy(self) -> frozenset[str]:
        """The keys of all items that wait or run."""
        with self._guard:
            return frozenset(self._busy)

    @property
    def capacity(self) -> int:
        """The number of further keys that the pool can take. This number of items keeps the pool busy for the next
        moments."""
        with self._guard:
            return max(0, (1 + _WAITING) * self._size - len(self._busy))

    def add(self, item: Item) -> None:
        with self._guard:
            self._busy.update(self._keys(item))
        self._threads.submit(self._run, item)

    def wait(self, seconds: float) -> bool:
        """Waits until all items are done. Returns False if the wait has lasted `seconds`."""
        with self._guard:
            return self._guard.wait_for(lambda: not self._busy, seconds)

    def _run(self, item: Item) -> None:
        has_turn = self._turn.acquire(timeout=_TURN_SECONDS)
        left: list[Item] = []
        try:
            left = list(self._work(item) or ())
        finally:
            if has_turn:
                self._turn.release()
            with self._guard:
                self._busy.difference_update(self._keys(item))
                for each in left:
                    self._busy.update(self._keys(each))
                is_idle = len(self._busy) < self._size
                self._guard.notify_all()
            for each in left:
                self._threads.submit(self._run, each)
            if is_idle:
                self._on_idle()
