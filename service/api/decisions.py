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
from service.api.dependencies import FleetDep, QueueDep, needs
from service.api.job_models import CostOut
from service.api.query_parameters import AnyOf, Asked, OfKinds
from service.api.routes import Routes
from service.api.structs import answered, made, struct_of
from service.api.tables import TableId
from service.catalog import table_store
from service.db.engine import reading
from service.db.page import PageRequest
from service.metrics.installation import Installation
from service.model.errors import FleetUnavailableError
from service.queue.forecaster import Planned
from service.scheduling import decision_store, scheduler
from service.scheduling.decision import DECIDED, Decision, Verdict
from service.scheduling.scheduler import SchedulerConfig

router = Routes(prefix="/v1/tables", tags=["decisions"], dependencies=[Depends(needs(Role.READER))])

_DUE = (Verdict.RUN, Verdict.WAIT, Verdict.SUGGEST)


class DecisionOut(Shown, declared=Decision):
    kind: JobKind
    warning: str | None
    job_id: str | None
    cost: CostOut | None = Field(
        None,
        description="Expected cost of the job. Null unless the decision is current, the job is due, and such jobs have"
        " ended before",
    )

    @classmethod
    def foreseen(cls, table_id: str, decisions: Sequence[Decision], installation: Installation) -> list[DecisionOut]:
        """Returns the decisions about a table, with the expected cost of jobs that are due."""
        due = {each.kind: Planned(table_id, each.kind.value) for each in decisions if each.verdict in _DUE}
        costs = installation.monitoring.forecaster.costs(installation.database.engine, due)
        return [made(cls, each, cost=CostOut.of(costs.get(each.kind))) for each in decisions]


class EvaluationOut(BaseModel):
    looked_at: datetime | None = Field(
        description="Time of the last poll that found the timeline changed; null: never polled, so there is no decision"
    )
    decisions: list[DecisionOut] = Field(description="The decisions that would be made now, one for each kind")


@router.on("GET /{table_id}/decisions", "List the decisions about a table, newest first", FleetUnavailableError)
def list_decisions(
    table_id: TableId,
    fleet: FleetDep,
    *,
    kind: OfKinds = [],
    verdict: AnyOf[Verdict] = [],
    current: Annotated[bool, Query(description="Only the current decisions: the last of each kind")] = False,
    asked: Asked,
) -> PageOf[DecisionOut]:
    """If the same decision was made several times in a row, it is one item, with `count` and the latest figures.
    `since` and `until` select decisions that were made or repeated in this period."""
    return answered(fleet, page_of, table_id, asked, kinds=kind, verdicts=verdict, current=current)


def page_of(
    installation: Installation,
    table_id: str,
    asked: PageRequest,
    *,
    kinds: Sequence[JobKind],
    verdicts: Sequence[Verdict],
    current: bool,
) -> PageOf[DecisionOut]:
    with reading(installation.database.engine) as connection:
        table_store.get(connection, table_id)
        if not current:
            page = decision_store.page(connection, table_id, asked, kinds=kinds, verdicts=verdicts)
            return PageOf[DecisionOut].of_page(page, DecisionOut.of)
        latest = decision_store.latest(connection, table_id)
    in_force = [
        each
        for each in (latest[of_kind] for of_kind in DECIDED if of_kind in latest)
        if (not kinds or each.kind in kinds)
        and (not verdicts or each.verdict in verdicts)
        and (asked.since is None or each.last_at >= asked.since)
        and (asked.until is None or each.first_at < asked.until)
    ]
    # The forecaster uses another connection, so this call must not hold one while it waits for the forecast.
    items = DecisionOut.foreseen(table_id, in_force, installation)
    return struct_of(PageOf[DecisionOut])(items=items, next_cursor=None)


@router.on("POST /{table_id}/evaluate", "Show the decisions that a table would get now", FleetUnavailableError)
def evaluate_table(table_id: TableId, fleet: FleetDep, queue: QueueDep) -> EvaluationOut:
    """Starts nothing and stores nothing."""
    return answered(fleet, evaluation_of, table_id, queue.planning)


def evaluation_of(installation: Installation, table_id: str, config: SchedulerConfig) -> EvaluationOut:
    found = scheduler.evaluate(installation.database, table_id, config, installation.monitoring.forecaster)
    return struct_of(EvaluationOut)(
        looked_at=found.polled_at,
        decisions=DecisionOut.foreseen(table_id, found.decisions, installation),
    )
