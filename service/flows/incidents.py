"""Incidents are opened and closed: by looks, by what jobs report, and by people.

Each change is told of in the transaction in which it is made. A suspicion is told of only when it has proved right.
"""

from __future__ import annotations

import dataclasses
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobs.contract import JobKind
from service.flows import telling
from service.model import announcement
from service.model.errors import IncidentClosedError
from service.model.incident import (
    ASTRAY,
    HELD_BACK,
    Incident,
    IncidentKind,
    IncidentState,
    astray,
)
from service.model.job import JobState
from service.policy.past import WITHDRAWN_BY_INCIDENT
from service.store import incidents, jobs, outbox, planning, tables, watches
from service.store.engine import writing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Engine

    from jobs.contract import Result
    from service.flows.astray import Judged
    from service.flows.bell import Bell
    from service.model.clock import Clock
    from service.model.event import Event
    from service.model.job import Job


@dataclass(frozen=True)
class Change:
    """What a transaction did to the incidents of a table, what there is to tell of that, and how many are open now."""

    opened: tuple[Incident, ...] = ()
    events: tuple[Event, ...] = ()
    still_open: int = 0


def of_look(connection: Connection, table_id: str, judged: Judged, over: Mapping[str, str], now: datetime) -> Change:
    """Opens what the look has found, and closes what it has seen repaired, undone, or over: `over` maps ids of
    incidents to the reasons why they are. Takes back the queued jobs that must not start any more."""
    found = [
        Incident(
            id=_new_id(),
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
    for each in incidents.standing(connection, table_id):
        if each.kind in ASTRAY and each.instant in judged.repaired:
            because = f"{judged.repaired[each.instant]} brought its rows over"
            closing.append(each.closed(IncidentState.REPAIRED, because, now))
        elif each.kind in ASTRAY and each.instant in judged.undone:
            closing.append(each.closed(IncidentState.CLEARED, "the commit was rolled back", now))
        elif each.id in over:
            closing.append(each.closed(IncidentState.CLEARED, over[each.id], now))
    change = _change(connection, table_id, found, closing, now, can_be_looked_at=True)
    withdrawn = _withdraw(connection, table_id, now) if astray(change.opened) else []
    return dataclasses.replace(change, events=(*change.events, *withdrawn))


def of_report(connection: Connection, before: Job, after: Job, result: Result, now: datetime) -> list[Event]:
    """What a job says of incidents: the writes that it fenced, and those that a repair found nothing wrong with."""
    if before.dry_run:
        return []
    found = [
        Incident(
            id=_new_id(),
            table_id=before.table_id,
            kind=IncidentKind.LATE_FILES,
            instant=instant,
            state=IncidentState.OPEN,
            opened_at=now,
            details={"job_id": before.id, "job_kind": before.kind.value},
        )
        for instant in _instants(result, "fenced")
    ]
    closing: list[Incident] = []
    if before.kind is JobKind.REPAIR and after.state is JobState.SUCCEEDED:
        because = f"repair {before.id} found all its rows where they belong"
        cleared = incidents.standing(connection, before.table_id, of=_instants(result, "cleared"))
        closing = [each.closed(IncidentState.CLEARED, because, now) for each in cleared if each.kind in ASTRAY]
    return list(_change(connection, before.table_id, found, closing, now).events)


def close(engine: Engine, bell: Bell, clock: Clock, incident_id: str, *, by: str, reason: str) -> Incident:
    """Somebody says that there is nothing (more) to repair. Raises IncidentNotFoundError, IncidentClosedError."""
    now = clock()
    with writing(engine) as connection:
        incident = incidents.get(connection, incident_id)
        closed = incident.closed(IncidentState.CLEARED, f"{by}: {reason}", now)
        change = _change(connection, incident.table_id, [], [closed], now)
        if (standing := incidents.get(connection, incident_id)) != closed:
            raise IncidentClosedError(f"It is {standing.state.value}: {standing.because}.")
        planning.wake(connection, incident.table_id, now)
        outbox.publish(connection, change.events, now=now)
    bell.ring()
    return closed


def _change(
    connection: Connection,
    table_id: str,
    found: Sequence[Incident],
    closing: Sequence[Incident],
    now: datetime,
    *,
    can_be_looked_at: bool | None = None,
) -> Change:
    if not found and not closing:
        return Change(still_open=incidents.count_open(connection, table_id))
    # Locked, so that of two that change the table's incidents one tells that it has none any more.
    watch = watches.get(connection, table_id, for_update=True)
    if can_be_looked_at is None:
        can_be_looked_at = watch.failures < telling.UNHEALTHY_AFTER
    open_before = incidents.count_open(connection, table_id)
    standing = {each.id: each for each in incidents.standing(connection, table_id)}
    opened = tuple(incidents.add(connection, found))
    closed = [each for each in closing if incidents.close(connection, each)]
    still_open = incidents.count_open(connection, table_id)
    table = tables.get(connection, table_id)
    events = [announcement.incident_opened(each, table, now) for each in opened if each.state is IncidentState.OPEN]
    for each in closed:
        was_open = standing[each.id].state is IncidentState.OPEN
        if not was_open and each.state is IncidentState.REPAIRED:
            confirmed = dataclasses.replace(standing[each.id], state=IncidentState.OPEN)
            events.append(announcement.incident_opened(confirmed, table, now))
        if was_open or each.state is IncidentState.REPAIRED:
            events.append(announcement.incident_closed(each, table, now))
    if still_open and not open_before:
        first = next(each for each in opened if each.state is IncidentState.OPEN)
        events.append(announcement.table_unhealthy(table, first.problem(), now))
    elif open_before and not still_open and can_be_looked_at:
        events.append(announcement.table_recovered(table, now))
    return Change(opened, tuple(events), still_open)


def _withdraw(connection: Connection, table_id: str, now: datetime) -> list[Event]:
    """What rows that are astray hold back must not start any more, whoever asked for it. A rewriting job that has begun
    goes on: its next attempt has to finish or undo what the last one left. A cleaning leaves nothing to undo."""
    queued = [
        job for job in jobs.queued(connection, table_id, HELD_BACK) if job.attempt == 0 or job.kind is JobKind.CLEANING
    ]
    for job in queued:
        jobs.cancel_queued(connection, job.id, error=WITHDRAWN_BY_INCIDENT, now=now)
    return [telling.of_job(connection, job.id, now, announcement.job_ended) for job in queued]


def _instants(result: Result, name: str) -> list[str]:
    """A worker may be older or newer than the service, so nothing is taken for granted."""
    given = result.details.get(name)
    return [each for each in given if isinstance(each, str)] if isinstance(given, list | tuple) else []


def _new_id() -> str:
    return f"inc_{secrets.token_hex(8)}"
