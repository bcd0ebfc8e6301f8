"""Incidents of tables: /v1/incidents and /v1/tables/{id}/incidents"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Body, Depends, Path, Query
from pydantic import BaseModel, Field, StringConstraints

from jobs.kinds.words import NO_NUL
from service.api.answers import PageOf, made
from service.api.dependencies import CallerDep, DatabaseDep
from service.api.query_parameters import AnyOf, Asked, OfTable
from service.api.requests import SOME_TEXT, Request
from service.api.routes import Routes
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
        description="`late-files`: files of a fenced write; `damage`: found by a diagnosis. May be repeated",
        max_length=10,
    ),
]
StateQuery = AnyOf[IncidentState]


class IncidentOut(BaseModel):
    """An incident. `title`, `detail` and `hint` describe its effect on the table's readers, and the remedy."""

    id: str = Field(description="Id of the incident", examples=["inc_8c1d0e5f2a7b4963"])
    table_id: str = Field(examples=["tbl_0f3c2a9d5e7b1c44"])
    kind: IncidentKind = Field(
        description="`stale-write`, `late-files` of a fenced write, or `damage` found by a diagnosis",
        examples=["stale-write"],
    )
    instant: str = Field(
        description="The commit that caused it, or the write that was fenced; of a damage: when it was found, in UTC",
        examples=["20260101120000000"],
    )
    operation: str | None = Field(description="Hudi's WriteOperationType of that commit", examples=["UPSERT_PREPPED"])
    state: IncidentState = Field(
        description="`suspected`: only the rows can prove it; a repair checks them", examples=["open"]
    )
    title: str = Field(
        description="What it means for readers", examples=["A commit wrote to file groups that had been replaced"]
    )
    detail: str = Field(examples=["No reader sees the 173 rows that 20260101120000000 (UPSERT_PREPPED) wrote there."])
    hint: str = Field(description="The remedy", examples=["Start a repair: it brings the rows to where they belong."])
    details: dict[str, Any] = Field(
        description="Figures that depend on the kind", examples=[{"rows": 173, "file_groups": 1, "partitions": 1}]
    )
    opened_at: datetime
    closed_at: datetime | None
    because: str | None = Field(
        description="Why it was closed, and by whom if by hand",
        examples=["20260101120030000 brought its rows over"],
    )

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


def _wanted(
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
    """Sets the state to `cleared`. The incident is no longer repaired, and cleaning resumes, which may delete the files
    that a repair needs. `because` keeps the caller and the reason."""
    closed = tracker.close(
        database.engine, database.notifier, database.clock, incident_id, by=caller.name, reason=wanted.reason
    )
    return IncidentOut.of(closed)
