"""Consumers of a table: readers that follow its commits, and tell how far they have come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


@dataclass(frozen=True)
class Consumer:
    """`instant` is the last commit that it has seen, by its requested time; `seen_at` is when it said so last."""

    table_id: str
    name: str
    instant: str
    created_at: datetime
    seen_at: datetime

    def expires_at(self, hours: int) -> datetime:
        """Returns when it counts as gone if it stays silent; `hours` is a setting of the policy of cleaning."""
        return self.seen_at + timedelta(hours=hours)

    def is_stale(self, hours: int, now: datetime) -> bool:
        return now >= self.expires_at(hours)


def awaited(consumers: Iterable[Consumer], hours: int, now: datetime) -> list[Consumer]:
    """Returns those that count, the one furthest behind first."""
    return sorted((each for each in consumers if not each.is_stale(hours, now)), key=lambda each: each.instant)
