"""Moments in time from Hudi's instants."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - in UTC, without zone, as all moments of storages here
_SECONDS = len("yyyyMMddHHmmss")
_FIRST_YEAR, _LAST_YEAR = 1970, 3000
_REMEMBERED = 4096


@lru_cache(_REMEMBERED)
def wall_clock(instant: str) -> datetime:
    """Parses `yyyyMMddHHmmssSSS`, whose milliseconds may be missing (`HoodieInstantTimeGenerator`, 1.2.0).

    Raises ValueError for text that is not a date, such as `HoodieTimeline.INIT_INSTANT_TS`.
    """
    text = instant[: _SECONDS + 3]
    if len(text) < _SECONDS or not (text.isascii() and text.isdigit()):
        raise ValueError(f"{instant} is no instant")
    # A poll parses hundreds, each several times, and `strptime` takes ten times as long.
    return datetime(  # noqa: DTZ001 - an instant names no zone
        int(text[:4]),
        int(text[4:6]),
        int(text[6:8]),
        int(text[8:10]),
        int(text[10:12]),
        int(text[12:_SECONDS]),
        1000 * int(text[_SECONDS:] or 0),
    )


def moment(instant: str, properties: Mapping[str, str], offset: timedelta | None = None) -> datetime | None:
    """Returns the moment in UTC, by the table's `hoodie.properties`; None if the text is not a plausible date. `offset`
    is the measured offset of the writers' clock from UTC (`jobs.format.clock_frame`). Without it, and if the timeline
    is not in UTC (`hoodie.table.timeline.timezone`), the zone of the writers is unknown; then this function assumes its
    own zone, as every Hudi client does."""
    try:
        at = wall_clock(instant)
        if not _FIRST_YEAR <= at.year < _LAST_YEAR:
            return None  # Adding an interval to such a date could leave the calendar.
        if offset is not None:
            return at.replace(tzinfo=UTC) - offset
        if properties.get("hoodie.table.timeline.timezone", "LOCAL").upper() == "UTC":
            return at.replace(tzinfo=UTC)
        return at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def instant_of(at: datetime) -> str:
    """Returns the wall-clock time as an instant, to the millisecond: the reverse of `wall_clock`."""
    return f"{at:%Y%m%d%H%M%S}{at.microsecond // 1000:03d}"


def utc_text(at: datetime) -> str:
    """Returns a moment (in UTC, without zone) as text for results."""
    return f"{at.isoformat(timespec='seconds')}Z"
