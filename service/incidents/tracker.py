"""Opens and closes incidents for polls, for reports of jobs, and for users.

The events of a change are published in the transaction of the change. A suspected incident is published only when it is
confirmed.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Engine

from service.catalog import decision_times, table_store, watch_store
from service.catalog.registration import Registration
from service.catalog.table_events import UNHEALTHY_AFTER, event_of_table, table_recovered, table_unhealthy
from service.db.engine import writing
from service.delivery import outbox
from service.events.event import Event, EventType
from service.events.notifier import Notifier
from service.incidents import store
from service.incidents.finding import Judged
from service.incidents.incident import MISPLACING_ROWS, Incident, IncidentState
from service.model.clock import Clock
from service.model.job_errors import IncidentClosedError


@dataclass(frozen=True)
class Change:
    """The incidents that a transaction opened, the events to publish, and how many incidents are open now."""

    opened: tuple[Incident, ...] = ()
    events: tuple[Event, ...] = ()
    still_open: int = 0


def of_poll(
    connection: Connection,
    table_id: str,
    judged: Judged,
    over: Mapping[str, str],
    now: datetime,
    *,
    unresolved: Sequence[Incident],
) -> Change:
    """Opens the incidents that the poll has found. Closes `unresolved` incidents of the table whose commit the poll has
    found repaired or undone. Also closes the incidents in `over`, which maps ids of incidents to reasons."""
    found = [
        Incident(
            id=new_id(),
            table_id=table_id,
            kind=each.kind,
            instant=each.instant,
            state=each.state,
            opened_at=now,
            operation=each.operation,
            details=each.details,
        )
        for each in judged.findings
    ]
    closing: list[Incident] = []
    for each in unresolved:
        if each.kind in MISPLACING_ROWS and each.instant in judged.repaired:
            because = f"{judged.repaired[each.instant]} moved its rows to where they belong"
            closing.append(each.closed(IncidentState.REPAIRED, because, now))
        elif each.kind in MISPLACING_ROWS and each.instant in judged.undone:
            closing.append(each.closed(IncidentState.CLEARED, "the commit was rolled back", now))
        elif each.id in over:
            closing.append(each.closed(IncidentState.CLEARED, over[each.id], now))
    if not found and not closing:
        return Change(still_open=sum(each.state is IncidentState.OPEN for each in unresolved))
    return change(connection, table_id, found, closing, now, can_be_polled=True)


def close(engine: Engine, notifier: Notifier, clock: Clock, incident_id: str, *, by: str, reason: str) -> Incident:
    """Closes an incident for a user who has found nothing (more) to repair. Raises IncidentNotFoundError or
    IncidentClosedError."""
    now = clock()
    with writing(engine) as connection:
        incident = store.get(connection, incident_id)
        closed = incident.closed(IncidentState.CLEARED, f"{by}: {reason}", now)
        changed = change(connection, incident.table_id, [], [closed], now)
        if (unresolved := store.get(connection, incident_id)) != closed:
            raise IncidentClosedError(f"The incident is {unresolved.state.value}: {unresolved.because}.")
        decision_times.wake(connection, incident.table_id, now)
        outbox.publish(connection, changed.events, now=now)
    notifier.notify()
    return closed


def change(
    connection: Connection,
    table_id: str,
    found: Sequence[Incident],
    closing: Sequence[Incident],
    now: datetime,
    *,
    can_be_polled: bool | None = None,
) -> Change:
    if not found and not closing:
        return Change(still_open=store.count_open(connection, table_id))
    # The row is locked. Otherwise two concurrent changes might both publish that no incident is open any more.
    watch = watch_store.get(connection, table_id, for_update=True)
    if can_be_polled is None:
        can_be_polled = watch.failures < UNHEALTHY_AFTER
    open_before = store.count_open(connection, table_id)
    unresolved = {each.id: each for each in store.unresolved(connection, table_id)}
    opened = tuple(store.add(connection, found))
    closed = [each for each in closing if store.close(connection, each)]
    still_open = store.count_open(connection, table_id)
    table = table_store.get(connection, table_id)
    events = [
        _event(EventType.TABLE_INCIDENT_OPENED, each, table, now) for each in opened if each.state is IncidentState.OPEN
    ]
    for each in closed:
        was_open = unresolved[each.id].state is IncidentState.OPEN
        if not was_open and each.state is IncidentState.REPAIRED:
            confirmed = dataclasses.replace(unresolved[each.id], state=IncidentState.OPEN)
            events.append(_event(EventType.TABLE_INCIDENT_OPENED, confirmed, table, now))
        if was_open or each.state is IncidentState.REPAIRED:
            events.append(_event(EventType.TABLE_INCIDENT_CLOSED, each, table, now))
    if still_open and not open_before:
        first = next(each for each in opened if each.state is IncidentState.OPEN)
        events.append(table_unhealthy(table, first.problem(), now))
    elif open_before and not still_open and can_be_polled:
        events.append(table_recovered(table, now))
    return Change(opened, tuple(events), still_open)


def new_id() -> str:
    return f"inc_{secrets.token_hex(8)}"


def _event(type_: EventType, incident: Incident, table: Registration, at: datetime) -> Event:
    data = {
        "id": incident.id,
        "kind": incident.kind.value,
        "instant": incident.instant,
        "operation": incident.operation,
        "state": incident.state.value,
        "opened_at": incident.opened_at.isoformat(),
        "closed_at": incident.closed_at.isoformat() if incident.closed_at else None,
        "because": incident.because,
        "details": dict(incident.details),
    }
    return event_of_table(type_, table, at, (incident.id,), {"incident": data})
