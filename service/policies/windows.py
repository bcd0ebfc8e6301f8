"""Maintenance windows: when jobs of a policy may start.

Windows are in local time, with the rule of calendars (RFC 5545, section 3.3.5). A time that the change to daylight
saving time skips counts by the clock as it was before the change. A time that occurs twice in autumn means its first
occurrence. So if the clock goes from 02:00 to 03:00, the window 02:10 to 02:50 is open from 03:10 to 03:50. The window
02:00 to 03:00 then has no length and does not open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from service.policies.policy import DAYS, Window


def closes_at(windows: Sequence[Window], time_zone: str, now: datetime) -> datetime | None:
    """Returns when the open window closes: the latest time if several are open, None if no window is open."""
    return max((end for start, end in _around(windows, time_zone, now) if start <= now < end), default=None)


def opens_at(windows: Sequence[Window], time_zone: str, now: datetime) -> datetime | None:
    """Returns the next moment at which a window opens, in UTC; None if `windows` is empty."""
    return min((start for start, end in _around(windows, time_zone, now) if now < start < end), default=None)


def spans(
    windows: Sequence[Window], time_zone: str, since: datetime, until: datetime
) -> list[tuple[datetime, datetime]]:
    """Returns the times of a period in which at least one window is open, in UTC, in order and without overlaps."""
    found: list[tuple[datetime, datetime]] = []
    for start, end in sorted(_around(windows, time_zone, since, (until - since).days + 2)):
        if end <= since or start >= until or start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _around(
    windows: Sequence[Window], time_zone: str, now: datetime, ahead: int = 16
) -> Iterator[tuple[datetime, datetime]]:
    """Yields, in UTC, start and end of the windows that may be open now or may open in the next days (`ahead`)."""
    zone = ZoneInfo(time_zone)
    today = now.astimezone(zone).date()
    for window in windows:
        # Yesterday's window may extend into today. The search goes beyond a week, because next week's window may lie in
        # an hour that is skipped.
        for days in range(-1, ahead):
            day = today + timedelta(days=days)
            if not window.days or DAYS[day.weekday()] in window.days:
                yield _span(window, day, zone)


def _span(window: Window, day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    last_day = day if window.end > window.start else day + timedelta(days=1)
    start = datetime.combine(day, window.start, zone)
    end = datetime.combine(last_day, window.end, zone)
    return start.astimezone(UTC), end.astimezone(UTC)
