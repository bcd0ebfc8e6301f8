"""Store of the reads of tables: their number in each hour, and the runs that have been counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.db.documents import Reading, rows_of
from service.db.upsert import insert, insert_into
from service.outcome.reads import SEEN_FOR, ReadSource

_r = schema.table_reads
_n = schema.read_runs

_RUNS_KEPT = timedelta(days=2)
"""A run that reports again after this time counts again."""

_HOUR = 3600
# Every decision executes this statement, so it is built once. `prune` limits the number of rows.
SEEN: Reading[list[tuple[ReadSource, int, int]]] = rows_of(
    tuple[ReadSource, int, int],
    sa.select(_r.c.source, _r.c.hour, _r.c.reads).where(_r.c.table_id == sa.bindparam("of_table")),
)
"""Reads the reads of a table by source and hour, for `by_age`."""


def count_run(connection: Connection, run: str, table_ids: Collection[str], source: ReadSource, now: datetime) -> int:
    """Counts a read of each of these tables for which this run was not counted before. Returns how many reads were
    counted. `run` is a digest of the run's id."""
    rows = [{"run": run, "table_id": each, "seen_at": now} for each in sorted(table_ids)]
    if not rows:
        return 0
    statement = insert(connection, _n).on_conflict_do_nothing().returning(_n.c.table_id)
    new = [row.table_id for row in connection.execute(statement, rows)]
    count(connection, dict.fromkeys(new, 1), source, now)
    return len(new)


def count(connection: Connection, reads: Mapping[str, int], source: ReadSource, now: datetime) -> None:
    """Adds these numbers of reads to each table."""
    rows = [
        {"table_id": table_id, "source": source.value, "hour": hour_of(now), "reads": number}
        for table_id, number in sorted(reads.items())
    ]
    if rows:
        connection.execute(_add(connection.dialect.name), rows)


@cache
def _add(dialect: str) -> sa.Insert:
    statement = insert_into(dialect, _r)
    more = {"reads": _r.c.reads + statement.excluded.reads}
    return statement.on_conflict_do_update(index_elements=["table_id", "source", "hour"], set_=more)


def seen(connection: Connection, table_id: str, now: datetime) -> dict[ReadSource, dict[int, int]]:
    """Returns the reads of the last days by source and age in hours, and the last read before these days."""
    return by_age(SEEN.read(connection, {"of_table": table_id}), now)


def by_age(rows: Iterable[tuple[ReadSource, int, int]], now: datetime) -> dict[ReadSource, dict[int, int]]:
    """Returns the same as `seen`, computed from the rows that `SEEN` has read."""
    found: defaultdict[ReadSource, dict[int, int]] = defaultdict(dict)
    for source, hour, reads in rows:
        found[source][hour_of(now) - hour] = reads
    return found


def seen_by_days(connection: Connection, now: datetime) -> dict[str, dict[ReadSource, dict[int, int]]]:
    """Returns the reads of all tables in the last days as `seen` does, but summed over 24 hours each."""
    age = sa.literal(hour_of(now)) - _r.c.hour
    day = (age // 24).label("day")
    query = sa.select(_r.c.table_id, _r.c.source, day, sa.func.sum(_r.c.reads))
    query = query.where(_r.c.hour >= hour_of(now - SEEN_FOR)).group_by(_r.c.table_id, _r.c.source, day)
    found: defaultdict[str, dict[ReadSource, dict[int, int]]] = defaultdict(dict)
    for table_id, source, days, reads in connection.execute(query):
        found[table_id].setdefault(ReadSource(source), {})[24 * days + 12] = int(reads)
    return found


def prune(connection: Connection, now: datetime, limit: int) -> int:
    """Deletes at most `limit` reads and runs that are too old to count. The last reads of a table stay. So a table that
    is no longer read differs from a table that was never read."""
    later = _r.alias()
    is_last = ~sa.exists().where(
        later.c.table_id == _r.c.table_id, later.c.source == _r.c.source, later.c.hour > _r.c.hour
    )
    old = (
        sa.select(_r.c.table_id, _r.c.source, _r.c.hour)
        .where(_r.c.hour < hour_of(now - SEEN_FOR), ~is_last)
        .limit(limit)
    )
    number = connection.execute(_r.delete().where(sa.tuple_(_r.c.table_id, _r.c.source, _r.c.hour).in_(old))).rowcount
    runs = sa.select(_n.c.run, _n.c.table_id).where(_n.c.seen_at < now - _RUNS_KEPT).limit(limit - number)
    return number + connection.execute(_n.delete().where(sa.tuple_(_n.c.run, _n.c.table_id).in_(runs))).rowcount


def hour_of(at: datetime) -> int:
    return int(at.timestamp()) // _HOUR
