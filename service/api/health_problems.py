"""The problems of the installation: /v1/problems. These are not the problem documents of RFC 9457."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import BaseModel, Field, StringConstraints

from service.api.answers import Declared, Shown
from service.api.dependencies import Caller, CallerDep, DatabaseDep, FleetDep
from service.api.query_parameters import AnyOf, Asked, OfOwners
from service.api.requests import A_REASON, SOME_TEXT, Moment, Request
from service.api.routes import Routes
from service.api.structs import answered, made, struct_of
from service.catalog import table_store
from service.catalog.ownership import TableSelection
from service.db.engine import reading, writing
from service.health import acknowledgement_store, problem_search, problems
from service.health.acknowledgement_store import Acknowledgement
from service.health.errors import ProblemNotStandingError
from service.health.next_step import Action
from service.health.problem import About, HealthProblem, ProblemKind, Severity
from service.health.result_cache import UP_TO_DATE
from service.metrics.installation import Installation
from service.model.errors import FleetUnavailableError

router = Routes(prefix="/v1", tags=["problems"])

ProblemId = Annotated[
    str, Path(max_length=32, pattern=SOME_TEXT, description="Id of the problem", examples=["prb_8c1d0e5f2a7b4963"])
]


class AboutOut(Declared, declared=About):
    """The object that has the problem."""


class ActionOut(Declared, declared=Action):
    """A call of the API that helps. The caller needs the role for that call."""

    body: dict[str, Any] | None = Field(
        description="The JSON to send; null for none", examples=[{"kind": "compaction"}]
    )


class AcknowledgementOut(Shown, declared=Acknowledgement):
    """An acknowledgement: somebody knows of the problem."""

    at: datetime = Field(description="Since when")


class AcknowledgementTerms(Request):
    until: Moment | None = Field(
        None,
        description="When the acknowledgement ends, unless the problem ends before. Default: when the problem ends",
    )
    reason: Annotated[str, StringConstraints(max_length=1000, pattern=A_REASON)] | None = Field(
        None, description="For others", examples=["the storage is being moved"]
    )

    def by(self, caller: Caller, at: datetime) -> Acknowledgement:
        return Acknowledgement(caller.name, at, self.until, self.reason)


class AcknowledgementIn(
    AcknowledgementTerms, json_schema_extra={"examples": [{"until": "2026-01-02T07:00:00Z", "reason": "known"}]}
):
    """How long a problem is acknowledged, and why."""


class HealthProblemOut(Shown, declared=HealthProblem):
    """Something that is wrong now. A problem is listed until its cause has gone; nobody has to close it."""

    id: str = Field(
        description="The id stays the same as long as the problem lasts, and when it comes back",
        examples=["prb_8c1d0e5f2a7b4963"],
    )
    about: AboutOut = Field(description="The object that has the problem")
    table_id: str | None = Field(
        description="Null unless the problem is about a table", examples=["tbl_0f3c2a9d5e7b1c44"]
    )
    action: ActionOut | None = Field(description="A call of the API that applies the remedy; null if there is none")
    acknowledged: AcknowledgementOut | None = Field(
        None,
        description="Set if somebody has acknowledged the problem; null again once the acknowledgement or the "
        "problem ends, or the problem becomes more serious",
    )

    @classmethod
    def of_known(cls, problem: HealthProblem, acknowledged: Mapping[str, Acknowledgement]) -> HealthProblemOut:
        return made(cls, problem, acknowledged=acknowledged.get(problem.id))


class SeverityCounts(BaseModel):
    """Counts of all problems that match the filter, not only of this page."""

    critical: int = Field(0, description="Critical problems", examples=[0])
    warning: int = Field(0, description="Warnings", examples=[1])
    notice: int = Field(0, description="Notices", examples=[0])


class HealthProblemPage(BaseModel):
    items: list[HealthProblemOut]
    counts: SeverityCounts = Field(description="Numbers by severity, of all pages")
    next_cursor: str | None


@router.reader("GET /problems", "List what is wrong now, the most serious first", FleetUnavailableError)
def list_problems(
    fleet: FleetDep,
    *,
    table_id: Annotated[
        str | None, Query(max_length=64, pattern=SOME_TEXT, description="Only the problems of this table")
    ] = None,
    kind: AnyOf[ProblemKind] = [],
    severity: AnyOf[Severity] = [],
    selection: OfOwners,
    asked: Asked,
) -> HealthProblemPage:
    """The list is computed now from what the service knows, without reading a table. So the list shows at once whether
    a remedy has helped. If there are many thousands of tables, the list is some seconds old, unless `table_id` names
    one table. The events `problem.opened` and `problem.resolved` come from a check every half minute. Equally serious
    problems are listed oldest first. `since` and `until` select problems by their own `since`."""
    wanted = problems.Wanted(table_id, kind, severity, asked.since, asked.until)
    return answered(fleet, page_of, wanted, selection, limit=asked.limit, cursor=asked.cursor)


def page_of(
    installation: Installation,
    wanted: problems.Wanted,
    selection: TableSelection,
    *,
    limit: int,
    cursor: str | None,
) -> HealthProblemPage:
    database = installation.database
    if wanted.table_id is None:
        every = _known(installation)
    else:
        every = problem_search.of_table(database.engine, database.clock(), wanted.table_id).problems
    with reading(database.engine) as connection:
        tables = None if selection.is_open else table_store.ids_of(connection, selection)
        acknowledged = acknowledgement_store.every(connection, database.clock())
    listed = problems.page(every, replace(wanted, tables=tables), limit=limit, cursor=cursor)
    return struct_of(HealthProblemPage)(
        items=[HealthProblemOut.of_known(each, acknowledged) for each in listed.page.items],
        counts=struct_of(SeverityCounts)(**{severity.value: number for severity, number in listed.counts.items()}),
        next_cursor=listed.page.next_cursor,
    )


def _known(installation: Installation) -> Sequence[HealthProblem]:
    database = installation.database
    return installation.monitoring.problems.known(database.engine, database.clock, UP_TO_DATE).problems


def is_known(installation: Installation, problem_id: str) -> bool:
    return any(each.id == problem_id for each in _known(installation))


@router.operator(
    "PUT /problems/{problem_id}/acknowledgement",
    "Acknowledge one problem",
    ProblemNotStandingError,
    FleetUnavailableError,
)
def acknowledge_problem(
    problem_id: ProblemId,
    wanted: AcknowledgementIn,
    *,
    database: DatabaseDep,
    fleet: FleetDep,
    caller: CallerDep,
) -> AcknowledgementOut:
    """Marks the problem as known until it ends or becomes more serious, but no longer than `until`. An earlier
    acknowledgement is replaced. Meanwhile notifications do not report the problem, and PagerDuty gets `acknowledge` for
    its alert."""
    if not fleet.run(is_known, problem_id):
        raise ProblemNotStandingError(f"No problem has the id {problem_id} now.")
    given = wanted.by(caller, database.clock())
    with writing(database.engine) as connection:
        acknowledgement_store.put(connection, problem_id, given)
    database.notifier.notify()
    return AcknowledgementOut.of(given)


@router.operator("DELETE /problems/{problem_id}/acknowledgement", "Take back the acknowledgement of a problem")
def unacknowledge_problem(problem_id: ProblemId, database: DatabaseDep) -> None:
    """Notifications report the problem again if they had reported it before the acknowledgement."""
    with writing(database.engine) as connection:
        acknowledgement_store.remove(connection, [problem_id])
    database.notifier.notify()
