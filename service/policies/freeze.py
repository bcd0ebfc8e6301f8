"""Freezes: from one time to another the service starts no jobs by itself on some tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from jobs.spec import Spec
from service.model.formatting import utc_minute
from service.model.record import Record
from service.policies.precedence import Subject

MOST = 1000
"""At most this many freezes may exist, because each decision reads those that have not ended."""


@dataclass(frozen=True)
class Freeze(Record):
    """A freeze of the tables that match one of the patterns."""

    name: Annotated[str, Spec("Name of the freeze", examples=("black-friday",))]
    starts_at: Annotated[datetime, Spec("When the freeze begins", examples=("2026-11-27T00:00:00Z",))]
    ends_at: Annotated[datetime, Spec("When the freeze ends", examples=("2026-11-30T00:00:00Z",))]
    tables: Annotated[
        tuple[str, ...], Spec("Patterns of tables, as in policies", examples=(["orders_*", "tag:team=shop"],))
    ]
    reason: Annotated[str, Spec("The reason, for other users", examples=("the sale",))]
    set_by: Annotated[str, Spec("Who has set the freeze", examples=("ada (4f0c9d2b71aa)",))]
    created_at: datetime
    updated_at: datetime

    def is_about(self, table: Subject) -> bool:
        return any(map(table.matches, self.tables))

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"the freeze {self.name} lasts until {utc_minute(self.ends_at)}{why}"


def lasting(freezes: Iterable[Freeze], table: Subject, now: datetime) -> Freeze | None:
    """Returns the freeze that applies to a table now; if there are several, the one that ends last."""
    found = (each for each in freezes if each.starts_at <= now < each.ends_at and each.is_about(table))
    return max(found, key=lambda each: each.ends_at, default=None)


def next_start(freezes: Iterable[Freeze], table: Subject, now: datetime) -> datetime | None:
    """Returns when the next freeze of a table begins."""
    return min((each.starts_at for each in freezes if each.starts_at > now and each.is_about(table)), default=None)
