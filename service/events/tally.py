"""Counters in the database since it was made, which are the same in all replicas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.db.upsert import insert_into
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
    """An amount to add to one counter. `labels` are values of closed sets, such as job kinds, without commas: each
    combination is a row that stays for ever."""

    name: str
    labels: tuple[str, ...] = ()
    amount: float = 1.0


def of_events(events: Iterable[Event]) -> list[Count]:
    """Counts events by type, and the jobs that they end, dry runs aside, by kind and outcome."""
    counts = []
    for event in events:
        counts.append(Count(EVENTS, (str(event.type),)))
        outcome = _ENDS.get(event.type)
        if outcome and not event.data["job"]["dry_run"]:
            counts.append(Count(JOBS_FINISHED, (event.data["job"]["kind"], outcome)))
    return counts


def add(connection: Connection, counts: Iterable[Count]) -> None:
    """Adds to the counters. The caller holds the outbox's lock, so that no two transactions each wait for a counter of
    the other one."""
    amounts: defaultdict[tuple[str, str], float] = defaultdict(float)
    for each in counts:
        amounts[each.name, ",".join(each.labels)] += each.amount
    rows = [
        {"name": name, "labels": labels, "value": amount}
        for (name, labels), amount in sorted(amounts.items())
        if amount
    ]
    if not rows:
        return
    connection.execute(_add(connection.dialect.name), rows)


@cache
def _add(dialect: str) -> sa.Insert:
    statement = insert_into(dialect, _t)
    more = {"value": _t.c.value + statement.excluded.value}
    return statement.on_conflict_do_update(index_elements=["name", "labels"], set_=more)


def every(connection: Connection) -> Tallies:
    found: defaultdict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
    for row in connection.execute(sa.select(_t)):
        found[row.name][tuple(row.labels.split(",")) if row.labels else ()] = row.value
    return found
