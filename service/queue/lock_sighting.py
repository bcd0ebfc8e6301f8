"""The last known states of tables' locks, for jobs that wait for them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from service.model.formatting import duration
from service.model.lock_state import LockState
from service.model.record import Record

FRESH = timedelta(minutes=1)
"""A check that is older than this does not hold back jobs, because the process that checks may have died."""


PATIENCE = timedelta(minutes=1)
"""If a server does not answer the service, jobs wait for this time before their first attempt. After this time a worker
tries to take the lock, because it may reach a server that the service does not reach."""


@dataclass(frozen=True)
class LockSighting(Record):
    """The state of a table's lock at the last check."""

    table_id: str
    state: LockState
    holds_back: bool = False
    looked_at: datetime | None = None  # When the check began; None before the first one.
    holder: str | None = None
    since: datetime | None = None  # When the lock was taken, or when this holder or a silent server was first seen.
    detail: str = ""  # Why the state is unknown.
    # A value that a live holder keeps changing, for locks that show in no other way that the holder lives.
    token: str | None = None
    token_since: datetime | None = None  # When the present `token` was first seen.

    def is_in_the_way(self, now: datetime) -> bool:
        """Returns whether jobs that take the lock are held back."""
        return self.holds_back and self.looked_at is not None and self.looked_at > now - FRESH

    def held(self, now: datetime) -> str:
        """Returns how long the lock has been held and by whom, as far as this is known. `jobs.hudi.lock` has the same
        words."""
        if self.state is not LockState.HELD:
            return f"whose server does not answer: {self.detail.removesuffix('.')}"
        since = f" for {duration(now - self.since)}" if self.since else ""
        return f"held{since} by {self.holder or 'others'}"
