"""Events about a registered table.

An event's id is derived from what happened, so an event that is published twice is stored only once.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from jobs.contract import Problem
from service.catalog.registration import Registration
from service.events.event import Event, EventType, event_id

UNHEALTHY_AFTER = 3
"""`table.unhealthy` is published after this many failed polls in a row. A single failure of the storage is common."""


def table_registered(table: Registration, at: datetime) -> Event:
    return event_of_table(EventType.TABLE_REGISTERED, table, at, (table.id,), {})


def table_unhealthy(table: Registration, problem: Problem, at: datetime) -> Event:
    return event_of_table(
        EventType.TABLE_UNHEALTHY, table, at, (table.id, at.isoformat()), {"problem": problem.to_json()}
    )


def table_recovered(table: Registration, at: datetime) -> Event:
    return event_of_table(EventType.TABLE_RECOVERED, table, at, (table.id, at.isoformat()), {})


def event_of_table(
    type_: EventType, table: Registration, at: datetime, parts: tuple[object, ...], data: dict[str, Any]
) -> Event:
    """Returns an event with an id derived from `type_` and `parts`, and with the table and `data` as its data."""
    about = {"id": table.id, "name": table.name, "base_path": table.base_path}
    return Event(event_id(type_.value, *parts), type_, at, table.id, {"table": about, **data})
