"""Counters in the database, which are the same in all replicas. They count since the database was created."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import sqlite

from service.db import schema
from service.events.event import Event, EventType

_t = schema.tallies

EVENTS = "events"
JOBS_FINISHED = "jobs_finished"

_ENDS: Mapping[str, str] = {
    EventType.JOB_SUCCEEDED: "succeeded",
    EventType.JOB_FAILED: "failed",
    EventType.JOB_CANCELLED: "cancelled",
}

Tallies = Mapping[str, Mapping[tuple[str, ...], float]]
"""Amounts by name and labels."""


@dataclass(frozen=True)
class Count:
    """An amount to add to one counter. `labels` have no commas, and are values of closed sets, such as job kinds,
    because each combination is a row that is never deleted."""

    name: str
    labels: tuple[str, ...] = ()
    amount: float = 1.0


def of_events(events: Iterable[Event]) -> list[Count]:
    """Counts events by type. Also counts the ended jobs in these events by kind and outcome, without dry runs."""
    counts = []
    for event in events:
        counts.append(Count(EVENTS, (str(event.type),)))
        outcome = _ENDS.get(event.type)
        if outcome and not event.data["job"]["dry_run"]:
            counts.append(Count(JOBS_FINISHED, (event.data["job"]["kind"], outcome)))
    return counts


def add(connection: Connection, counts: Iterable[Count]) -> None:
    """Adds the amounts to the counters in SQLite. In PostgreSQL the outbox adds them, in the statement that takes the
    outbox's lock."""
    amounts: defaultdict[tuple[str, str], float] = defaultdict(float)
    for each in counts:
        amounts[each.name, text_of(each)] += each.amount
    rows = [
        {"name": name, "labels": labels, "value": amount}
        for (name, labels), amount in sorted(amounts.items())
        if amount
    ]
    if rows:
        connection.execute(_ADD, rows)


_NEW = sqlite.insert(_t)
_ADD = _NEW.on_conflict_do_update(index_elements=["name", "labels"], set_={"value": _t.c.value + _NEW.excluded.value})


def text_of(count: Count) -> str:
    """Returns the labels of a counter as stored text."""
    return ",".join(count.labels)


def every(connection: Connection) -> Tallies:
    found: defaultdict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
    for row in connection.execute(sa.select(_t)):
        found[row.name][tuple(row.labels.split(",")) if row.labels else ()] = row.value
    return found
