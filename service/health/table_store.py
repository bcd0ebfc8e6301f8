"""Reads the facts about tables. The number of queries does not depend on the number of tables."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import sqlalchemy as sa

from jobs.contract import JobKind, Problem
from service.catalog import snapshot_store, watch_store
from service.db import schema
from service.health.fleet import FAILURES_SHOWN_FOR
from service.health.late_services import CURRENT
from service.health.problem_facts import Failures, TableFacts
from service.incidents import store as incident_store
from service.outcome import objective_store
from service.policies import store as policy_store
from service.policies.precedence import Subject, effective
from service.queue import breaker_store, held_store, lock_sighting_store
from service.queue.job import JobState
from service.scheduling import decision_store

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from service.catalog.snapshot_store import KnownSnapshots
    from service.policies.policy import Policy

_t = schema.tables
_j = schema.jobs

# Written out, not bound: SQLite uses a partial index only where it sees that the condition holds.
_FAILED = _j.c.state == sa.literal_column(f"'{JobState.FAILED.value}'")

MOST_FAILED = 5000
"""Maximum number of failed jobs to read, the newest first."""


def ids(connection: Connection) -> list[str]:
    """Returns the ids of all tables."""
    return list(connection.execute(sa.select(_t.c.id).order_by(_t.c.id)).scalars())


def facts(
    connection: Connection, now: datetime, table_id: str | None = None, *, snapshots: KnownSnapshots | None = None
) -> list[TableFacts]:
    """Returns the facts of all tables, or of one if it is registered. `snapshots` are those that were read before
    (`snapshot_store.every`)."""
    query = sa.select(_t.c.id, _t.c.name, _t.c.base_path, _t.c.owner, _t.c.tags)
    rows = connection.execute(query if table_id is None else query.where(_t.c.id == table_id)).all()
    if not rows:
        return []
    watches = watch_store.every(connection, table_id)
    policies = _policies(connection, {row.id: Subject.of(row) for row in rows}, table_id)
    found = snapshot_store.every(connection, table_id, known=snapshots)
    decisions = decision_store.current(connection, now - CURRENT, None if table_id is None else [table_id])
    incidents = incident_store.every_standing(connection, table_id)
    failures = _failures(connection, now, table_id)
    objectives = objective_store.states(connection, now, None if table_id is None else [table_id])
    jobs = defaultdict(list)
    breakers = defaultdict(list)
    for breaker in breaker_store.every(connection, now, table_id):
        breakers[breaker.table_id].append(breaker)
    locks = {
        each: lock
        for each, lock in lock_sighting_store.in_the_way(connection, table_id).items()
        if lock.is_in_the_way(now)
    }
    for job in held_store.begun_or_locked_out(connection, locks, table_id):
        jobs[job.table_id, job.state is JobState.UNKNOWN].append(job)
    return [
        TableFacts(
            id=row.id,
            name=row.name,
            base_path=row.base_path,
            watch=watches[row.id],
            policy=policies[row.id],
            snapshot=found.get(row.id),
            decisions=decisions.get(row.id, {}),
            incidents=incidents.get(row.id, ()),
            failures=failures.get(row.id, ()),
            unsettled=jobs.get((row.id, True), ()),
            held=jobs.get((row.id, False), ()),
            breakers=breakers.get(row.id, ()),
            objective=objectives.get(row.id),
            lock=locks.get(row.id),
        )
        for row in rows
        # A table that has just been registered may have no watch in this transaction's view of the database.
        if row.id in watches
    ]


def _policies(connection: Connection, subjects: dict[str, Subject], table_id: str | None) -> dict[str, Policy]:
    """Returns the policies by table id. Tables without settings of their own that match the same patterns share one
    merged policy."""
    patterns = policy_store.every(connection)
    levels = policy_store.of_tables(connection, table_id)
    merged: dict[tuple[str, ...], Policy] = {}
    found = {}
    for each, subject in subjects.items():
        matching = [pattern for pattern in patterns if subject.matches(pattern.pattern)]
        key = tuple(pattern.pattern for pattern in matching)
        if each in levels:
            found[each] = effective(matching, subject, levels[each]).policy
            continue
        if key not in merged:
            merged[key] = effective(matching, subject, None).policy
        found[each] = merged[key]
    return found


def _failures(connection: Connection, now: datetime, table_id: str | None) -> dict[str, list[Failures]]:
    """Returns the failures by table id. Refused jobs that a person submitted are left out, because that person has seen
    the reason."""
    since = now - 2 * FAILURES_SHOWN_FOR
    is_told = sa.and_(_j.c.reason.is_(None), _j.c.result["refusals"].as_string().is_not(None))
    failed = (
        sa.select(_j.c.table_id, _j.c.kind, _j.c.id, _j.c.created_at, _j.c.finished_at)
        .where(_FAILED, _j.c.created_at > since, sa.not_(_j.c.dry_run), sa.not_(is_told))
        .order_by(_j.c.created_at.desc(), _j.c.id.desc())
        .limit(MOST_FAILED)
    )
    newest_first = defaultdict(list)
    for row in connection.execute(failed if table_id is None else failed.where(_j.c.table_id == table_id)):
        newest_first[row.table_id, row.kind].append(row)
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
