"""Store of samples. Each table has at most one sample for each five minutes, one for each hour, and one for each day.

A sample is written to the present five minutes, hour and day at once, and replaces the earlier one there. So no samples
have to be combined later, only deleted: five-minute samples after a day, and hourly samples after a month.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from sqlalchemy import Connection

from service.catalog.sample import Sample
from service.db import bulk, schema

_s = schema.samples

_SHORT, _HOUR, _DAY = 300, 3600, 86_400
_TABLES_AT_ONCE = 500

_STEPS_KEPT = ((_SHORT, timedelta(days=1), _HOUR), (_HOUR, timedelta(days=30), _DAY))
"""For each step: its length in seconds, how long its samples are kept, and the length of the next step. The time up to
which samples are deleted is rounded to the beginning of a sample of the next step, so that there is no gap."""


# The last day is read from hourly samples, which are a twelfth of the rows. Only the last two hours are read from
# five-minute samples. The two steps are rows of a joined table. Otherwise SQLite would search the samples of all tables
# by their times, not those of each table.
_STEPS = sa.union_all(
    *(
        sa.select(sa.literal(step).label("step"), sa.bindparam(since, type_=sa.BigInteger).label("since"))
        for step, since in ((_HOUR, "since_hour"), (_SHORT, "since_short"))
    )
).subquery("steps")
_OF_LAST_DAY = (
    sa.select(_s.c.table_id, _s.c.at, _s.c.log_bytes, _s.c.base_bytes)
    .join_from(_STEPS, _s, sa.and_(_s.c.step == _STEPS.c.step, _s.c.slot >= _STEPS.c.since))
    .where(schema.among(_s.c.table_id, "of_tables"))
    .order_by(_s.c.at)
)


def record(connection: Connection, samples: Mapping[str, Sample]) -> None:
    """Writes a sample of each table. The sample replaces earlier ones of the same five minutes, hour and day."""
    rows = [
        {"table_id": table_id, "step": step, "slot": _slot(sample.at, step), **vars(sample)}
        for table_id, sample in samples.items()
        for step in (_SHORT, _HOUR, _DAY)
    ]
    bulk.write(connection, _s, rows, key=("table_id", "step", "slot"))


def of_table(
    connection: Connection,
    table_id: str,
    now: datetime,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int,
) -> list[Sample]:
    """Returns the newest `limit` samples from `since` to `until` (exclusive), oldest first. There is one for each five
    minutes of the last day, for each hour of the last month, and for each day before."""
    parts, end = [], None
    for step, kept, slot in _STEPS_KEPT:
        begin = _begin(now - kept, slot)
        parts.append(sa.and_(_s.c.step == step, _s.c.at >= begin, *([_s.c.at < end] if end else [])))
        end = begin
    parts.append(sa.and_(_s.c.step == _DAY, _s.c.at < end))
    query = sa.select(_s).where(_s.c.table_id == table_id, sa.or_(*parts))
    if since is not None:
        query = query.where(_s.c.at >= since)
    if until is not None:
        query = query.where(_s.c.at < until)
    rows = connection.execute(query.order_by(_s.c.at.desc()).limit(limit)).all()
    names = [each.name for each in dataclasses.fields(Sample)]
    return [Sample(**{name: getattr(row, name) for name in names}) for row in reversed(rows)]


def of_tables(
    connection: Connection,
    table_ids: Sequence[str],
    since: datetime,
    until: datetime,
    now: datetime,
    *,
    before: timedelta = timedelta(0),
) -> dict[str, list[Sample]]:
    """Returns, by table id, the samples of these tables in a period and in the time `before` it, oldest first. There is
    one for each five minutes if the period lies in the last day; else one for each hour of the last month and for each
    day before."""
    step = next((each for each, kept, _ in _STEPS_KEPT if since >= now - kept), _DAY)
    names = [each.name for each in dataclasses.fields(Sample)]
    found: defaultdict[str, list[Sample]] = defaultdict(list)
    for begin in range(0, len(table_ids), _TABLES_AT_ONCE):
        query = sa.select(_s.c.table_id, *(_s.c[name] for name in names)).where(
            _s.c.table_id.in_(table_ids[begin : begin + _TABLES_AT_ONCE]),
            *(_s.c.step == step, _s.c.at >= since - before, _s.c.at < until),
        )
        for table_id, *values in connection.execute(query.order_by(_s.c.table_id, _s.c.slot)):
            found[table_id].append(Sample(*values))
    return found


def log_ratios(
    connection: Connection, table_ids: Collection[str], now: datetime, points: int
) -> dict[str, list[float]]:
    """Returns the log bytes of each table divided by its base bytes, at `points` equidistant moments. The moments reach
    from a day ago, or from the first sample of a younger table, to now. A sample's ratio is valid until the next
    sample."""
    day_ago, hours_ago = now - timedelta(days=1), now - timedelta(hours=2)
    samples: defaultdict[str, list[tuple[datetime, float]]] = defaultdict(list)
    since = {"since_hour": _slot(day_ago, _HOUR) - 1, "since_short": _slot(hours_ago, _SHORT)}
    given = {"of_tables": list(table_ids), **since}
    for table_id, at, log_bytes, base_bytes in connection.execute(_OF_LAST_DAY, given):
        samples[table_id].append((at, round(log_bytes / base_bytes, 4) if base_bytes else 0.0))
    return {table_id: _at_intervals(found, day_ago, now, points) for table_id, found in samples.items()}


def _at_intervals(
    samples: Sequence[tuple[datetime, float]], begin: datetime, end: datetime, points: int
) -> list[float]:
    ratios = [ratio for _, ratio in samples]
    if len(set(ratios)) == 1:
        return ratios[:1] * points
    begin = max(begin, samples[0][0])
    # Computing with numbers takes a fifth of the time of computing with dates.
    times = [(at - begin).total_seconds() for at, _ in samples]
    between = (end - begin).total_seconds() / (points - 1)
    return [ratios[max(0, bisect_right(times, between * number) - 1)] for number in range(points)]


def prune(connection: Connection, before: datetime, limit: int, *, now: datetime) -> int:
    """Deletes up to `limit` samples that are older than `before`, or older than samples of their step are kept. Returns
    how many were deleted."""
    ends = [(step, max(before, _begin(now - kept, slot))) for step, kept, slot in _STEPS_KEPT] + [(_DAY, before)]
    deleted = 0
    for step, end in ends:
        old = (
            sa.select(_s.c.table_id, _s.c.step, _s.c.slot)
            .where(_s.c.step == step, _s.c.at < end)
            .order_by(_s.c.at)
            .limit(limit - deleted)
        )
        key = sa.tuple_(_s.c.table_id, _s.c.step, _s.c.slot)
        deleted += connection.execute(_s.delete().where(key.in_(old))).rowcount
        if deleted >= limit:
            break
    return deleted


def _begin(at: datetime, slot: int) -> datetime:
    """Returns the beginning of the slot that contains `at`; `slot` is its length in seconds."""
    seconds = int(at.timestamp())
    return datetime.fromtimestamp(seconds - seconds % slot, UTC)


def _slot(at: datetime, step: int) -> int:
    return int(at.timestamp()) // step
