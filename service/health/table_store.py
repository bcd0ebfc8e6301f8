"""Reads the facts about tables. The number of queries does not depend on the number of tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection, Engine

from jobs.contract import JobKind, Problem
from service.catalog import snapshot_store, watch_store
from service.db import schema
from service.db.engine import decoded, may_find
from service.health.fleet import FAILURES_SHOWN_FOR
from service.health.late_services import CURRENT
from service.health.polling import OVERDUE
from service.health.problem_facts import Failures, TableFacts
from service.incidents import store as incident_store
from service.incidents.incident import Incident
from service.outcome import objective_store
from service.outcome.objective import ObjectiveState
from service.policies import store as policy_store
from service.policies.precedence import Subject, effective_of_each
from service.queue import breaker_store, held_back_store, lock_sighting_store
from service.queue.breaker import Breaker
from service.queue.job import WITH_WORKER, Job, JobState
from service.queue.lock_sighting import LockSighting
from service.scheduling import decision_store

_t = schema.tables
_j = schema.jobs
_w = schema.watches
_s = schema.snapshots
_d = schema.decisions
_p = schema.table_policies

# The state is a literal, because SQLite uses a partial index only if the statement itself contains its condition.
_FAILED = _j.c.state == sa.literal_column(f"'{JobState.FAILED.value}'")

MOST_FAILED = 5000
"""Maximum number of failed jobs to read, the newest first."""


def _raw(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Returns the column with unconverted values. The values are only compared, so converting them would waste time."""
    return sa.type_coerce(column, sa.types.NullType())


def _text(column: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
    return sa.cast(column, sa.Text)


_HAS_FAILED = _w.c.failures > 0


@cache
def _versions(dialect: str) -> sa.Select[Any]:
    summary: sa.ColumnElement[str] = _text(_s.c.summary)
    if dialect == "postgresql":
        # The database sends a digest, because the summary is only compared.
        summary = sa.func.md5(summary)
    overdue = sa.bindparam("overdue", type_=schema.UtcDateTime)
    after = sa.bindparam("after", type_=sa.Text)

    def of_table(table: sa.Table) -> sa.ColumnElement[bool]:
        # PostgreSQL does not derive the second condition from the first one. Without the second condition it would read
        # the joined rows of each page from the beginning.
        return (table.c.table_id == _t.c.id) & (table.c.table_id > after)

    return (
        sa.select(
            *(_t.c.id, _t.c.name, _t.c.base_path, _t.c.owner, _text(_t.c.tags).label("tags")),
            *(_w.c.failures, _raw(_w.c.gap_at), _raw(_w.c.looked_at)),
            _raw(sa.case((_HAS_FAILED, _w.c.failing_since))),
            sa.case((_HAS_FAILED, _text(_w.c.error))),
            _raw(sa.case((_w.c.next_poll_at <= overdue, _w.c.next_poll_at))),
            *(_raw(_s.c.taken_at), summary),
            *(_raw(_p.c.updated_at), _text(_p.c.settings)),
        )
        .join_from(_t, _w, of_table(_w))
        .outerjoin(_s, of_table(_s))
        .outerjoin(_p, of_table(_p))
        .where(_t.c.id > after)
        .order_by(_t.c.id)
        .limit(sa.bindparam("most"))
    )


# The list of tables is one JSON parameter: the search for problems asks for all tables, and SQLAlchemy would process
# each value of a list.
_TABLES = sa.select(_t.c.id, _t.c.name, _t.c.base_path, _t.c.owner, _t.c.tags).where(schema.among(_t.c.id, "of_tables"))
# Because of this expression SQLite does not use the index of the column, with which it would read all decisions.
_TABLE_ID = (_d.c.table_id + "").label("table_id")
_DECIDED = (
    sa.select(_TABLE_ID, sa.func.max(_d.c.id), _raw(sa.func.max(_d.c.last_at)), sa.func.count())
    .where(_d.c.last_at > sa.bindparam("since", type_=schema.UtcDateTime))
    .group_by(_TABLE_ID)
)


def decided(connection: Connection, now: datetime) -> dict[str, tuple[object, ...]]:
    """Returns, by table id, the times at which current decisions were last stored or repeated. Decisions have changed
    if these times differ."""
    return {row[0]: tuple(row) for row in connection.execute(_DECIDED, {"since": now - CURRENT})}


@dataclass(frozen=True)
class RareFacts:
    """The facts that few tables have, by table id. One query reads each of these facts for all tables."""

    incidents: Mapping[str, Sequence[Incident]]
    failures: Mapping[str, Sequence[Failures]]
    breakers: Mapping[str, Sequence[Breaker]]
    locks: Mapping[str, LockSighting]
    begun: Mapping[str, Sequence[Job]]
    missed: Mapping[str, ObjectiveState]

    def of(self, table_id: str) -> dict[str, Any]:
        """Returns members of the table's `TableFacts`."""
        jobs = self.begun.get(table_id, ())
        return {
            "incidents": self.incidents.get(table_id, ()),
            "failures": self.failures.get(table_id, ()),
            "breakers": self.breakers.get(table_id, ()),
            "lock": self.locks.get(table_id),
            "objective": self.missed.get(table_id),
            "unsettled": [job for job in jobs if job.state is JobState.UNKNOWN],
            "held": [job for job in jobs if job.state is not JobState.UNKNOWN],
        }


class Version(NamedTuple):
    """The version of a table's facts, without the rare ones. `digest` differs if the facts differ."""

    id: str
    name: str
    base_path: str
    owner: str | None
    tags: str  # JSON
    digest: int

    @property
    def subject(self) -> Subject:
        return Subject(self.name, self.owner, decoded(self.tags))


def versions(
    connection: Connection, now: datetime, decided: Mapping[str, object], after: str, limit: int
) -> list[Version]:
    """Returns the versions of at most `limit` tables in the order of their ids, after the table with the id `after`.
    `decided` is the result of the function of this name. The time of a table's next poll is part of the version only if
    the poll is overdue."""
    given = {"after": after, "overdue": now - OVERDUE, "most": limit}
    found = connection.execute(_versions(connection.dialect.name), given)
    # The values are compared as the driver returns them. Creating SQLAlchemy's rows would double the time.
    rows = found.cursor.fetchall() if found.cursor else ()
    found.close()
    return [Version(row[0], row[1], row[2], row[3], row[4], hash((row, decided.get(row[0])))) for row in rows]


def no_rare() -> RareFacts:
    return RareFacts({}, {}, {}, {}, {}, {})


def _any_rare() -> sa.Select[Any]:
    states = [JobState.UNKNOWN, JobState.QUEUED, *WITH_WORKER]
    rows = [
        sa.select(_j.c.id).where(_FAILED, _j.c.created_at > sa.bindparam("since", type_=schema.UtcDateTime)),
        sa.select(schema.breakers.c.table_id),
        sa.select(schema.lock_looks.c.table_id).where(schema.lock_looks.c.holds_back),
        sa.select(schema.incidents.c.id).where(schema.INCIDENT_IS_STANDING),
        sa.select(schema.objective_states.c.table_id).where(schema.objective_states.c.missed.is_not(None)),
        *(sa.select(_j.c.id).where(_j.c.state == sa.literal_column(f"'{each.value}'")) for each in states),
    ]
    return sa.select(sa.or_(*(each.exists() for each in rows)))


_ANY_RARE = _any_rare()


def is_any_rare(engine: Engine, now: datetime) -> bool:
    """Returns whether any table may have a rare fact. In most services no table has such a fact, and this query saves
    the nine queries of `rare`."""
    return may_find(engine, _ANY_RARE, since=now - 2 * FAILURES_SHOWN_FOR)


def rare(connection: Connection, now: datetime, table_ids: Collection[str] | None = None) -> RareFacts:
    breakers, jobs = defaultdict(list), defaultdict(list)
    for breaker in breaker_store.every(connection, now, table_ids):
        breakers[breaker.table_id].append(breaker)
    locks = {
        each: lock
        for each, lock in lock_sighting_store.in_the_way(connection, table_ids).items()
        if lock.is_in_the_way(now)
    }
    for job in held_back_store.begun_or_locked_out(connection, locks, table_ids):
        jobs[job.table_id].append(job)
    incidents = incident_store.every_standing(connection, table_ids)
    missed = objective_store.missed(connection, now, table_ids)
    return RareFacts(incidents, _failures(connection, now, table_ids), breakers, locks, jobs, missed)


def facts(
    connection: Connection, now: datetime, table_ids: Collection[str], rare_facts: RareFacts | None = None
) -> list[TableFacts]:
    """Returns the facts of these tables; tables that are not registered are left out. `rare_facts` are read if they are
    not given."""
    rare_facts = rare_facts or rare(connection, now, table_ids)
    rows = connection.execute(_TABLES, {"of_tables": list(table_ids)}).all()
    watches = watch_store.of_tables(connection, table_ids)
    levels = policy_store.OF_TABLES.read(connection, {"of_tables": list(table_ids)})
    policies = effective_of_each(policy_store.every(connection), levels, {row.id: Subject.of(row) for row in rows})
    snapshots = snapshot_store.of_tables(connection, table_ids)
    decisions = decision_store.current(connection, now - CURRENT, table_ids)
    return [
        TableFacts(
            id=row.id,
            name=row.name,
            base_path=row.base_path,
            watch=watches[row.id],
            policy=policies[row.id].policy,
            snapshot=snapshots.get(row.id),
            overdue_since=due_at if (due_at := watches[row.id].next_poll_at) <= now - OVERDUE else None,
            decisions=decisions.get(row.id, {}),
            **rare_facts.of(row.id),
        )
        for row in rows
        # A table that has just been registered may have no watch in this transaction's view of the database.
        if row.id in watches
    ]


def _failures(connection: Connection, now: datetime, table_ids: Collection[str] | None) -> dict[str, list[Failures]]:
    """Returns the failures by table id. A refused job that a person submitted is left out, because that person has seen
    the reason."""
    since = now - 2 * FAILURES_SHOWN_FOR
    is_known_refusal = sa.and_(_j.c.reason.is_(None), _j.c.result["refusals"].as_string().is_not(None))
    failed = (
        sa.select(_j.c.table_id, _j.c.kind, _j.c.id, _j.c.created_at, _j.c.finished_at)
        .where(_FAILED, _j.c.created_at > since, sa.not_(_j.c.dry_run), sa.not_(is_known_refusal))
        .order_by(_j.c.created_at.desc(), _j.c.id.desc())
        .limit(MOST_FAILED)
    )
    newest_first = defaultdict(list)
    for row in connection.execute(failed if table_ids is None else failed.where(_j.c.table_id.in_(table_ids))):
        newest_first[row.table_id, row.kind].append(row)
    if not newest_first:
        return {}
    tables = {table for table, _ in newest_first}
    is_good = sa.and_(_j.c.state == JobState.SUCCEEDED.value, sa.not_(_j.c.dry_run))
    successes = (
        sa.select(_j.c.table_id, _j.c.kind, sa.func.max(_j.c.created_at, type_=schema.UtcDateTime).label("at"))
        .where(_j.c.table_id.in_(tables), _j.c.created_at > since, is_good)
        .group_by(_j.c.table_id, _j.c.kind)
    )
    good_at = {(row.table_id, row.kind): row.at for row in connection.execute(successes)}
    runs = {
        key: [row for row in rows if row.created_at > good_at.get(key, since)] for key, rows in newest_first.items()
    }
    runs = {key: rows for key, rows in runs.items() if rows}
    last = sa.select(_j.c.id, _j.c.error).where(_j.c.id.in_([rows[0].id for rows in runs.values()]))
    errors = {row.id: Problem.from_json(row.error) if row.error else None for row in connection.execute(last)}
    found = defaultdict(list)
    for (table, kind), rows in runs.items():
        first_at = min(row.finished_at for row in rows)
        failures = Failures(JobKind(kind), len(rows), first_at, rows[0].finished_at, rows[0].id, errors.get(rows[0].id))
        found[table].append(failures)
    return found
