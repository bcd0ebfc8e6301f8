"""Time is handed in wherever it matters, so that tests can turn the clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The wall clock, as an aware datetime in UTC."""
    return datetime.now(UTC)
