"""Store of incidents. Each is recorded once and closed once."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from service.db import schema
from service.db.page import Cursor, Page, page_of, within
from service.incidents.incident import NO_LONGER_FOUND, Incident, IncidentKind, IncidentState
from service.model.job_errors import IncidentNotFoundError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

_i = schema.incidents


# Made once: every poll executes them.
_OF_TABLE = _i.c.table_id == sa.bindparam("of_table")
_STANDING = sa.select(_i).where(_OF_TABLE, schema.INCIDENT_IS_STANDING).order_by(_i.c.opened_at, _i.c.id)
_COUNT_OPEN = sa.select(sa.func.count()).where(
    _OF_TABLE, schema.INCIDENT_IS_STANDING, _i.c.state == IncidentState.OPEN.value
)


def add(connection: Connection, found: Iterable[Incident]) -> list[Incident]:
    """Adds those that were never recorded before, in whatever state, and returns them."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(_i).on_conflict_do_nothing().returning(_i.c.id)
    return [each for each in found if connection.execute(statement, _values(each)).scalar_one_or_none() is not None]


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
    return _incident(row)


def unresolved(connection: Connection, table_id: str, *, of: Collection[str] | None = None) -> list[Incident]:
    """Returns the table's open and suspected incidents, oldest first; `of` restricts them to these instants."""
    query = _STANDING if of is None else _STANDING.where(_i.c.instant.in_(of))
    return [_incident(row) for row in connection.execute(query, {"of_table": table_id})]


def dismissed(connection: Connection, table_id: str, kind: IncidentKind) -> list[Incident]:
    """Returns the table's last incidents of this kind that users have closed."""
    query = sa.select(_i).where(
        _i.c.table_id == table_id,
        _i.c.kind == kind.value,
        _i.c.state == IncidentState.CLEARED.value,
        _i.c.because.not_like(f"% {NO_LONGER_FOUND}"),
    )
    return [_incident(row) for row in connection.execute(query.order_by(_i.c.closed_at.desc()).limit(100))]


def every_standing(connection: Connection, table_id: str | None = None) -> Mapping[str, list[Incident]]:
    """Returns the open and suspected incidents by table id, of all tables or of one, oldest first."""
    query = sa.select(_i).where(schema.INCIDENT_IS_STANDING).order_by(_i.c.opened_at, _i.c.id)
    found: defaultdict[str, list[Incident]] = defaultdict(list)
    for row in connection.execute(query if table_id is None else query.where(_i.c.table_id == table_id)):
        found[row.table_id].append(_incident(row))
    return found


def count_open(connection: Connection, table_id: str) -> int:
    return int(connection.execute(_COUNT_OPEN, {"of_table": table_id}).scalar_one())


def counts(connection: Connection, table_ids: Collection[str]) -> Mapping[str, Counter[IncidentState]]:
    """Returns the number of unresolved incidents of each of these tables, by state."""
    query = (
        sa.select(_i.c.table_id, _i.c.state, sa.func.count())
        .where(_i.c.table_id.in_(table_ids), schema.INCIDENT_IS_STANDING)
        .group_by(_i.c.table_id, _i.c.state)
    )
    found: defaultdict[str, Counter[IncidentState]] = defaultdict(Counter)
    for table_id, state, number in connection.execute(query):
        found[table_id][IncidentState(state)] = number
    return found


def count_unresolved(connection: Connection) -> Counter[tuple[IncidentKind, IncidentState]]:
    """Counts the unresolved incidents of all tables by kind and state."""
    keys = (_i.c.kind, _i.c.state)
    query = sa.select(*keys, sa.func.count()).where(schema.INCIDENT_IS_STANDING).group_by(*keys)
    rows = connection.execute(query)
    return Counter({(IncidentKind(kind), IncidentState(state)): number for kind, state, number in rows})


def page(
    connection: Connection,
    *,
    limit: int,
    cursor: str | None = None,
    table_id: str | None = None,
    kinds: Collection[IncidentKind] = (),
    states: Collection[IncidentState] = (),
    since: datetime | None = None,
    until: datetime | None = None,
) -> Page[Incident]:
    """Returns a page, newest incident first. Empty `kinds` and `states` select all; the times are those of opening."""
    query = sa.select(_i).order_by(_i.c.opened_at.desc(), _i.c.id.desc()).limit(limit + 1)
    query = query.where(*within(_i.c.opened_at, since, until))
    if table_id is not None:
        query = query.where(_i.c.table_id == table_id)
    if kinds:
        query = query.where(_i.c.kind.in_([kind.value for kind in kinds]))
    if states:
        query = query.where(_i.c.state.in_([state.value for state in states]))
    if cursor:
        after = Cursor.parse(cursor)
        same_moment = sa.and_(_i.c.opened_at == after.created_at, _i.c.id < after.id)
        query = query.where(sa.or_(_i.c.opened_at < after.created_at, same_moment))
    rows = [_incident(row) for row in connection.execute(query)]
    return page_of(rows, limit, lambda incident: (incident.opened_at, incident.id))


def prune(connection: Connection, before: datetime, limit: int) -> int:
    """Removes at most `limit` incidents that were closed before then and whose commit has left the active timeline:
    otherwise a poll that starts over would find it again. Returns how many."""
    w = schema.watches
    old = (
        sa.select(_i.c.id)
        .join(w, w.c.table_id == _i.c.table_id)
        .where(_i.c.closed_at < before, sa.not_(schema.INCIDENT_IS_STANDING), _i.c.instant < w.c.active_from)
        .limit(limit)
    )
    return connection.execute(_i.delete().where(_i.c.id.in_(old))).rowcount


def _values(incident: Incident) -> dict[str, Any]:
    return {
        "id": incident.id,
        "table_id": incident.table_id,
        "kind": incident.kind.value,
        "instant": incident.instant,
        "state": incident.state.value,
        "operation": incident.operation,
        "details": dict(incident.details),
        "opened_at": incident.opened_at,
        "closed_at": incident.closed_at,
        "because": incident.because,
    }


def _incident(row: sa.Row[Any]) -> Incident:
    return Incident(
        id=row.id,
        table_id=row.table_id,
        kind=IncidentKind(row.kind),
        instant=row.instant,
        state=IncidentState(row.state),
        opened_at=row.opened_at,
        operation=row.operation,
        details=row.details,
        closed_at=row.closed_at,
        because=row.because,
    )
