"""Sightings of the locks of tables, for the jobs that wait for them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from service.model.formatting import duration
from service.model.lock_state import LockState
from service.model.record import Record

FRESH = timedelta(minutes=1)
"""An older look holds no job back: whoever looks may have died."""


@dataclass(frozen=True)
class LockSighting(Record):
    """`looked_at` is when the look began, None before the first one. `since` is when the lock was taken, as far as its
    provider tells, else since when looks have found the same holder. `token` distinguishes holdings of a lock whose
    end can only be told by its not changing, `token_since` is when it was seen first. `detail` says why the state is
    unknown."""

    table_id: str
    state: LockState
    holds_back: bool = False
    looked_at: datetime | None = None
    holder: str | None = None
    since: datetime | None = None
    detail: str = ""
    token: str | None = None
    token_since: datetime | None = None

    def is_in_the_way(self, now: datetime) -> bool:
        """Returns whether jobs that take the lock are held back."""
        return self.holds_back and self.looked_at is not None and self.looked_at > now - FRESH

    def held(self, now: datetime) -> str:
        """Returns since when it is held and by whom, as far as known, as a worker says it (`jobs.hudi.lock`)."""
        if self.state is not LockState.HELD:
            return f"whose server does not answer: {self.detail}"
        since = f" for {duration(now - self.since)}" if self.since else ""
        return f"held{since} by {self.holder or 'others'}"
