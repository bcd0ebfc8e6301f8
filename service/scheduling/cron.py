"""Cron expressions: five fields, in the local time of a time zone, with the semantics of Debian's cron."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

if TYPE_CHECKING:
    from datetime import datetime


def next_after(expression: str, time_zone: str, moment: datetime) -> datetime | None:
    """Returns the first time after `moment`, in UTC; None when there is none within decades.

    Raises ValueError for an invalid expression.
    """
    try:
        found = next(CronSim(expression, moment.astimezone(ZoneInfo(time_zone))), None)
    except CronSimError as error:
        raise ValueError(f"{error}") from error
    return found.astimezone(UTC) if found else None
