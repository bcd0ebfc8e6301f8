"""Notices commits to SQLite that others may be waiting for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class CommitWatch:
    """Tells whether there are new commits, by this process or by others. Commits within `quietly` do not count, because
    otherwise each poll and each heartbeat would wake the threads and callers that wait for something else. Thread-safe.

    `version` returns a number that each commit changes, or None if the number cannot be read.
    """

    def __init__(self, version: Callable[[], int | None]) -> None:
        self._version = version
        self._guard = threading.Lock()
        self._heard: int | None = None

    def are_new(self) -> bool:
        """Returns whether something was committed since the last call."""
        with self._guard:
            last, self._heard = self._heard, self._version()
            return self._heard is None or last != self._heard

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """Makes `are_new` ignore the transaction that commits in the block. The transaction must have begun to write
        before the block, so that no other transaction can commit within the block. A commit right after the block may
        be missed, as a notification may be."""
        before = self._version()
        yield
        with self._guard:
            # If the numbers differ, `are_new` has not reported an earlier commit yet. Then the stored number must stay,
            # so that `are_new` reports that commit.
            if before is not None and before == self._heard:
                self._heard = self._version()
