"""Instants and files that the service and consumers still need. Jobs that remove old instants or files get this in
their work orders."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from jobs.kinds.registry import KINDS
from service.catalog import commit_store, consumer_store
from service.catalog.consumer import awaited
from service.catalog.registration import Registration
from service.incidents import store
from service.incidents.incident import IncidentKind
from service.policies.policy_registry import effective_of
from service.queue.job import Job


def of_job(connection: Connection, job: Job, table: Registration, now: datetime) -> dict[str, Any]:
    """Returns parameters that are added when a worker leases the job; empty for most kinds.

    `consumers` are the consumers that have reported recently, each with its last instant. `seen` is the last instant
    that the service has recorded. A later instant must not be archived yet: if no poll sees it on the active timeline,
    its event is late, or is lost in table version 6. `keep` are limits (`jobs.protocol.archival_limits`) for unresolved
    incidents, because the service finds the end of an incident on the timeline."""
    wanted = KINDS[job.kind].by_service()
    if not wanted:
        return {}
    hours = effective_of(connection, table).policy.cleaning.consumer_hours
    found = awaited(consumer_store.of_table(connection, job.table_id), hours, now)
    consumers = {"consumers": [{"name": each.name, "instant": each.instant} for each in found]} if found else {}
    if "keep" not in wanted:
        return consumers
    keep = [
        {"type": "incident", "instant": each.instant, "reason": f"incident {each.id} ({each.kind.value}) is open"}
        for each in store.unresolved(connection, job.table_id)
        if each.kind is not IncidentKind.DAMAGE
    ]
    return {**consumers, "seen": commit_store.last_recorded(connection, job.table_id), "keep": keep}
