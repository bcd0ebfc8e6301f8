"""The states of a table's lock."""

from __future__ import annotations

from enum import StrEnum


class LockState(StrEnum):
    """The state of a lock. `UNKNOWN`: the lock's provider keeps it where the service cannot read it, or the lock's file
    does not have Hudi's format."""

    HELD = "held"
    FREE = "free"
    UNKNOWN = "unknown"
