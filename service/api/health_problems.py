"""The problems of the installation: /v1/problems. Not to be confused with problem documents of RFC 9457."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import BaseModel, Field, StringConstraints

from service.api.answers import Declared, Shown, made
from service.api.dependencies import CallerDep, DatabaseDep, MonitoringDep
from service.api.query_parameters import AnyOf, Asked
from service.api.requests import A_REASON, SOME_TEXT, Request
from service.api.routes import Routes
from service.db.engine import reading, writing
from service.health import problem_store, problems
from service.health.next_step import Action
from service.health.problem import About, HealthProblem, ProblemKind, Severity
from service.health.problem_search import look
from service.health.problem_store import Acknowledgement
from service.model.errors import ProblemNotFoundError

router = Routes(prefix="/v1", tags=["problems"])

Figure = str | int | float | bool | list[str] | None


class AboutOut(Declared, declared=About):
    """The object that has the problem."""


class ActionOut(Declared, declared=Action):
    """A call that helps. It needs the role that the call itself needs."""

    body: dict[str, Any] | None = Field(
        description="The JSON to send; null for none", examples=[{"kind": "compaction"}]
    )


class HealthProblemOut(Shown, declared=HealthProblem):
    """Something that is wrong now. It is listed for as long as it stands, and nobody has to close it."""

    id: str = Field(description="The same while it stands, and when it comes back", examples=["prb_8c1d0e5f2a7b4963"])
    about: AboutOut = Field(description="The object that has the problem")
    table_id: str | None = Field(description="Null unless it is about a table", examples=["tbl_0f3c2a9d5e7b1c44"])
    action: ActionOut | None = Field(description="The call that does it, where there is one")
    acknowledged: AcknowledgementOut | None = Field(None, description="Who knows of it; null if nobody has said so")


class AcknowledgementOut(BaseModel):
    """Somebody knows of the problem: notifications do not tell it (again), unless it becomes more serious."""

    by: str = Field(description="Who knows of it", examples=["ada (4f0c9d2b71aa)"])
    at: datetime = Field(description="Since when")
    because: str = Field(description="What they said", examples=["the storage team is at it"])


class AcknowledgementIn(Request, json_schema_extra={"examples": [{"reason": "the storage team is at it"}]}):
    reason: Annotated[str, StringConstraints(max_length=1000, pattern=A_REASON)] = Field(description="For others")


class SeverityCounts(BaseModel):
    """Counts of all problems that match the filter, not only of this page."""

    critical: int = Field(0, description="Critical problems", examples=[0])
    warning: int = Field(0, description="Warnings", examples=[1])
    notice: int = Field(0, description="Notices", examples=[0])


class HealthProblemPage(BaseModel):
    items: list[HealthProblemOut]
    counts: SeverityCounts = Field(description="Numbers by severity, of all pages")
    next_cursor: str | None


@router.reader("GET /problems", "List what is wrong now, the most serious first")
def list_problems(
    database: DatabaseDep,
    monitoring: MonitoringDep,
    *,
    table_id: Annotated[
        str | None, Query(max_length=64, pattern=SOME_TEXT, description="Only the problems of this table")
    ] = None,
    kind: AnyOf[ProblemKind] = [],
    severity: AnyOf[Severity] = [],
    asked: Asked,
) -> HealthProblemPage:
    """Computes the list now from what the service knows, and reads no table for it. So it shows at once whether a
    remedy has helped. If there are many thousands of tables, the list is some seconds old, unless `table_id` names one.
    The events `problem.opened` and `problem.resolved` follow from a check every half minute. Equally serious problems
    are listed oldest first. `since` and `until` select problems by their own `since`."""
    if table_id is None:
        every = monitoring.problems.now(database.engine, database.clock).problems
    else:
        every = look(database.engine, database.clock(), table_id)[0].problems
    wanted = problems.Wanted(table_id, kind, severity, asked.since, asked.until)
    listed = problems.page(every, wanted, limit=asked.limit, cursor=asked.cursor)
    with reading(database.engine) as connection:
        known = problem_store.acknowledged(connection)
    return HealthProblemPage(
        items=[_shown(each, known.get(each.id)) for each in listed.page.items],
        counts=SeverityCounts(**{severity.value: number for severity, number in listed.counts.items()}),
        next_cursor=listed.page.next_cursor,
    )


ProblemId = Annotated[
    str,
    Path(max_length=32, pattern=SOME_TEXT, description="Id of an open problem", examples=["prb_8c1d0e5f2a7b4963"]),
]


@router.operator("PUT /problems/{problem_id}/acknowledgement", "Say that you know of a problem", ProblemNotFoundError)
def acknowledge_problem(
    problem_id: ProblemId, wanted: AcknowledgementIn, database: DatabaseDep, caller: CallerDep
) -> AcknowledgementOut:
    """Notifications do not tell the problem (again). That ends with the problem, and when it becomes more serious."""
    found = Acknowledgement(caller.name, database.clock(), wanted.reason)
    with writing(database.engine) as connection:
        problem_store.acknowledge(connection, problem_id, found)
    return AcknowledgementOut(by=found.by, at=found.at, because=found.because)


@router.operator("DELETE /problems/{problem_id}/acknowledgement", "End an acknowledgement", ProblemNotFoundError)
def end_acknowledgement(problem_id: ProblemId, database: DatabaseDep) -> None:
    with writing(database.engine) as connection:
        problem_store.acknowledge(connection, problem_id, None)


def _shown(problem: HealthProblem, known: Acknowledgement | None) -> HealthProblemOut:
    return made(HealthProblemOut, problem, acknowledged=known)
