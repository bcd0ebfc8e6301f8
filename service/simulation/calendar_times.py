"""The times of a policy on the clock of a simulation: its maintenance windows and its cron expressions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Self

from service.policies import windows
from service.policies.policy import Policy, Window
from service.scheduling.cron import next_after
from service.scheduling.trigger_context import Calendar

_AFTERWARDS = 15 * 86_400.0
_YEAR = 366 * 86_400.0


@dataclass(frozen=True, slots=True)
class OpenWindows:
    """The times at which windows open and close, in seconds since the epoch. `begins` is None if jobs may always
    start."""

    begins: Sequence[float] | None
    ends: Sequence[float] = ()

    @classmethod
    def of(cls, policy: Policy, begin: float, end: float) -> Self:
        return cls(*_spans(policy.windows, policy.time_zone, begin, end)) if policy.windows else cls(None)

    def closed_until(self, now: float) -> datetime | None:
        """Returns when the next window opens; None while one is open."""
        if self.begins is None:
            return None
        number = bisect_right(self.begins, now)
        if number and now < self.ends[number - 1]:
            return None
        # The simulation ends before the first opening that is not known.
        opens_at = self.begins[number] if number < len(self.begins) else now + _YEAR
        return datetime.fromtimestamp(opens_at, UTC)

    def closes_at(self, now: float) -> float | None:
        """Returns when the open window closes; None if no window is open, or jobs may always start."""
        number = bisect_right(self.begins, now) if self.begins else 0
        return self.ends[number - 1] if number and now < self.ends[number - 1] else None


@lru_cache(maxsize=64)
def _spans(opened: Sequence[Window], time_zone: str, begin: float, end: float) -> tuple[list[float], list[float]]:
    first, last = (datetime.fromtimestamp(each, UTC) for each in (begin, end + _AFTERWARDS))
    found = windows.spans(opened, time_zone, first, last)
    return [start.timestamp() for start, _ in found], [stop.timestamp() for _, stop in found]


@dataclass(slots=True)
class Schedule:
    """The times of a cron expression. `is_due` is true from a scheduled time until the job has started."""

    expression: str
    time_zone: str
    next_at: datetime | None
    is_due: bool = False

    @classmethod
    def after(cls, begin: datetime, expression: str, time_zone: str) -> Self:
        return cls(expression, time_zone, next_after(expression, time_zone, begin))

    def calendar(self, now: datetime) -> Calendar:
        while self.next_at is not None and self.next_at <= now:
            self.is_due = True
            self.next_at = next_after(self.expression, self.time_zone, now)
        return Calendar(self.is_due, self.next_at)
