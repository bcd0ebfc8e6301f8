"""Tables that somebody wants looked at now: a callback said that something was committed, or a job has ended.

It reaches this process only, and is lost with it. Then the next poll finds what there is.
"""

from __future__ import annotations

import threading


class PollRequests:
    """May be used from any thread. `notified` is set whenever there is something to do."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._wanted: set[str] = set()
        self.notified = threading.Event()

    def ask(self, table_id: str) -> bool:
        """False if the same was asked before and nobody has come to it yet."""
        with self._guard:
            is_new = table_id not in self._wanted
            self._wanted.add(table_id)
        self.notified.set()
        return is_new

    def wanted(self) -> frozenset[str]:
        with self._guard:
            return frozenset(self._wanted)

    def taken(self, table_id: str) -> None:
        """Call this *before* looking: what is asked for during the look then leads to another one."""
        with self._guard:
            self._wanted.discard(table_id)
