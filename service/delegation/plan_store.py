"""Store of delegated plans. The number of plans of each table is limited, and so is the number of unregistered
tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from jobs.contract import converted
from service.db import schema
from service.db.documents import Reading, rows_of
from service.db.page import Page, PageRequest, among, paged
from service.db.upsert import insert
from service.delegation.plan import ENDED, OPEN, DelegatedPlan, ExecutionHints, PlanState

_p = schema.delegated_plans
_IS_OPEN = _p.c.state.in_(schema.literals(OPEN))
# Every decision executes this statement, so it is built once.
_OPEN_PLANS = sa.select(_p).where(_p.c.table_id == sa.bindparam("of_table"), _IS_OPEN).order_by(_p.c.instant, _p.c.id)
HAS_OPEN: Reading[bool] = rows_of(tuple[str], _OPEN_PLANS.with_only_columns(_p.c.id).limit(1)).then(bool)
"""Reads whether `open_plans` would return a plan."""
_IS_ENDED = _p.c.state.in_([state.value for state in ENDED])

MOST_PER_TABLE = 5000
"""Greatest number of plans that are kept for one base path."""

MOST_SUGGESTIONS = 200
"""Plans are kept for at most this many base paths without a registered table."""


def add(connection: Connection, plans: Sequence[DelegatedPlan]) -> list[DelegatedPlan]:
    """Adds the plans of one base path that are not stored yet, and returns them.

    At most `MOST_PER_TABLE` plans of a base path are kept. If there are more, ended plans are deleted first, and then
    new plans are left out.
    """
    if not plans:
        return []
    base_path = plans[0].base_path
    kept = connection.execute(sa.select(sa.func.count()).where(_p.c.base_path == base_path)).scalar_one()
    if kept + len(plans) > MOST_PER_TABLE:
        old = sa.select(_p.c.id).where(_p.c.base_path == base_path, _IS_ENDED).order_by(_p.c.requested_at)
        kept -= connection.execute(_p.delete().where(_p.c.id.in_(old.limit(len(plans))))).rowcount
    statement = insert(connection, _p).on_conflict_do_nothing().returning(_p.c.id)
    room = plans[: max(0, MOST_PER_TABLE - kept)]
    return [each for each in room if connection.execute(statement, _values(each)).scalar_one_or_none() is not None]


def forget_suggestions(connection: Connection) -> int:
    """Keeps the plans of the `MOST_SUGGESTIONS` base paths without a table that were requested last, and deletes the
    plans of all other such base paths. Returns the number of these others."""
    latest = sa.func.max(_p.c.last_requested_at)
    query = sa.select(_p.c.base_path).where(_p.c.table_id.is_(None)).group_by(_p.c.base_path)
    paths = list(connection.execute(query.order_by(latest.desc(), _p.c.base_path).offset(MOST_SUGGESTIONS)).scalars())
    for path in paths:
        connection.execute(_p.delete().where(_p.c.base_path == path, _p.c.table_id.is_(None)))
    return len(paths)


def find(connection: Connection, ids: Collection[str]) -> list[DelegatedPlan]:
    return [_plan(row) for row in connection.execute(sa.select(_p).where(_p.c.id.in_(ids)))]


def is_suggested(connection: Connection, base_path: str) -> bool:
    """Returns whether a plan of this base path is kept although it has no registered table."""
    query = sa.select(_p.c.id).where(_p.c.base_path == base_path, _p.c.table_id.is_(None)).limit(1)
    return connection.execute(query).first() is not None


def renew(connection: Connection, ids: Collection[str], *, table_id: str | None, now: datetime) -> None:
    """Records that these plans were requested again. A plan in the state `gone` returns to the state `waiting`."""
    state = PlanState.WAITING if table_id else PlanState.UNREGISTERED
    connection.execute(_p.update().where(_p.c.id.in_(ids)).values(last_requested_at=now, table_id=table_id))
    connection.execute(
        _p.update()
        .where(_p.c.id.in_(ids), _p.c.state.in_([PlanState.GONE.value, PlanState.UNREGISTERED.value]))
        .values(state=state.value, because=None, ended_at=None, job_id=None)
    )


def adopt(connection: Connection, table_id: str, base_path: str) -> int:
    """Assigns the plans that were kept for this base path to its newly registered table. Returns the number of
    plans."""
    return connection.execute(
        _p.update()
        .where(_p.c.base_path == base_path, _p.c.table_id.is_(None))
        .values(table_id=table_id, state=PlanState.WAITING.value, because=None)
    ).rowcount


def open_plans(connection: Connection, table_id: str) -> list[DelegatedPlan]:
    """Returns the table's plans that have not ended, in the order of their instants."""
    return [_plan(row) for row in connection.execute(_OPEN_PLANS, {"of_table": table_id})]


def record(
    connection: Connection,
    plan: DelegatedPlan,
    state: PlanState,
    because: str | None,
    now: datetime,
    *,
    job_id: str | None = None,
) -> None:
    """Records the state of a plan, unless the plan has this state and reason already."""
    if (state, because, job_id or plan.job_id) == (plan.state, plan.because, plan.job_id):
        return
    connection.execute(
        _p.update()
        .where(_p.c.id == plan.id)
        .values(
            state=state.value,
            because=because,
            job_id=job_id or plan.job_id,
            ended_at=None if state.is_open else now,
        )
    )


def page(
    connection: Connection, asked: PageRequest, *, table_id: str | None = None, states: Collection[PlanState] = ()
) -> Page[DelegatedPlan]:
    """Returns a page of plans, newest first; `since` and `until` are times of the first request. Empty `states` select
    all states."""
    query = sa.select(_p).where(*asked.within(_p.c.requested_at), *among(_p.c.state, states))
    if table_id is not None:
        query = query.where(_p.c.table_id == table_id)
    return paged(connection, query, _plan, _p.c.requested_at, _p.c.id, asked=asked)


def prune(connection: Connection, before: datetime, limit: int) -> int:
    """Deletes at most `limit` plans that ended before `before`, or that have no table and were last requested before
    `before`. Returns the number of deleted plans."""
    is_old = sa.or_(
        sa.and_(_IS_ENDED, _p.c.ended_at < before), sa.and_(_p.c.table_id.is_(None), _p.c.last_requested_at < before)
    )
    old = sa.select(_p.c.id).where(is_old).limit(limit)
    return connection.execute(_p.delete().where(_p.c.id.in_(old))).rowcount


def _values(plan: DelegatedPlan) -> dict[str, Any]:
    return {**plan.to_row("hints"), "wishes": plan.hints.to_json()}


def _plan(row: sa.Row[Any]) -> DelegatedPlan:
    values = {str(name): value for name, value in row._mapping.items()}
    return converted({**values, "hints": ExecutionHints.from_json(row.wishes)}, DelegatedPlan, strict=False)


def ids_of(plans: Iterable[DelegatedPlan]) -> list[str]:
    return [plan.id for plan in plans]
