"""Store of the completed instants of all tables that polls have seen."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from service.db import bulk, schema
from service.db.documents import Documents, Reading, rows_of, together
from service.db.page import Page, PageRequest, Shape, page_of
from service.lake.commit import CLEAN, COMPACTION, SERVICE_OPERATIONS, UPSERT, WRITING_ACTIONS, Commit
from service.lake.snapshot import Since

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

_c = schema.commits
_t = schema.tables
_commits = Documents(Commit, _c)

_BRINGS_ROWS = sa.or_(_c.c.operation.is_(None), _c.c.operation.not_in(schema.literals(sorted(SERVICE_OPERATIONS))))
# The same condition as `Commit.ingests`.
_IS_WRITE = _c.c.action.in_(schema.literals(sorted(WRITING_ACTIONS)))
_INGESTS = sa.and_(_IS_WRITE, _BRINGS_ROWS, _c.c.file_groups > 0)
# The order of the timeline is that of completion times. Table versions before 8 have no completion times, so the
# requested times are used for them.
_TIMELINE_TIME = sa.func.coalesce(_c.c.completion_time, _c.c.requested_time)


# Statements of a poll are built once, because building takes longer than executing.
_INSERTS = {
    name: insert(_c).on_conflict_do_nothing().returning(_c.c.id, _c.c.table_id, _c.c.requested_time, _c.c.action)
    for name, insert in (("postgresql", postgresql.insert), ("sqlite", sqlite.insert))
}
_OF_TABLE = _c.c.table_id == sa.bindparam("of_table")
KNOWN: Reading[set[tuple[str, str]]] = rows_of(
    tuple[str, str],
    sa.select(_c.c.requested_time, _c.c.action).where(_OF_TABLE, _c.c.requested_time >= sa.bindparam("since")),
).then(set)
"""Reads what `known` returns."""
_FIND_KNOWN = sa.select(
    _t.c.id,
    sa.exists().where(_c.c.table_id == _t.c.id, _c.c.requested_time == sa.bindparam("of_instant")).label("is_known"),
).where(_t.c.base_path == sa.bindparam("of_path"))
NEWEST: Reading[str | None] = rows_of(
    tuple[str | None], sa.select(sa.func.max(_c.c.requested_time).label("newest")).where(_OF_TABLE)
).then(lambda rows: rows[0][0])
"""Reads the requested time of the table's newest commit."""
_WRITES = _commits.select().where(_OF_TABLE, _IS_WRITE).limit(1)
_FIRST, _LAST = _WRITES.order_by(_c.c.id), _WRITES.order_by(_c.c.id.desc())
_LAST_RUN = {
    column: sa.select(_c.c.requested_time, _c.c.completed_at)
    .where(_OF_TABLE, _c.c[column] == sa.bindparam("run"))
    .order_by(_c.c.id.desc())
    .limit(1)
    for column in ("action", "operation")
}
# The sum is computed as a floating-point number, so that it does not overflow.
_COUNTED = sa.select(
    sa.func.count(),
    sa.func.coalesce(sa.func.sum(sa.cast(_c.c.bytes_written, sa.Float)), 0),
    sa.func.min(_c.c.completed_at),
).where(_OF_TABLE, _INGESTS)
_INSTANT = sa.bindparam("instant", type_=sa.String)
# Selects the commits that were requested no later than an instant, and of these the last one in the order of the
# timeline. The limit keeps the query fast for a table with very many commits.
_BY = (
    sa.select(_TIMELINE_TIME.label("at"))
    .where(_OF_TABLE, _IS_WRITE, _c.c.requested_time <= _INSTANT)
    .order_by(_c.c.requested_time.desc())
    .limit(1000)
    .subquery()
)
_LAST_BY = sa.select(sa.func.coalesce(sa.func.max(_BY.c.at), "")).scalar_subquery()
_COMMITS_SINCE = sa.select(sa.func.count()).where(
    _OF_TABLE, _IS_WRITE, _c.c.requested_time > _INSTANT, _LAST_BY < _TIMELINE_TIME
)
_WRITES_SINCE = _COMMITS_SINCE.where(_BRINGS_ROWS)
_WRITTEN = sa.select(_c.c.requested_time, _TIMELINE_TIME.label("at"), _c.c.completed_at).where(_OF_TABLE, _IS_WRITE)
_ONE = _WRITTEN.where(_c.c.requested_time == _INSTANT).limit(1)
_LATER = _WRITTEN.where(_c.c.requested_time > _INSTANT).order_by(_c.c.requested_time).limit(1000)
_EARLIER = _WRITTEN.where(_c.c.requested_time <= _INSTANT).order_by(_c.c.requested_time.desc()).limit(1000)
_LAST_COMPACTION = (
    sa.select(_c.c.requested_time)
    .where(_OF_TABLE, _c.c.operation == COMPACTION)
    .order_by(_c.c.id.desc())
    .limit(1)
    .scalar_subquery()
)
_OLDEST_LOG = sa.select(sa.func.min(_c.c.completed_at)).where(
    _OF_TABLE, _INGESTS, sa.func.coalesce(_LAST_COMPACTION, "") < _TIMELINE_TIME
)
_INGESTED = sa.select(sa.func.count(), sa.func.min(_c.c.completed_at)).where(
    _OF_TABLE,
    _INGESTS,
    _c.c.completed_at >= sa.bindparam("after", type_=schema.UtcDateTime),
    _c.c.completed_at < sa.bindparam("before", type_=schema.UtcDateTime),
)
_COUNTED_SINCE = _COUNTED.where(sa.bindparam("since", type_=sa.String) < _TIMELINE_TIME)


def record(connection: Connection, found: Iterable[Commit], seen_at: datetime) -> list[Commit]:
    """Adds the commits that are not stored yet, in the order given, and returns them with their ids and `seen_at`.

    If two callers record the same commit at once, it is returned to only one of them.
    """
    commits = list(found)
    if not commits:
        return []
    # The rows are inserted in the order given, so that their ids grow in this order.
    rows = connection.execute(_INSERTS[connection.dialect.name], [_values(commit, seen_at) for commit in commits])
    ids = {(table_id, requested, action): commit_id for commit_id, table_id, requested, action in rows}
    keyed = ((commit, ids.pop((commit.table_id, commit.requested_time, commit.action), None)) for commit in commits)
    return [
        dataclasses.replace(commit, id=commit_id, seen_at=seen_at)
        for commit, commit_id in keyed
        if commit_id is not None
    ]


def add(connection: Connection, found: Iterable[Commit], seen_at: datetime) -> None:
    """Adds commits of tables that have no stored commits yet, in the order given."""
    bulk.write(connection, _c, [_values(commit, seen_at) for commit in found])


def known(connection: Connection, table_id: str, since: str) -> set[tuple[str, str]]:
    """Returns requested time and action of the table's commits that were requested at `since` or later."""
    return KNOWN.read(connection, {"of_table": table_id, "since": since})


def is_known(connection: Connection, table_id: str, requested_time: str) -> bool:
    query = sa.select(_c.c.id).where(_c.c.table_id == table_id, _c.c.requested_time == requested_time).limit(1)
    return connection.execute(query).first() is not None


def find_known(connection: Connection, base_path: str, requested_time: str) -> tuple[str, bool] | None:
    """Returns the id of the table with this canonical base path, and whether its instant is known (`is_known`). Returns
    None if there is no such table."""
    found = connection.execute(_FIND_KNOWN, {"of_path": base_path, "of_instant": requested_time}).one_or_none()
    return found and (found.id, found.is_known)


def known_of(connection: Connection, table_id: str, requested_times: Collection[str]) -> set[str]:
    """Returns which of these instants are recorded as completed."""
    query = sa.select(_c.c.requested_time).where(_c.c.table_id == table_id, _c.c.requested_time.in_(requested_times))
    return set(connection.execute(query).scalars())


def last_recorded(connection: Connection, table_id: str) -> str | None:
    """Returns the requested time of the commit that was stored last, or None. Each poll stores commits in the order of
    their completion."""
    of_table = sa.select(_c.c.requested_time).where(_c.c.table_id == table_id, _IS_WRITE)
    last: str | None = connection.execute(of_table.order_by(_c.c.id.desc()).limit(1)).scalar()
    return last


def page(
    connection: Connection, asked: PageRequest, *, table_id: str | None = None, actions: Collection[str] = ()
) -> Page[Commit]:
    """Returns a page of commits, latest completion first. Empty `actions` select all; `since` and `until` are
    completion times."""
    query = _page(asked.shape, table_id is not None, tuple(sorted(set(actions))))
    found = _commits.many(connection, query, {**asked.given(_c.c.id), "of_table": table_id})
    return page_of(found, asked.limit, lambda commit: (commit.completed_at, str(commit.id)))


@lru_cache(maxsize=100)
def _page(shape: Shape, of_table: bool, actions: tuple[str, ...]) -> sa.Select[Any]:
    conditions = shape.conditions(_c.c.completed_at, _c.c.id) + ([_OF_TABLE] if of_table else [])
    latest = (_c.c.completed_at.desc(), _c.c.id.desc())
    most: sa.BindParameter[int] = sa.bindparam("most")
    if len(actions) > 1:
        # An index finds the next commit of each action in one step, however rare the action is.
        parts = [
            sa.select(_c.c.id).where(*conditions, _c.c.action == each).order_by(*latest).limit(most) for each in actions
        ]
        conditions = [_c.c.id.in_(sa.union_all(*(sa.select(each.subquery()) for each in parts)))]
    elif actions:
        conditions.append(_c.c.action == actions[0])
    return together(_commits.select().where(*conditions).order_by(*latest).limit(most))


def since_run(connection: Connection, table_id: str, run: str) -> Since:
    """Counts what writers have committed since the last `COMPACTION`, `CLUSTERING` or `CLEAN`.

    Counting begins when the run was *requested*, because the run's result does not include commits that completed
    during it. Hudi counts in the same way (`CompactionUtils.getDeltaCommitsSinceLatestCompaction`, 1.2).
    """
    query = _LAST_RUN["action" if run == CLEAN else "operation"]
    last = connection.execute(query, {"of_table": table_id, "run": run}).one_or_none()
    given = {"of_table": table_id}
    counted = (
        connection.execute(_COUNTED, given)
        if last is None
        else connection.execute(_COUNTED_SINCE, {**given, "since": last.requested_time})
    )
    commits, written, oldest_at = counted.one()
    return Since(commits, int(written), last.completed_at if last else None, oldest_at)


def since_freed(connection: Connection, table_id: str, instant: str, *, has_sessions: bool) -> int:
    """Takes the commits that were requested no later than this instant, and the last completion among them. Returns how
    many commits completed after that. A cleaning that retains at most this many commits may delete files that this
    instant took out of use.

    `has_sessions` says that sessions of Spark SQL write the table. Only commits of writers are retained then, so only
    these are counted (`jobs.protocol.clean_retention.commits_to_retain`).
    """
    query = _WRITES_SINCE if has_sessions else _COMMITS_SINCE
    return int(connection.execute(query, {"of_table": table_id, "instant": instant}).scalar_one())


def completed_at(connection: Connection, table_id: str, instant: str) -> datetime | None:
    """Returns when a commit completed; None if it is not known."""
    found = connection.execute(_ONE, {"of_table": table_id, "instant": instant}).one_or_none()
    return found.completed_at if found else None


def first_needed(connection: Connection, table_id: str, seen: str) -> str:
    """Returns the first instant whose replaced files a consumer still needs. The consumer has read up to the commit
    `seen`. The result is the earliest requested time among `seen` and the commits that completed later (the same rule
    as in `jobs.protocol.consumers`). If `seen` is unknown, another commit takes its place: the last one that completed
    before any commit that was requested after `seen`. If there is no such commit, the result is empty, because the
    consumer needs all replaced files."""
    given = {"of_table": table_id, "instant": seen}
    last = connection.execute(_ONE, given).one_or_none()
    if last is None:
        before = min((each.at for each in connection.execute(_LATER, given)), default=None)
        rows = connection.execute(_EARLIER, {**given, "instant": before} if before else given).all()
        last = max(
            (each for each in rows if before is None or each.at < before), key=lambda each: each.at, default=None
        )
        if last is None:
            return ""
    earlier = connection.execute(_EARLIER, {**given, "instant": last.requested_time})
    return min((str(each.requested_time) for each in earlier if each.at >= last.at), default="")


def is_any_between(connection: Connection, table_id: str, instant: str, until: str) -> bool:
    """Returns whether a completed commit was requested after one instant and before another one."""
    found = connection.execute(_LATER, {"of_table": table_id, "instant": instant}).first()
    return found is not None and found.requested_time < until


def ingested(connection: Connection, table_id: str, since: datetime, until: datetime) -> tuple[int, datetime | None]:
    """Returns how many commits of writers completed in a period (`until` exclusive), and when the first of them
    completed."""
    given = {"of_table": table_id, "after": since, "before": until}
    found, first_at = connection.execute(_INGESTED, given).one()
    return found, first_at


def oldest_log_at(connection: Connection, table_id: str) -> datetime | None:
    """Returns when the first commit after the last compaction completed, by the count of `since_run`; None without
    one."""
    found: datetime | None = connection.execute(_OLDEST_LOG, {"of_table": table_id}).scalar()
    return found


def since_run_among(commits: Sequence[Commit], run: str) -> Since:
    """Counts like `since_run`. `commits` must be all commits of a table, in the order of their completion."""
    runs = [each for each in commits if run == (each.action if run == CLEAN else each.operation)]
    counted = [each for each in commits if each.ingests]
    if runs:
        counted = [each for each in counted if (each.completion_time or each.requested_time) > runs[-1].requested_time]
    return Since(
        commits=len(counted),
        bytes_written=sum(each.bytes_written or 0 for each in counted),
        at=runs[-1].completed_at if runs else None,
        oldest_at=min((each.completed_at for each in counted), default=None),
    )


def first_and_last(connection: Connection, table_id: str) -> tuple[Commit | None, Commit | None]:
    """Returns the first and the last commit that wrote or replaced rows."""
    first, last = (_commits.one(connection, each, {"of_table": table_id}) for each in (_FIRST, _LAST))
    return first, last


def completed_between(
    connection: Connection, table_id: str, since: datetime, before: datetime, limit: int
) -> list[datetime]:
    """Returns when the commits of a period completed, the latest first. Only the last `limit` of them are returned."""
    is_between = sa.and_(_c.c.completed_at >= since, _c.c.completed_at < before)
    query = sa.select(_c.c.completed_at).where(_c.c.table_id == table_id, is_between)
    return list(connection.execute(query.order_by(_c.c.completed_at.desc()).limit(limit)).scalars())


def upserts(connection: Connection, table_id: str, since: datetime, limit: int) -> list[tuple[int, int]]:
    """Returns, for each of the latest upserts since `since`, how many partitions and file groups it touched."""
    is_upsert = sa.and_(_OF_TABLE, _c.c.operation == UPSERT, _c.c.completed_at >= since, _c.c.file_groups > 0)
    query = sa.select(_c.c.partitions, _c.c.file_groups).where(is_upsert).order_by(_c.c.completed_at.desc())
    rows = connection.execute(query.limit(limit), {"of_table": table_id})
    return [(len(partitions), file_groups) for partitions, file_groups in rows]


def prune(connection: Connection, before: datetime, limit: int) -> int:
    """Removes at most `limit` commits seen before `before`, and returns how many.

    A table's newest commit, and commits that are still on its active timeline, stay. Otherwise polls would find them as
    new commits.
    """
    w = schema.watches
    other = _c.alias()
    newer = sa.select(other.c.id).where(other.c.table_id == _c.c.table_id, other.c.id > _c.c.id)
    old = (
        sa.select(_c.c.id)
        .join(w, w.c.table_id == _c.c.table_id)
        .where(_c.c.seen_at < before, _c.c.requested_time < w.c.active_from, newer.exists())
        .limit(limit)
    )
    return connection.execute(_c.delete().where(_c.c.id.in_(old))).rowcount


def _values(commit: Commit, seen_at: datetime) -> dict[str, Any]:
    values = {**vars(commit), "seen_at": seen_at, "partitions": list(commit.partitions)}
    del values["id"]
    return values
