"""Decisions about a table and their reasons: /v1/tables/{id}/decisions, /v1/tables/{id}/evaluate"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from service.access.token import Role
from service.api.answers import PageOf
from service.api.dependencies import DatabaseDep, QueueDep, needs
from service.api.policy_models import DecisionOut, EvaluationOut
from service.api.query_parameters import AnyOf, Asked, OfKinds
from service.api.routes import Routes
from service.api.tables import TableId
from service.catalog import table_store
from service.db.engine import reading
from service.scheduling import decision_store, scheduler
from service.scheduling.decision import DECIDED, Verdict

router = Routes(prefix="/v1/tables", tags=["decisions"], dependencies=[Depends(needs(Role.READER))])


@router.on("GET /{table_id}/decisions", "List the decisions about a table, newest first")
def list_decisions(
    table_id: TableId,
    database: DatabaseDep,
    *,
    kind: OfKinds = [],
    verdict: AnyOf[Verdict] = [],
    current: Annotated[bool, Query(description="Only the current decisions: the last of each kind")] = False,
    asked: Asked,
) -> PageOf[DecisionOut]:
    """Lists equal decisions in a row as one item, with `count` and the latest figures. `since` and `until` select those
    that were made or repeated then."""
    with reading(database.engine) as connection:
        table_store.get(connection, table_id)
        if current:
            latest = decision_store.latest(connection, table_id)
            in_force = [
                each
                for each in (latest[of_kind] for of_kind in DECIDED if of_kind in latest)
                if (not kind or each.kind in kind)
                and (not verdict or each.verdict in verdict)
                and (asked.since is None or each.last_at >= asked.since)
                and (asked.until is None or each.first_at < asked.until)
            ]
            return PageOf[DecisionOut](items=[DecisionOut.of(each) for each in in_force], next_cursor=None)
        page = decision_store.page(connection, table_id, asked, kinds=kind, verdicts=verdict)
    return PageOf[DecisionOut].of_page(page, DecisionOut.of)


@router.on("POST /{table_id}/evaluate", "Show the decisions that a table would get now")
def evaluate_table(table_id: TableId, database: DatabaseDep, queue: QueueDep) -> EvaluationOut:
    """Starts nothing and stores nothing."""
    found = scheduler.evaluate(database, table_id, queue.planning)
    return EvaluationOut(looked_at=found.polled_at, decisions=[DecisionOut.of(each) for each in found.decisions])
