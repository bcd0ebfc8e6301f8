"""Decisions about a table and their reasons: /v1/tables/{id}/decisions, /v1/tables/{id}/evaluate"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from service.access.token import Role
from service.api.dependencies import DatabaseDep, QueueDep, needs
from service.api.filters import OfKinds, Since, Until
from service.api.policy_models import DecisionOut, DecisionPage, EvaluationOut
from service.api.statuses import documented
from service.api.tables import CursorText, Limit, TableId
from service.catalog import table_store
from service.db.engine import reading
from service.model import errors, table_errors
from service.scheduling import decision_store, scheduler
from service.scheduling.decision import DECIDED, Verdict

router = APIRouter(prefix="/v1/tables", tags=["decisions"], dependencies=[Depends(needs(Role.READER))])


@router.get(
    "/{table_id}/decisions",
    operation_id="listDecisions",
    summary="List the decisions about a table, newest first",
    responses=documented(table_errors.TableNotFoundError, errors.ParamsInvalidError),
)
def list_decisions(
    table_id: TableId,
    database: DatabaseDep,
    *,
    kind: OfKinds = [],  # noqa: B006 - FastAPI's way; never changed
    verdict: Annotated[list[Verdict], Query(description="May be repeated. Default: any", max_length=10)] = [],  # noqa: B006
    since: Since = None,
    until: Until = None,
    current: Annotated[bool, Query(description="Only the current decisions: the last of each kind")] = False,
    limit: Limit = 100,
    cursor: CursorText = None,
) -> DecisionPage:
    """Lists equal decisions in a row as one item, with `count` and the latest figures. `since` and `until` select those
    that were made or repeated then."""
    with reading(database.engine) as connection:
        table_store.get(connection, table_id)
        if current:
            latest = decision_store.latest(connection, table_id)
            in_force = [latest[each] for each in DECIDED if each in latest and (not kind or each in kind)]
            in_force = [
                each
                for each in in_force
                if (not verdict or each.verdict in verdict)
                and (since is None or each.last_at >= since)
                and (until is None or each.first_at < until)
            ]
            return DecisionPage(items=[DecisionOut.of(each) for each in in_force], next_cursor=None)
        page = decision_store.page(
            connection,
            table_id,
            limit=limit,
            cursor=cursor,
            kinds=kind,
            verdicts=verdict,
            since=since,
            until=until,
        )
    return DecisionPage(items=[DecisionOut.of(each) for each in page.items], next_cursor=page.next_cursor)


@router.post(
    "/{table_id}/evaluate",
    operation_id="evaluateTable",
    summary="Show the decisions that a table would get now",
    responses=documented(table_errors.TableNotFoundError),
)
def evaluate(table_id: TableId, database: DatabaseDep, queue: QueueDep) -> EvaluationOut:
    """Starts nothing and stores nothing."""
    found = scheduler.evaluate(database, table_id, queue.planning)
    return EvaluationOut(looked_at=found.polled_at, decisions=[DecisionOut.of(each) for each in found.decisions])
