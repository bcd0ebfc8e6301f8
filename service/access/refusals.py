"""Limits the number of refused calls that get separate entries in the audit trail."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass


@dataclass
class _Window:
    begun_at: float
    count: int = 0
    entry_id: int | None = None


@dataclass(frozen=True)
class Repeats:
    """The number of further refused calls. It is stored with the caller's last entry."""

    entry_id: int
    count: int


class Refusals:
    """Refused calls of the last minute, by caller. Each caller gets at most `OF_CALLER` entries a minute, and all
    callers together at most `OF_ALL`. Further calls are only counted. The count is stored each time it reaches a power
    of two, so that even very many calls cause few writes. Thread-safe."""

    OF_CALLER = 10
    OF_ALL = 60
    SECONDS = 60.0
    MOST_CALLERS = 10_000

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._callers: OrderedDict[str, _Window] = OrderedDict()
        self._all = _Window(0.0)

    def admit(self, caller: str, now: float) -> bool | Repeats:
        """Counts a refused call. Returns whether the call gets an entry, or the count to store with the caller's last
        entry. `now` is monotonic, in seconds."""
        with self._guard:
            window = self._callers.pop(caller, None)
            if window is None or now - window.begun_at >= self.SECONDS:
                window = _Window(now)
            self._callers[caller] = window
            if len(self._callers) > self.MOST_CALLERS:
                self._callers.popitem(last=False)
            if now - self._all.begun_at >= self.SECONDS:
                self._all = _Window(now)
            window.count += 1
            if window.count <= self.OF_CALLER:
                self._all.count += 1
                return self._all.count <= self.OF_ALL
            repeats = window.count - self.OF_CALLER
            if window.entry_id is not None and repeats & (repeats - 1) == 0:
                return Repeats(window.entry_id, repeats)
            return False

    def recorded(self, caller: str, entry_id: int) -> None:
        with self._guard:
            if (window := self._callers.get(caller)) is not None:
                window.entry_id = entry_id
