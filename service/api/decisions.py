"""Decisions about a table and their reasons: /v1/tables/{id}/decisions, /v1/tables/{id}/evaluate"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from jobs.contract import JobKind
from service.access.token import Role
from service.api.dependencies import AppContextDep, needs
from service.api.policy_models import DecisionOut, DecisionPage, EvaluationOut
from service.api.statuses import documented
from service.api.tables import CursorText, Limit, TableId
from service.catalog import table_store
from service.db.engine import reading
from service.model import errors
from service.scheduling import decision_store, scheduler
from service.scheduling.decision import DECIDED

router = APIRouter(prefix="/v1/tables", tags=["decisions"], dependencies=[Depends(needs(Role.READER))])


@router.get(
    "/{table_id}/decisions",
    operation_id="listDecisions",
    summary="List the decisions about a table, newest first",
    responses=documented(errors.TableNotFoundError, errors.ParamsInvalidError),
)
def list_decisions(
    table_id: TableId,
    context: AppContextDep,
    *,
    kind: JobKind | None = None,
    current: Annotated[bool, Query(description="Only the current decisions: the last of each kind")] = False,
    limit: Limit = 100,
    cursor: CursorText = None,
) -> DecisionPage:
    """Lists equal decisions in a row as one item, with `count` and the latest figures."""
    with reading(context.engine) as connection:
        table_store.get(connection, table_id)
        if current:
            latest = decision_store.latest(connection, table_id)
            in_force = [latest[each] for each in DECIDED if each in latest and kind in (None, each)]
            return DecisionPage(items=[DecisionOut.of(each) for each in in_force], next_cursor=None)
        page = decision_store.page(connection, table_id, limit=limit, cursor=cursor, kind=kind)
    return DecisionPage(items=[DecisionOut.of(each) for each in page.items], next_cursor=page.next_cursor)


@router.post(
    "/{table_id}/evaluate",
    operation_id="evaluateTable",
    summary="Show the decisions that a table would get now",
    responses=documented(errors.TableNotFoundError),
)
def evaluate(table_id: TableId, context: AppContextDep) -> EvaluationOut:
    """Starts nothing and stores nothing."""
    found = scheduler.evaluate(context.engine, context.clock, table_id, config=context.planning)
    return EvaluationOut(looked_at=found.polled_at, decisions=[DecisionOut.of(each) for each in found.decisions])
