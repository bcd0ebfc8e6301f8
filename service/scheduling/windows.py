"""Maintenance windows: whether jobs may start now, and if not, when they may.

Windows are of the clock on the wall. A time that the clock skips in spring counts as the moment of the jump, one that
it shows twice in autumn as the first of both; so a window that lies wholly in the skipped hour is not held that day.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from service.policies.policy import DAYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date

    from service.policies.policy import Window


def closes_at(windows: Sequence[Window], time_zone: str, now: datetime) -> datetime | None:
    """When the window that is open now closes, the last one of several; None when all are closed."""
    return max((end for start, end in _around(windows, time_zone, now) if start <= now < end), default=None)


def opens_at(windows: Sequence[Window], time_zone: str, now: datetime) -> datetime | None:
    """The next moment at which one opens, in UTC; None if `windows` is empty."""
    return min((start for start, end in _around(windows, time_zone, now) if now < start < end), default=None)


def _around(windows: Sequence[Window], time_zone: str, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Start and end of those that may be open now or open next."""
    zone = ZoneInfo(time_zone)
    today = now.astimezone(zone).date()
    for window in windows:
        # From yesterday, whose window may reach into today; two weeks on, for next week's may fall in a skipped hour.
        for days in range(-1, 16):
            day = today + timedelta(days=days)
            if not window.days or DAYS[day.weekday()] in window.days:
                yield _span(window, day, zone)


def _span(window: Window, day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    last_day = day if window.end > window.start else day + timedelta(days=1)
    start = datetime.combine(day, window.start, zone)
    end = datetime.combine(last_day, window.end, zone)
    return start.astimezone(UTC), end.astimezone(UTC)
