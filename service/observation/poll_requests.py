"""Requests to poll a table now, because a callback reported a commit, a job has ended, or somebody asked for it.

Requests are kept in this process only. If one is lost, the next regular poll finds the changes.
"""

from __future__ import annotations

import threading


class PollRequests:
    """The requests. Thread-safe. `notified` is set while a request waits."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._wanted: set[str] = set()
        self._insisted: set[str] = set()
        self.notified = threading.Event()

    def ask(self, table_id: str, *, insists: bool = False) -> bool:
        """Requests a poll. Returns False if the same request is already waiting. A table whose polls fail is polled
        only if the request `insists`."""
        with self._guard:
            is_new = table_id not in self._wanted
            self._wanted.add(table_id)
            if insists:
                self._insisted.add(table_id)
        self.notified.set()
        return is_new

    def wanted(self) -> frozenset[str]:
        with self._guard:
            return frozenset(self._wanted)

    def insisted(self) -> frozenset[str]:
        with self._guard:
            return frozenset(self._insisted)

    def taken(self, table_id: str) -> None:
        """Removes a request. Call this *before* the poll, so that a request during the poll leads to another poll."""
        with self._guard:
            self._wanted.discard(table_id)
            self._insisted.discard(table_id)
