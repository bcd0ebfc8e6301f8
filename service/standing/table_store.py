"""Reads the facts about tables. The number of queries does not depend on the number of tables."""

from __future__ import annotations

from collections import defaultdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from jobs.contract import JobKind, Problem
from service.catalog import snapshot_store, watch_store
from service.db import schema
from service.incidents import store as incident_store
from service.policies import store as policy_store
from service.policies.precedence import effective
from service.queue import job_store
from service.queue.job import JobState
from service.scheduling import decision_store
from service.standing.facts import Failures, TableFacts, Totals
from service.standing.fleet import FAILURES, FAILURES_SHOWN_FOR
from service.standing.upkeep import CURRENT

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from service.lake.snapshot import PartitionState
    from service.policies.policy import Policy

_t = schema.tables
_p = schema.partitions
_j = schema.jobs

# Written out, not bound: SQLite uses a partial index only where it sees that the condition holds.
_FAILED = _j.c.state == sa.literal_column(f"'{JobState.FAILED.value}'")


def facts(connection: Connection, now: datetime, table_id: str | None = None) -> list[TableFacts]:
    """Returns the facts of all tables, or of one; of none if it is not registered."""
    query = sa.select(_t.c.id, _t.c.name, _t.c.base_path)
    rows = connection.execute(query if table_id is None else query.where(_t.c.id == table_id)).all()
    if not rows:
        return []
    watches = watch_store.every(connection, table_id)
    policies = _policies(connection, {row.id: row.name for row in rows}, table_id)
    snapshots = snapshot_store.every(connection, table_id)
    totals, large, skewed = _totals(connection, table_id), *_buckets(connection, table_id)
    decisions = decision_store.current(connection, now - CURRENT, table_id)
    incidents = incident_store.every_standing(connection, table_id)
    failures = _failures(connection, now, table_id)
    jobs = defaultdict(list)
    for job in job_store.held_and_unknown(connection, table_id):
        jobs[job.table_id, job.state is JobState.UNKNOWN].append(job)
    return [
        TableFacts(
            id=row.id,
            name=row.name,
            base_path=row.base_path,
            watch=watches[row.id],
            policy=policies[row.id],
            snapshot=snapshots.get(row.id),
            totals=totals.get(row.id, Totals()),
            large=large.get(row.id),
            skewed=skewed.get(row.id),
            decisions=decisions.get(row.id, {}),
            incidents=incidents.get(row.id, ()),
            failures=failures.get(row.id, ()),
            unsettled=jobs.get((row.id, True), ()),
            held=jobs.get((row.id, False), ()),
        )
        for row in rows
        # A table that was registered a moment ago may have no watch in this view of the database.
        if row.id in watches
    ]


def _policies(connection: Connection, names: dict[str, str], table_id: str | None) -> dict[str, Policy]:
    """Merges the levels once for all tables without settings of their own that match the same patterns."""
    patterns = policy_store.every(connection)
    levels = policy_store.of_tables(connection, table_id)
    merged: dict[tuple[str, ...], Policy] = {}
    found = {}
    for each, name in names.items():
        matching = [pattern for pattern in patterns if fnmatchcase(name, pattern.pattern)]
        key = tuple(pattern.pattern for pattern in matching)
        if each in levels:
            found[each] = effective(matching, name, levels[each]).policy
            continue
        if key not in merged:
            merged[key] = effective(matching, name, None).policy
        found[each] = merged[key]
    return found


def _totals(connection: Connection, table_id: str | None) -> dict[str, Totals]:
    small = _number("small_files")
    query = sa.select(
        _p.c.table_id,
        *(
            sa.cast(sa.func.sum(each), sa.BigInteger)
            for each in (
                _number("base_files"),
                _number("base_bytes"),
                _number("log_bytes"),
                sa.case((small > 1, small), else_=0),
                _number("freed_files"),
                _number("freed_bytes"),
            )
        ),
    ).group_by(_p.c.table_id)
    return {row[0]: Totals(*row[1:]) for row in connection.execute(_of_table(query, table_id))}


def _buckets(
    connection: Connection, table_id: str | None
) -> tuple[dict[str, PartitionState], dict[str, PartitionState]]:
    """Returns of each table with a bucket index the partition with the largest bucket, and that with the most skew."""
    largest, number = _number("largest_bucket_bytes"), _number("num_buckets")
    size = _number("base_bytes") + _number("log_bytes")
    skew = sa.cast(largest * number, sa.Float) / sa.func.nullif(size, 0)
    query = sa.select(
        _p.c.table_id,
        _p.c.state,
        sa.func.row_number().over(partition_by=_p.c.table_id, order_by=(largest.desc(), _p.c.path)).label("by_size"),
        sa.func.row_number().over(partition_by=_p.c.table_id, order_by=(skew.desc(), _p.c.path)).label("by_skew"),
    ).where(largest > 0)
    ranked = _of_table(query, table_id).subquery()
    first = sa.select(ranked).where(sa.or_(ranked.c.by_size == 1, ranked.c.by_skew == 1))
    large, skewed = {}, {}
    for row in connection.execute(first):
        state = snapshot_store.partition_state(row.state)
        if row.by_size == 1:
            large[row.table_id] = state
        if row.by_skew == 1:
            skewed[row.table_id] = state
    return large, skewed


def _failures(connection: Connection, now: datetime, table_id: str | None) -> dict[str, list[Failures]]:
    since = now - 2 * FAILURES_SHOWN_FOR
    of_kind, newest_first = (_j.c.table_id, _j.c.kind), (_j.c.created_at.desc(), _j.c.id.desc())
    is_failed = sa.and_(_FAILED, _j.c.created_at > since, sa.not_(_j.c.dry_run))
    if table_id is not None:
        is_failed = sa.and_(is_failed, _j.c.table_id == table_id)
    place = sa.func.row_number().over(partition_by=of_kind, order_by=newest_first).label("place")
    ranked = sa.select(*of_kind, _j.c.created_at, place).where(is_failed).subquery()
    # Only if so many have failed, the last success is searched for, and once for all of them.
    other = schema.jobs.alias("other")
    success = (
        sa.select(other.c.created_at)
        .where(
            other.c.table_id == ranked.c.table_id,
            other.c.created_at > since,
            # Not as they are, so that the database searches by table: by kind and state it would read the jobs of all.
            other.c.kind.concat("") == ranked.c.kind,
            other.c.state.concat("") == JobState.SUCCEEDED.value,
            sa.not_(other.c.dry_run),
        )
        .order_by(other.c.created_at.desc())
        .limit(1)
        .correlate(ranked)
        .scalar_subquery()
    )
    enough = sa.select(ranked, success.label("success_at")).where(ranked.c.place == FAILURES).subquery()
    is_of_row = sa.and_(enough.c.table_id == _j.c.table_id, enough.c.kind == _j.c.kind)
    is_later = sa.or_(enough.c.success_at.is_(None), enough.c.success_at < _j.c.created_at)
    query = sa.select(
        *of_kind,
        _j.c.id,
        _j.c.error,
        _j.c.finished_at,
        sa.func.count().over(partition_by=of_kind).label("number"),
        sa.func.min(_j.c.finished_at, type_=schema.UtcDateTime).over(partition_by=of_kind).label("since"),
        place,
    )
    counted = query.join(enough, is_of_row).where(is_failed, is_later).subquery()
    last = sa.select(counted).where(counted.c.place == 1, counted.c.number >= FAILURES)
    found = defaultdict(list)
    for row in connection.execute(last):
        error = Problem.from_json(row.error) if row.error else None
        found[row.table_id].append(
            Failures(JobKind(row.kind), row.number, row.since, row.finished_at, row.id, error),
        )
    return found


def _of_table(query: sa.Select[Any], table_id: str | None) -> sa.Select[Any]:
    return query if table_id is None else query.where(_p.c.table_id == table_id)


def _number(name: str) -> sa.ColumnElement[int]:
    # By way of text: PostgreSQL would take it as an integer of 32 bits.
    return sa.func.coalesce(sa.cast(_p.c.state[name].as_string(), sa.BigInteger), 0)
