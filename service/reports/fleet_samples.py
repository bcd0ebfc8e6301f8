"""Samples of all tables and jobs together, and the trend that is computed from them. A sample has the state at its
time, and totals since the beginning. Thus the sum between two samples stays right when samples in between are
deleted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, Row

from jobs.spec import Documented, Spec
from service.catalog import table_statistics
from service.db import schema
from service.db.engine import reading, writing
from service.db.upsert import insert
from service.events import tally
from service.model.clock import Clock
from service.queue import job_tally, queue_statistics, worker_store
from service.queue.job import WITH_WORKER, JobState

_s = schema.fleet_samples

SLOT = timedelta(minutes=5)
_PER_HOUR = 12
_FINE_FOR = timedelta(days=9)
"""After this time, only the first sample of each hour is kept."""

_STEPS = tuple(timedelta(minutes=each) for each in (5, 15, 60, 360, 1440, 10_080))
_MOST_POINTS = 200
_COUNTERS = ("succeeded", "failed", "cancelled", "freed_bytes")


@dataclass(frozen=True)
class TrendPoint(Documented):
    """The state and the work in one step of a trend."""

    at: Annotated[datetime, Spec("Beginning of the step", examples=("2026-01-01T12:00:00Z",))]
    tables: Annotated[int, Spec("Registered tables, at the end of the step", examples=(31,))]
    log_bytes: Annotated[
        int, Spec("Size of the log files that wait for a compaction, at the end of the step", examples=(5 << 30,))
    ]
    queued: Annotated[int, Spec("Jobs that wait for a worker, at the end of the step", examples=(4,))]
    running: Annotated[float, Spec("Jobs that workers held, on average", examples=(1.5,))]
    slots: Annotated[float, Spec("Jobs that the ready workers could run at once, on average", examples=(2.0,))]
    succeeded: Annotated[int, Spec("Jobs that succeeded, without dry runs", examples=(12,))]
    failed: Annotated[int, Spec("Jobs that failed", examples=(0,))]
    cancelled: Annotated[int, Spec("Jobs that were cancelled", examples=(0,))]
    freed_bytes: Annotated[float, Spec("Size of the files that cleanings have deleted", examples=(1 << 30,))]


@dataclass(frozen=True)
class Trend:
    step: timedelta
    points: Sequence[TrendPoint]


def run_once(engine: Engine, clock: Clock) -> str:
    """Takes a sample if the present interval has none yet. Every replica may call this function at any time."""
    now = clock()
    slot = int(now.timestamp() // SLOT.total_seconds())
    with reading(engine) as connection:
        if connection.execute(sa.select(_s.c.slot).where(_s.c.slot == slot)).first():
            return "0 samples"
        row = {"slot": slot, "at": now, **_state(connection, now)}
    with writing(engine) as connection:
        connection.execute(insert(connection, _s).values(row).on_conflict_do_nothing())
    return "1 sample"


def _state(connection: Connection, now: datetime) -> dict[str, float]:
    tables = table_statistics.statistics(connection)
    active = queue_statistics.statistics(connection, now).active
    tallies = tally.every(connection)
    ends: defaultdict[str, float] = defaultdict(float)
    for (_, outcome), number in tallies.get(tally.JOBS_FINISHED, {}).items():
        ends[outcome] += number
    ready = [each for each in worker_store.every(connection) if each.is_alive(now) and each.is_ready]
    return {
        "tables": tables.tables,
        "log_bytes": tables.log_bytes,
        "queued": sum(number for (_, state), number in active.items() if state == JobState.QUEUED),
        "running": sum(number for (_, state), number in active.items() if state in WITH_WORKER),
        "slots": sum(each.info.slots or 1 for each in ready),
        "succeeded": ends["succeeded"],
        "failed": ends["failed"],
        "cancelled": ends["cancelled"],
        "freed_bytes": sum(tallies.get(job_tally.FREED_BYTES, {}).values()),
    }


def trend(connection: Connection, since: datetime, until: datetime) -> Trend:
    """Returns the trend of a period in at most 200 steps. A step without a sample is missing."""
    least = (until - since) / _MOST_POINTS
    step = next((each for each in _STEPS if each >= least), _STEPS[-1])
    rows = _s.select().where(_s.c.at >= since, _s.c.at < until)
    if step > timedelta(hours=1):
        rows = rows.where(_s.c.slot % _PER_HOUR == 0)
    last = connection.execute(_s.select().where(_s.c.at < since).order_by(_s.c.slot.desc()).limit(1)).first()
    steps: dict[int, list[Row[tuple[object, ...]]]] = defaultdict(list)
    for row in connection.execute(rows.order_by(_s.c.slot)):
        steps[int(row.at.timestamp() // step.total_seconds())].append(row)
    points = []
    for number, found in steps.items():
        before, last = last or found[0], found[-1]
        # A total decreases only if an older copy of the database was restored.
        counted = {name: max(0, getattr(last, name) - getattr(before, name)) for name in _COUNTERS}
        points.append(
            TrendPoint(
                at=datetime.fromtimestamp(number * step.total_seconds(), UTC),
                running=sum(each.running for each in found) / len(found),
                slots=sum(each.slots for each in found) / len(found),
                **{name: getattr(last, name) for name in ("tables", "log_bytes", "queued")},
                **{name: int(value) if name != "freed_bytes" else value for name, value in counted.items()},
            )
        )
    return Trend(step, points)


def prune(connection: Connection, before: datetime, limit: int, *, now: datetime) -> int:
    """Deletes at most `limit` samples that are older than `before`. Among samples older than `_FINE_FOR`, those that
    are not the first of their hour are deleted too."""
    is_fine = sa.and_(_s.c.slot % _PER_HOUR != 0, _s.c.at < now - _FINE_FOR)
    old = sa.select(_s.c.slot).where(sa.or_(_s.c.at < before, is_fine)).limit(limit)
    return connection.execute(_s.delete().where(_s.c.slot.in_(old))).rowcount
