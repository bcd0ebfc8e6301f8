"""The content of two kinds of lock files: Hudi's filesystem lock, which Groundskeeper signs, and Hudi's lock in the
storage."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

SIGNED_BY = "groundskeeper "
"""Prefix of `owner` in a file that a worker has signed; the id of its job follows."""

UNSIGNED = "a writer that Hudi's lock file does not name"

_LONGEST = 100


@dataclass(frozen=True)
class Signature:
    """The signature in a filesystem lock (`jobs.hudi.lock`). `owner` is empty in an unsigned file, as Hudi 1.2 leaves
    it; `job_id` is None unless a worker of Groundskeeper has signed it."""

    owner: str = ""
    pid: int | None = None
    host: str = ""

    @classmethod
    def of(cls, content: bytes) -> Signature:
        """Reads a signature; never fails, because anybody may have written the file."""
        found = _object(content)
        pid = found.get("pid")
        is_number = isinstance(pid, int) and not isinstance(pid, bool)
        return cls(_text(found.get("owner")), pid if is_number else None, _text(found.get("host")))

    @property
    def job_id(self) -> str | None:
        return self.owner.removeprefix(SIGNED_BY) if self.owner.startswith(SIGNED_BY) else None

    def __str__(self) -> str:
        if not self.owner:
            return UNSIGNED
        process = f" of process {self.pid}" if self.pid is not None else ""
        return f"{self.owner}{process}{f' on {self.host}' if self.host else ''}"


@dataclass(frozen=True)
class StorageLock:
    """The state of a lock in the storage (`StorageLockData`). `owner` is a name that each instance of the provider
    gives itself; `valid_until` is in milliseconds since the epoch."""

    owner: str
    valid_until: int
    is_released: bool

    @classmethod
    def of(cls, content: bytes) -> StorageLock:
        """Reads the state. Raises ValueError for a file that Hudi has not written."""
        found = _object(content)
        until = found.get("validUntil")
        # The time must be in a year that a date can have.
        if not isinstance(until, int) or isinstance(until, bool) or not 0 <= until < 2**47:
            raise ValueError("it does not say until when it is valid")
        return cls(_text(found.get("owner")), until, found.get("expired") is True)


def _object(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str:
    return "".join(each if each.isprintable() else " " for each in value[:_LONGEST]) if isinstance(value, str) else ""
