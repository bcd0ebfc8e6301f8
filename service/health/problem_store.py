"""Store of the open problems that the last round found, with the state that the next round needs. Reading stored
problems costs the same for one table as for thousands, but they are as old as the last round."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.db.engine import decoded
from service.db.upsert import insert
from service.health.next_step import Action
from service.health.problem import RANKS, About, HealthProblem, ObjectType, ProblemKind, Severity

_p = schema.standing_problems
_r = schema.problem_rounds
_ROUND = 1

_IS_OPEN = _p.c.resolved_at.is_(None)
# Looking up a value in this dictionary is several times as fast as calling the enum.
_KINDS = {str(kind): kind for kind in ProblemKind}
_SEVERITIES = {str(severity): severity for severity in Severity}
_OBJECTS = {str(each): each for each in ObjectType}


@dataclass(frozen=True)
class OpenProblem:
    problem: HealthProblem
    opened_at: datetime  # When a round first found it; `problem.since` may be earlier.
    base_path: str | None = None  # The base path of the problem's table.


@dataclass(frozen=True, slots=True)
class StoredProblem:
    """The fields of a stored problem that a round needs."""

    id: str
    kind: str  # May be unknown to this version of the service.
    severity: Severity
    table_id: str | None
    since: datetime
    opened_at: datetime
    seen_at: datetime
    missed: int  # Rounds in a row that have not found it.
    is_announced: bool
    resolved_at: datetime | None  # When the problem ended. If this is set, only its event is still to be published.


_COUNTS = (
    sa.select(_p.c.kind, _p.c.severity, sa.func.count())
    .where(_IS_OPEN, _p.c.kind.in_(list(_KINDS)))
    .group_by(_p.c.kind, _p.c.severity)
)
_KNOWN = sa.select(*(_p.c[each.name] for each in dataclasses.fields(StoredProblem)))
_LAST_ROUND = sa.select(_r.c.at).where(_r.c.id == _ROUND)


def claim(connection: Connection, began: datetime, least: timedelta) -> bool:
    """Returns whether a round that began at `began` may write. The round may not write if a later round, or one that
    began less than `least` before it, has already claimed to write. Concurrent rounds wait here for each other, so that
    only one of them handles each change."""
    is_due = sa.and_(_r.c.id == _ROUND, _r.c.at <= began - least)
    if connection.execute(_r.update().where(is_due).values(at=began)).rowcount:
        return True
    first = insert(connection, _r).values(id=_ROUND, at=began).on_conflict_do_nothing().returning(_r.c.id)
    return connection.execute(first).first() is not None


def is_latest(connection: Connection, began: datetime) -> bool:
    """Returns whether the round that began at `began` was the last one to claim to write. Until the transaction ends,
    no other round can claim."""
    query = sa.select(_r.c.at).where(_r.c.id == _ROUND).with_for_update()
    return connection.execute(query).scalar_one_or_none() == began


def last_round(connection: Connection) -> datetime | None:
    return connection.execute(_LAST_ROUND).scalar_one_or_none()


def known(connection: Connection) -> dict[str, StoredProblem]:
    return {
        problem_id: StoredProblem(problem_id, kind, _SEVERITIES[severity], *rest)
        for problem_id, kind, severity, *rest in connection.execute(_KNOWN)
    }


def add(connection: Connection, found: Iterable[OpenProblem]) -> None:
    rows = [
        {
            **_values(each),
            "id": each.problem.id,
            "opened_at": each.opened_at,
            "seen_at": each.opened_at,
            "missed": 0,
            "is_announced": False,
        }
        for each in found
    ]
    if rows:
        connection.execute(_p.insert(), rows)


def rewrite(connection: Connection, found: Iterable[OpenProblem], now: datetime) -> None:
    """Replaces the text, the figures and the severity of stored problems."""
    _each(connection, [{**_values(each), "_id": each.problem.id, "seen_at": now} for each in found])


def change(connection: Connection, ids: Collection[str], **values: Any) -> None:
    _each(connection, [{"_id": each, **values} for each in ids])


def delete(connection: Connection, ids: Collection[str]) -> None:
    if ids:
        connection.execute(_p.delete().where(_p.c.id == sa.bindparam("_id")), [{"_id": each} for each in ids])


def of_ids(connection: Connection, ids: Collection[str]) -> dict[str, OpenProblem]:
    query = sa.select(_p).where(_p.c.id.in_(ids))
    return {row.id: _open_problem(row) for row in connection.execute(query)} if ids else {}


def every(connection: Connection, limit: int | None = None) -> list[HealthProblem]:
    """Returns all open problems, or the first `limit`: the most serious first, and among equals the oldest first."""
    rows = connection.execute(_EVERY.limit(limit))
    return [_problem(row, decoded(row.words, _Words)) for row in rows]


def counts(connection: Connection) -> dict[tuple[ProblemKind, Severity], int]:
    return {(_KINDS[kind], _SEVERITIES[severity]): number for kind, severity, number in connection.execute(_COUNTS)}


def by_table(connection: Connection) -> dict[str | None, int]:
    """Counts the open problems of each table, and under None those about no table."""
    number = sa.func.count().label("number")
    query = sa.select(_p.c.table_id, number).where(_IS_OPEN, _p.c.kind.in_(list(_KINDS))).group_by(_p.c.table_id)
    return {row.table_id: row.number for row in connection.execute(query)}


def of_tables(connection: Connection) -> dict[tuple[str, Severity], int]:
    """Counts the open problems of each table by severity."""
    query = (
        sa.select(_p.c.table_id, _p.c.severity, sa.func.count().label("number"))
        .where(_IS_OPEN, _p.c.kind.in_(list(_KINDS)), _p.c.table_id.is_not(None))
        .group_by(_p.c.table_id, _p.c.severity)
    )
    return {(row.table_id, Severity(row.severity)): row.number for row in connection.execute(query)}


def _each(connection: Connection, changes: list[dict[str, Any]]) -> None:
    if changes:
        connection.execute(_p.update().where(_p.c.id == sa.bindparam("_id")), changes)


def _values(found: OpenProblem) -> dict[str, Any]:
    problem = found.problem
    return {
        "kind": problem.kind.value,
        "severity": problem.severity.value,
        "rank": RANKS[problem.severity],
        "about_type": problem.about.type.value,
        "about_id": problem.about.id,
        "about_name": problem.about.name,
        "table_id": problem.table_id,
        "since": problem.since,
        "data": {**problem.words, "part": problem.part, "base_path": found.base_path},
    }


class _Words(msgspec.Struct):
    """The part of a problem that is stored as JSON."""

    title: str
    detail: str
    consequence: str
    remedy: str
    evidence: dict[str, Any]
    action: Action | None
    part: str
    base_path: str | None
    # The command is missing if an earlier version of the service has stored the problem. A round adds it within
    # minutes.
    command: str = ""


_EVERY = (
    sa.select(
        *(_p.c.kind, _p.c.severity, _p.c.about_type, _p.c.about_id, _p.c.about_name, _p.c.since),
        sa.cast(_p.c.data, sa.Text).label("words"),
    )
    .where(_IS_OPEN, _p.c.kind.in_(list(_KINDS)))
    .order_by(_p.c.rank, _p.c.since, _p.c.id)
)


def _open_problem(row: sa.Row[Any]) -> OpenProblem:
    words = msgspec.convert(row.data, _Words)
    return OpenProblem(_problem(row, words), row.opened_at, words.base_path)


def _problem(row: sa.Row[Any], words: _Words) -> HealthProblem:
    return HealthProblem(
        kind=_KINDS[row.kind],
        severity=_SEVERITIES[row.severity],
        about=About(_OBJECTS[row.about_type], row.about_id, row.about_name),
        since=row.since,
        title=words.title,
        detail=words.detail,
        consequence=words.consequence,
        remedy=words.remedy,
        command=words.command,
        evidence=words.evidence,
        action=words.action,
        part=words.part,
    )
