"""Incidents that a job's report opens or closes."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from jobs.kinds.repair import RepairResult
from jobs.kinds.results import KindResult, ReplacementResult
from service.events.event import Event
from service.incidents import store, tracker
from service.incidents.details import IncidentDetails
from service.incidents.incident import MISPLACING_ROWS, Incident, IncidentKind, IncidentState
from service.queue import damage_incidents
from service.queue.job import Job, JobState


def of_report(connection: Connection, before: Job, after: Job, result: KindResult, now: datetime) -> list[Event]:
    """Opens an incident for each write that the job fenced and each damage that it found. Closes incidents that a
    repair cleared, and damages that a diagnosis or an audit no longer finds. Returns the events.

    Does nothing for a dry run.
    """
    if before.dry_run:
        return []
    found = [
        Incident(
            id=tracker.new_id(),
            table_id=before.table_id,
            kind=IncidentKind.LATE_FILES,
            instant=instant,
            state=IncidentState.OPEN,
            opened_at=now,
            details=IncidentDetails(job_id=before.id, job_kind=before.kind).to_json(),
        )
        for instant in (result.fenced or () if isinstance(result, ReplacementResult) else ())
    ]
    closing: list[Incident] = []
    if isinstance(result, RepairResult) and after.state is JobState.SUCCEEDED:
        reasons = (
            (result.cleared or (), f"repair {before.id} found all its rows in the right place"),
            (result.waived or (), f"repair {before.id} left its rows where they are, as its parameters say"),
        )
        closing = [
            each.closed(IncidentState.CLEARED, because, now)
            for instants, because in reasons
            for each in store.unresolved(connection, before.table_id, of=instants)
            if each.kind in MISPLACING_ROWS
        ]
    damages, gone = damage_incidents.of_report(connection, after, result, now)
    return list(tracker.change(connection, before.table_id, found + damages, closing + gone, now).events)
