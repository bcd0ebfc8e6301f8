"""The times of a cron expression on the clock of a simulation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from service.scheduling.cron import next_after
from service.scheduling.trigger_context import Calendar


@dataclass(slots=True)
class Schedule:
    """A schedule. `is_due` is true from a scheduled time until the job has started."""

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
