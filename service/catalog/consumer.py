"""Consumers of a table. A consumer is a reader that follows the table's commits, and reports how far it has read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from jobs.spec import Documented, Spec


@dataclass(frozen=True)
class Consumer(Documented):
    """A reader that follows a table's commits."""

    table_id: str
    name: Annotated[str, Spec(examples=("orders-to-warehouse",))]
    instant: Annotated[
        str, Spec("Requested time of the last commit that the consumer has seen", examples=("20260101120000000",))
    ]
    created_at: datetime
    seen_at: Annotated[datetime, Spec("Time of its last report")]

    def expires_at(self, hours: int) -> datetime:
        """Returns when the consumer counts as gone unless it reports again. `hours` is a setting of the cleaning
        policy."""
        return self.seen_at + timedelta(hours=hours)

    def is_stale(self, hours: int, now: datetime) -> bool:
        return now >= self.expires_at(hours)


def awaited(consumers: Iterable[Consumer], hours: int, now: datetime) -> list[Consumer]:
    """Returns the consumers that do not count as gone, the one furthest behind first."""
    return sorted((each for each in consumers if not each.is_stale(hours, now)), key=lambda each: each.instant)
