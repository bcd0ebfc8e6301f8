"""Store of incidents. Each incident is recorded once and closed once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.db.documents import Documents, rows_of
from service.db.page import Page, PageRequest, among, paged
from service.db.upsert import insert
from service.incidents.incident import NO_LONGER_FOUND, Incident, IncidentKind, IncidentState
from service.model.job_errors import IncidentNotFoundError

_i = schema.incidents


# Every poll or call executes these statements, so they are built once.
_OF_TABLE = _i.c.table_id == sa.bindparam("of_table")
_incidents = Documents(Incident, _i)
_STANDING = _incidents.select().where(_OF_TABLE, schema.INCIDENT_IS_STANDING).order_by(_i.c.opened_at, _i.c.id)
STANDING = _incidents.all_of(_STANDING)
"""Reads what `unresolved` returns."""
_COUNT_OPEN = sa.select(sa.func.count()).where(
    _OF_TABLE, schema.INCIDENT_IS_STANDING, _i.c.state == IncidentState.OPEN.value
)
_COUNTS = (
    sa.select(_i.c.table_id, _i.c.state, sa.func.count().label("number"))
    .where(schema.among(_i.c.table_id, "of_tables"), schema.INCIDENT_IS_STANDING)
    .group_by(_i.c.table_id, _i.c.state)
)
_COUNT_UNRESOLVED = (
    sa.select(_i.c.kind, _i.c.state, sa.func.count().label("number"))
    .where(schema.INCIDENT_IS_STANDING)
    .group_by(_i.c.kind, _i.c.state)
)


def add(connection: Connection, found: Iterable[Incident]) -> list[Incident]:
    """Adds the incidents that were never recorded before in any state, and returns the added ones."""
    statement = insert(connection, _i).on_conflict_do_nothing().returning(_i.c.id)
    return [each for each in found if connection.execute(statement, each.to_row()).scalar_one_or_none() is not None]


def close(connection: Connection, incident: Incident) -> bool:
    """Records the closing of an incident. Returns False if it was closed meanwhile."""
    written = connection.execute(
        _i.update()
        .where(_i.c.id == incident.id, schema.INCIDENT_IS_STANDING)
        .values(state=incident.state.value, because=incident.because, closed_at=incident.closed_at)
    )
    return bool(written.rowcount)


def get(connection: Connection, incident_id: str) -> Incident:
    row = connection.execute(sa.select(_i).where(_i.c.id == incident_id)).one_or_none()
    if row is None:
        raise IncidentNotFoundError(f"There is no incident {incident_id}.")
    return Incident.of_row(row)


def unresolved(connection: Connection, table_id: str, *, of: Collection[str] | None = None) -> list[Incident]:
    """Returns the table's open and suspected incidents, oldest first. `of` restricts the result to these instants."""
    standing = STANDING if of is None else _incidents.all_of(_STANDING.where(_i.c.instant.in_(of)))
    return standing.read(connection, {"of_table": table_id})


def dismissed(connection: Connection, table_id: str, kind: IncidentKind) -> list[Incident]:
    """Returns the table's last incidents of this kind that users have closed."""
    query = sa.select(_i).where(
        _i.c.table_id == table_id,
        _i.c.kind == kind.value,
        _i.c.state == IncidentState.CLEARED.value,
        _i.c.because.not_like(f"% {NO_LONGER_FOUND}"),
    )
    return [Incident.of_row(row) for row in connection.execute(query.order_by(_i.c.closed_at.desc()).limit(100))]


def every_standing(connection: Connection, table_ids: Collection[str] | None = None) -> Mapping[str, list[Incident]]:
    """Returns the open and suspected incidents of all tables or of these tables, by table id, oldest first."""
    query = sa.select(_i).where(schema.INCIDENT_IS_STANDING)
    rows = connection.execute(query if table_ids is None else query.where(_i.c.table_id.in_(table_ids)))
    found: defaultdict[str, list[Incident]] = defaultdict(list)
    # The statement has no order, because SQLite would then read all incidents by their times.
    for row in sorted(rows, key=lambda row: (row.opened_at, row.id)):
        found[row.table_id].append(Incident.of_row(row))
    return found


def count_open(connection: Connection, table_id: str) -> int:
    return int(connection.execute(_COUNT_OPEN, {"of_table": table_id}).scalar_one())


def counts(connection: Connection, table_ids: Collection[str]) -> Mapping[str, Counter[IncidentState]]:
    """Returns the number of unresolved incidents of each of these tables, by state."""
    return COUNTS.read(connection, {"of_tables": list(table_ids)})


def _counted(rows: Iterable[tuple[str, IncidentState, int]]) -> Mapping[str, Counter[IncidentState]]:
    found: defaultdict[str, Counter[IncidentState]] = defaultdict(Counter)
    for table_id, state, number in rows:
        found[table_id][state] = number
    return found


UNRESOLVED = rows_of(tuple[IncidentKind, IncidentState, int], _COUNT_UNRESOLVED).then(
    lambda rows: Counter({(kind, state): number for kind, state, number in rows})
)
"""Reads what `count_unresolved` returns."""

COUNTS = rows_of(tuple[str, IncidentState, int], _COUNTS).then(_counted)
"""Reads what `counts` returns."""


def count_unresolved(connection: Connection) -> Counter[tuple[IncidentKind, IncidentState]]:
    return UNRESOLVED.read(connection)


def page(
    connection: Connection,
    asked: PageRequest,
    *,
    table_id: str | None = None,
    kinds: Collection[IncidentKind] = (),
    states: Collection[IncidentState] = (),
) -> Page[Incident]:
    """Returns a page, newest incident first. Empty `kinds` and `states` select all; the times are those of opening."""
    query = sa.select(_i).where(*asked.within(_i.c.opened_at), *among(_i.c.kind, kinds), *among(_i.c.state, states))
    if table_id is not None:
        query = query.where(_i.c.table_id == table_id)
    return paged(connection, query, Incident.of_row, _i.c.opened_at, _i.c.id, asked=asked)


def prune(connection: Connection, before: datetime, limit: int) -> int:
    """Removes at most `limit` incidents that were closed before `before`, and returns their number. An incident stays
    while its commit is on the active timeline, because a poll that starts over would find the incident again."""
    w = schema.watches
    old = (
        sa.select(_i.c.id)
        .join(w, w.c.table_id == _i.c.table_id)
        .where(_i.c.closed_at < before, sa.not_(schema.INCIDENT_IS_STANDING), _i.c.instant < w.c.active_from)
        .limit(limit)
    )
    return connection.execute(_i.delete().where(_i.c.id.in_(old))).rowcount
