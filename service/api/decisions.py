"""Decisions about a table and their reasons: /v1/tables/{id}/decisions, /v1/tables/{id}/evaluate"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Query
from pydantic import BaseModel, Field

from jobs.contract import JobKind
from service.access.token import Role
from service.api.answers import PageOf, Shown
from service.api.dependencies import DatabaseDep, MonitoringDep, QueueDep, needs
from service.api.job_models import CostOut
from service.api.query_parameters import AnyOf, Asked, OfKinds
from service.api.routes import Routes
from service.api.structs import made, struct_of
from service.api.tables import TableId
from service.catalog import table_store
from service.db.engine import reading
from service.events.database import Database
from service.queue.forecaster import Forecaster, Planned
from service.scheduling import decision_store, scheduler
from service.scheduling.decision import DECIDED, Decision, Verdict

router = Routes(prefix="/v1/tables", tags=["decisions"], dependencies=[Depends(needs(Role.READER))])

_DUE = (Verdict.RUN, Verdict.WAIT, Verdict.SUGGEST)


class DecisionOut(Shown, declared=Decision):
    kind: JobKind
    warning: str | None
    job_id: str | None
    cost: CostOut | None = Field(
        None,
        description="Expected cost of the job; only in a current decision about a job that is due, and if such jobs "
        "have ended before",
    )

    @classmethod
    def foreseen(
        cls, table_id: str, decisions: Sequence[Decision], database: Database, forecaster: Forecaster
    ) -> list[DecisionOut]:
        """Returns the decisions about a table, with the expected cost of jobs that are due."""
        due = {each.kind: Planned(table_id, each.kind.value) for each in decisions if each.verdict in _DUE}
        costs = forecaster.costs(database.engine, due)
        return [made(cls, each, cost=CostOut.of(costs.get(each.kind))) for each in decisions]


class EvaluationOut(BaseModel):
    looked_at: datetime | None = Field(description="Time of the last poll; null: never polled, so there is no decision")
    decisions: list[DecisionOut] = Field(description="The decisions that would be made now, one for each kind")


@router.on("GET /{table_id}/decisions", "List the decisions about a table, newest first")
def list_decisions(
    table_id: TableId,
    database: DatabaseDep,
    monitoring: MonitoringDep,
    *,
    kind: OfKinds = [],
    verdict: AnyOf[Verdict] = [],
    current: Annotated[bool, Query(description="Only the current decisions: the last of each kind")] = False,
    asked: Asked,
) -> PageOf[DecisionOut]:
    """Lists equal decisions in a row as one item, with `count` and the latest figures. `since` and `until` select
    decisions that were made or repeated in that period."""
    with reading(database.engine) as connection:
        table_store.get(connection, table_id)
        if not current:
            page = decision_store.page(connection, table_id, asked, kinds=kind, verdicts=verdict)
            return PageOf[DecisionOut].of_page(page, DecisionOut.of)
        latest = decision_store.latest(connection, table_id)
    in_force = [
        each
        for each in (latest[of_kind] for of_kind in DECIDED if of_kind in latest)
        if (not kind or each.kind in kind)
        and (not verdict or each.verdict in verdict)
        and (asked.since is None or each.last_at >= asked.since)
        and (asked.until is None or each.first_at < asked.until)
    ]
    # The forecaster uses a connection of its own, so this call holds no connection while it waits for the forecast.
    items = DecisionOut.foreseen(table_id, in_force, database, monitoring.forecaster)
    return struct_of(PageOf[DecisionOut])(items=items, next_cursor=None)


@router.on("POST /{table_id}/evaluate", "Show the decisions that a table would get now")
def evaluate_table(
    table_id: TableId, database: DatabaseDep, queue: QueueDep, monitoring: MonitoringDep
) -> EvaluationOut:
    """Starts nothing and stores nothing."""
    found = scheduler.evaluate(database, table_id, queue.planning, monitoring.forecaster)
    return struct_of(EvaluationOut)(
        looked_at=found.polled_at,
        decisions=DecisionOut.foreseen(table_id, found.decisions, database, monitoring.forecaster),
    )
