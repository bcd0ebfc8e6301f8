"""Incidents of tables: /v1/incidents and /v1/tables/{id}/incidents"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Body, Depends, Path, Query
from pydantic import Field, StringConstraints

from jobs.kinds.words import NO_NUL
from service.api.answers import Declared, PageOf
from service.api.dependencies import CallerDep, DatabaseDep
from service.api.query_parameters import AnyOf, Asked, OfTable
from service.api.requests import SOME_TEXT, Request
from service.api.routes import Routes
from service.api.structs import made
from service.api.tables import TableId
from service.catalog import table_store
from service.db.engine import reading
from service.incidents import store, tracker
from service.incidents.incident import Incident, IncidentKind, IncidentState
from service.model import job_errors

router = Routes(prefix="/v1", tags=["incidents"])

IncidentId = Annotated[str, Path(max_length=64, pattern=SOME_TEXT, examples=["inc_8c1d0e5f2a7b4963"])]
KindQuery = Annotated[
    list[IncidentKind],
    Query(
        description="`stale-write`: rows in replaced file groups; `old-number`: rows in buckets of an old number; "
        "`late-files`: files of a fenced write; `damage`: found by a diagnosis. May be repeated",
        max_length=10,
    ),
]
StateQuery = AnyOf[IncidentState]


class IncidentOut(Declared, declared=Incident):
    """An incident. `title`, `detail` and `hint` describe its effect on the table's readers, and the remedy."""

    title: str = Field(
        description="What the incident means for readers",
        examples=["A commit wrote to file groups that had been replaced"],
    )
    detail: str = Field(examples=["No reader sees the 173 rows that 20260101120000000 (UPSERT_PREPPED) wrote there."])
    hint: str = Field(description="The remedy", examples=["Start a repair: it brings the rows to where they belong."])
    opened_at: datetime
    closed_at: datetime | None

    @classmethod
    def of(cls, incident: Incident) -> IncidentOut:
        problem = incident.problem()
        return made(cls, incident, title=problem.title, detail=problem.detail, hint=problem.hint)


class IncidentCloseIn(Request):
    reason: Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=NO_NUL)] = Field(
        description="Kept with the incident, with the caller that closed it",
        examples=["the batch was written again by hand"],
    )


_CLOSE_EXAMPLES: dict[str, Any] = {
    "repaired by hand": {"value": {"reason": "the batch was written again by hand"}},
    "a false alarm": {"value": {"reason": "the audit of job_4be1c0d2f6a89b37 found nothing"}},
}


async def _wanted(
    asked: Asked,
    *,
    kind: KindQuery = [],
    state: StateQuery = [],
) -> dict[str, Any]:
    return {"asked": asked, "kinds": kind, "states": state}


Wanted = Annotated[dict[str, Any], Depends(_wanted)]


@router.reader("GET /incidents", "List incidents, newest first")
def list_incidents(database: DatabaseDep, wanted: Wanted, table_id: OfTable = None) -> PageOf[IncidentOut]:
    """`since` and `until` are times of opening."""
    with reading(database.engine) as connection:
        return PageOf[IncidentOut].of_page(store.page(connection, table_id=table_id, **wanted), IncidentOut.of)


@router.reader("GET /tables/{table_id}/incidents", "List the incidents of a table, newest first")
def list_incidents_of_table(table_id: TableId, database: DatabaseDep, wanted: Wanted) -> PageOf[IncidentOut]:
    with reading(database.engine) as connection:
        table_store.get(connection, table_id)
        return PageOf[IncidentOut].of_page(store.page(connection, table_id=table_id, **wanted), IncidentOut.of)


@router.operator("POST /incidents/{incident_id}/close", "Close an incident by hand", job_errors.IncidentClosedError)
def close_incident(
    incident_id: IncidentId,
    wanted: Annotated[IncidentCloseIn, Body(openapi_examples=_CLOSE_EXAMPLES)],
    database: DatabaseDep,
    caller: CallerDep,
) -> IncidentOut:
    """Sets the state to `cleared`. The incident will not be repaired. Cleaning resumes, and may delete the files that a
    repair needs. The incident's `because` then names the caller and the reason."""
    closed = tracker.close(
        database.engine, database.notifier, database.clock, incident_id, by=caller.name, reason=wanted.reason
    )
    return IncidentOut.of(closed)
