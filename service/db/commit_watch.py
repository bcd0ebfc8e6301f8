"""Notices commits to SQLite for which somebody may wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class CommitWatch:
    """Tells whether there are new commits, of this process or of others. Those of `quietly` do not count: a poll or a
    sign of life would wake every thread and caller that waits for something else. Thread-safe.

    `version` returns a number that each commit changes, or None if it cannot be read.
    """

    def __init__(self, version: Callable[[], int | None]) -> None:
        self._version = version
        self._guard = threading.Lock()
        self._heard: int | None = None

    def are_new(self) -> bool:
        """Whether something was committed since the last call."""
        with self._guard:
            last, self._heard = self._heard, self._version()
            return self._heard is None or last != self._heard

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """Lets a transaction that has begun to write, and is committed in the block, not count as new. No other one
        can commit within it; one that does so right afterwards may be missed, as a notification may be."""
        before = self._version()
        yield
        with self._guard:
            # If not, an earlier commit is still new.
            if before is not None and before == self._heard:
                self._heard = self._version()
