"""Database access to decisions. Repetitions are counted, so a table without changes adds no rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from jobs.contract import JobKind
from service.db import bulk, schema
from service.db.documents import Documents, Reading
from service.db.page import Cursor, Page, PageRequest, among, page_of, within
from service.scheduling.decision import DECIDED, Decision, Verdict

_d = schema.decisions

# Columns that a repetition may change, besides its count.
_FIGURES = ("because", "warning", "last_at")

# Statements of a decision are built once, because building takes longer than executing. The lookup of each kind is a
# single step in the index, however long the table's history is.
_IS_OF_TABLE = _d.c.table_id == sa.bindparam("of_table")
_decisions = Documents(Decision, _d)
LATEST: Reading[dict[JobKind, Decision]] = _decisions.all_of(
    _decisions.select().where(
        _d.c.id.in_(
            sa.union_all(
                *(sa.select(sa.func.max(_d.c.id)).where(_IS_OF_TABLE, _d.c.kind == each.value) for each in DECIDED)
            )
        )
    )
).then(lambda found: {each.kind: each for each in found})
"""Reads what `latest` returns."""


def _current() -> sa.Select[Any]:
    kinds = sa.union_all(*(sa.select(sa.literal(kind.value).label("kind")) for kind in DECIDED)).subquery("kinds")
    # The lookup of each pair of table and kind is one step in the index, however long the history is.
    each, tables = _d.alias("each"), schema.tables
    last = (
        sa.select(sa.func.max(each.c.id))
        .where(each.c.table_id == tables.c.id, each.c.kind == kinds.c.kind)
        .correlate(tables, kinds)
        .scalar_subquery()
    )
    since = sa.bindparam("since", type_=schema.UtcDateTime)
    return (
        sa.select(_d)
        .select_from(tables.join(kinds, sa.true()).join(_d, _d.c.id == last))
        .where(_d.c.last_at > since, schema.among(tables.c.id, "of_tables"))
    )


_CURRENT = _current()
_REPEAT = _d.update().where(_d.c.id == sa.bindparam("of_id"))


def latest(connection: Connection, table_id: str) -> dict[JobKind, Decision]:
    return LATEST.read(connection, {"of_table": table_id})


def current(connection: Connection, since: datetime, table_ids: Collection[str]) -> dict[str, dict[JobKind, Decision]]:
    """Returns the latest decision of each kind about these tables that was made or repeated after `since`, by table
    id."""
    found: defaultdict[str, dict[JobKind, Decision]] = defaultdict(dict)
    for row in connection.execute(_CURRENT, {"of_tables": list(table_ids), "since": since}):
        decision = Decision.of_row(row)
        found[row.table_id][decision.kind] = decision
    return found


def record(
    connection: Connection, table_id: str, decisions: Iterable[Decision], before: Mapping[JobKind, Decision]
) -> None:
    """Stores decisions of different kinds, or counts them as repetitions. `before` has the latest decision of each
    kind. The caller has claimed the table."""
    new, repeated = [], []
    for decision in decisions:
        last = before.get(decision.kind)
        if last and _is_repeated(decision, last):
            figures = {name: getattr(decision, name) for name in _FIGURES}
            repeated.append({"of_id": last.id, "count": last.count + 1, **figures})
        else:
            new.append({"table_id": table_id, **decision.to_row("id")})
    bulk.write(connection, _d, new)
    if repeated:
        connection.execute(_REPEAT, repeated)


def page(
    connection: Connection,
    table_id: str,
    asked: PageRequest,
    *,
    kinds: Collection[JobKind] = (),
    verdicts: Collection[Verdict] = (),
) -> Page[Decision]:
    """Returns a page of the table's decisions, newest first. Empty `kinds` and `verdicts` select all. A decision is
    within the period if it was made or repeated in it."""
    query = sa.select(_d).where(_d.c.table_id == table_id).order_by(_d.c.id.desc()).limit(asked.limit + 1)
    query = query.where(*within(_d.c.last_at, asked.since, None), *within(_d.c.first_at, None, asked.until))
    query = query.where(*among(_d.c.kind, kinds), *among(_d.c.verdict, verdicts))
    if asked.cursor:
        query = query.where(_d.c.id < Cursor.parse(asked.cursor).number)
    rows = [Decision.of_row(row) for row in connection.execute(query)]
    return page_of(rows, asked.limit, lambda decision: (decision.first_at, str(decision.id)))


def prune(connection: Connection, before: datetime, limit: int) -> int:
    """Deletes at most `limit` decisions last made before `before`, and returns how many."""
    old = sa.select(_d.c.id).where(_d.c.last_at < before).limit(limit)
    return connection.execute(_d.delete().where(_d.c.id.in_(old))).rowcount


def _is_repeated(decision: Decision, before: Decision) -> bool:
    if decision.verdict is Verdict.RUN:
        return False
    if decision.verdict is Verdict.SUGGEST and dict(decision.params) != dict(before.params):
        return False
    return (decision.verdict, decision.code) == (before.verdict, before.code)
