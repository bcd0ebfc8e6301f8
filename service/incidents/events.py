"""Events about incidents."""

from __future__ import annotations

from datetime import datetime

from service.catalog.registration import Registration
from service.catalog.table_events import event_of_table
from service.events.event import Event, EventType
from service.incidents.incident import Incident


def incident_opened(incident: Incident, table: Registration, at: datetime) -> Event:
    """Returns the event for a confirmed incident; a suspected one is published once it is confirmed."""
    return _of_incident(EventType.TABLE_INCIDENT_OPENED, incident, table, at)


def incident_closed(incident: Incident, table: Registration, at: datetime) -> Event:
    return _of_incident(EventType.TABLE_INCIDENT_CLOSED, incident, table, at)


def _of_incident(type_: EventType, incident: Incident, table: Registration, at: datetime) -> Event:
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
