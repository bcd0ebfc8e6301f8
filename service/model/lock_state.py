"""The states of a table's lock."""

from __future__ import annotations

from enum import StrEnum


class LockState(StrEnum):
    """`UNKNOWN`: its provider keeps it where the service cannot read it, or its file is not
    Hudi's."""

    HELD = "held"
    FREE = "free"
    UNKNOWN = "unknown"
