"""The clock, passed in wherever time matters so that tests can control it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Returns the wall-clock time, as an aware datetime in UTC."""
    return datetime.now(UTC)
