"""Cron expressions: five fields, in the local time of a time zone, with the semantics of Debian's cron."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

_FIELDS = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, as many as the month has",
    "month": "1 to 12, or JAN to DEC",
    "day-of-week": "0 to 7, or SUN to SAT",
}
"""The fields in their order: the names that the library's errors use, and the values of each."""


def next_after(expression: str, time_zone: str, moment: datetime) -> datetime | None:
    """Returns the first time after `moment`, in UTC; None when there is none within decades.

    Raises ValueError for an invalid expression.
    """
    try:
        found = next(CronSim(expression, moment.astimezone(ZoneInfo(time_zone))), None)
    except CronSimError as error:
        raise ValueError(_wrong(str(error))) from error
    return found.astimezone(UTC) if found else None


def _wrong(said: str) -> str:
    """Returns the library's error as a predicate about the expression."""
    named = said.removeprefix("Bad ")
    if named in _FIELDS:
        name = named.replace("-", " ")
        return f"has a wrong {name}: it takes {_FIELDS[named]}, ranges such as 1-3 and steps such as */2"
    fields = ", ".join(name.replace("-", " ") for name in _FIELDS)
    return f"must have the five fields of cron, separated by spaces: {fields}"
