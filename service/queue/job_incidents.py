"""Incidents that a job's report opens or closes.

There is one incident for each type of damage that a diagnosis, an audit or the checks after a job find. The incident
stays open until a later check no longer finds that damage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import asdict
from sqlalchemy import Connection

from jobs.format.instants import instant_of
from jobs.kinds.repair import RepairResult
from jobs.kinds.results import DamageFound, ExaminedResult, KindResult, ReplacementResult
from service.events.event import Event
from service.incidents import store, tracker
from service.incidents.details import IncidentDetails
from service.incidents.incident import MISPLACING_ROWS, NO_LONGER_FOUND, Incident, IncidentKind, IncidentState
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
    damages, gone = _of_damages(connection, after, result, now)
    return list(tracker.change(connection, before.table_id, found + damages, closing + gone, now).events)


def _of_damages(
    connection: Connection, job: Job, result: KindResult, now: datetime
) -> tuple[list[Incident], list[Incident]]:
    """Returns the incidents to open and those to close after a successful job that has checked the table: a diagnosis
    by the table's own index, an audit, or a job that has replaced file groups.

    A damage counts as gone only if the check that had found it was made again. An incident that a user has closed is
    opened again only if the damage has changed.
    """
    examined = result if isinstance(result, ExaminedResult) else result.audit
    if job.state is not JobState.SUCCEEDED or "index" in job.params or not examined:
        return [], []
    findings = by_type(examined.findings)
    unresolved = [each for each in store.unresolved(connection, job.table_id) if each.kind is IncidentKind.DAMAGE]
    closing = [
        each.closed(IncidentState.CLEARED, f"{job.kind} {job.id} {NO_LONGER_FOUND}", now)
        for each in unresolved
        if each.details.get("type") not in findings and each.details.get("check") in examined.checked
    ]
    known = {str(each.details.get("type")) for each in unresolved}
    dismissed = [each.details for each in store.dismissed(connection, job.table_id, IncidentKind.DAMAGE)]
    found = [each for name, each in findings.items() if name not in known and not _is_among(each, dismissed)]
    return [_incident(job, finding, number, now) for number, finding in enumerate(found)], closing


def by_type(findings: Iterable[DamageFound]) -> dict[str, DamageFound]:
    """Returns one finding for each type, with the details of all findings of the type. The hint is that of the first
    finding. A cure is given only if all findings have the same cure."""
    found: dict[str, DamageFound] = {}
    for each in findings:
        if each.type and (known := found.get(each.type)):
            cure = known.cure if known.cure == each.cure else None
            found[each.type] = known.having(detail=f"{known.detail}; {each.detail}", cure=cure)
        elif each.type:
            found[each.type] = each
    return found


def _incident(job: Job, finding: DamageFound, number: int, now: datetime) -> Incident:
    # An incident needs an instant. The commit that caused the damage is unknown, so each type gets an invented one.
    return Incident(
        id=tracker.new_id(),
        table_id=job.table_id,
        kind=IncidentKind.DAMAGE,
        instant=instant_of(now + timedelta(milliseconds=number)),
        state=IncidentState.OPEN,
        opened_at=now,
        details=IncidentDetails(**asdict(finding), job_id=job.id).to_json(),
    )


def _is_among(finding: DamageFound, others: Sequence[Mapping[str, Any]]) -> bool:
    return any((finding.type, finding.detail) == (other.get("type"), other.get("detail")) for other in others)
