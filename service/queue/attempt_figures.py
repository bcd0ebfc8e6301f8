"""The figures of ended attempts, and their sums for reports.

Each row has running totals, so the sum over a period is the difference of two rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cache
from typing import Annotated

import sqlalchemy as sa
from sqlalchemy import Connection

from jobs.contract import JobKind
from jobs.kinds.results import KindResult
from jobs.spec import Documented, Spec
from service.db import schema
from service.db.upsert import insert_into
from service.delivery import outbox
from service.outcome.gain import saved_by
from service.queue import circumstance_store, cost_store, gain_store, worker_store
from service.queue.breaker import slot_seconds
from service.queue.circumstances import Circumstances
from service.queue.cost import Ended
from service.queue.job import AttemptOutcome, Job
from service.queue.job_tally import amount

_f = schema.attempt_figures
_t = schema.figure_totals
_w = schema.workers

_FAILED = (AttemptOutcome.FAILED, AttemptOutcome.LOST)
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_GIB = {"k": 2.0**-20, "m": 2.0**-10, "g": 1.0, "t": 2.0**10}
# Every job executes this statement, so it is built once.
_MEMORY = sa.select(_w.c.driver_memory, _w.c.slots, _w.c.executors, _w.c.spark_conf).where(
    _w.c.id == sa.bindparam("of_worker")
)


@dataclass(frozen=True)
class Figures(Documented):
    """Work and cost of attempts. Amounts of data are those of successful attempts, without dry runs."""

    succeeded: Annotated[int, Spec("Attempts that succeeded, dry runs included", examples=(412,))] = 0
    failed: Annotated[int, Spec("Attempts that failed, or whose worker disappeared", examples=(3,))] = 0
    seconds: Annotated[
        float, Spec("Time that workers spent on attempts, failed ones and dry runs included", examples=(5400.0,))
    ] = 0
    gb_seconds: Annotated[
        float,
        Spec(
            "`seconds` of each attempt, multiplied by the memory of one slot in GiB: the memory of the worker's driver"
            " and executors, divided by the worker's slots. A worker that does not report its memory counts as 0",
            examples=(10800.0,),
        ),
    ] = 0
    freed_bytes: Annotated[float, Spec("Size of the files that cleanings have deleted", examples=(53687091200.0,))] = 0
    files_deleted: Annotated[float, Spec("Number of files that cleanings have deleted", examples=(1200.0,))] = 0
    files_before: Annotated[
        float, Spec("Files that clusterings, expansions and contractions have replaced", examples=(5000.0,))
    ] = 0
    files_after: Annotated[float, Spec("Files that these jobs have written instead", examples=(400.0,))] = 0
    log_files: Annotated[float, Spec("Log files that compactions have merged", examples=(8000.0,))] = 0
    log_bytes: Annotated[float, Spec("Size of the merged log files in bytes", examples=(21474836480.0,))] = 0
    locked_seconds: Annotated[
        float,
        Spec(
            "Time for which commits of jobs held the lock of a table. A writer that wanted to commit waited no longer "
            "than this",
            examples=(12.5,),
        ),
    ] = 0
    stopped_seconds: Annotated[
        float, Spec("Time for which Flink jobs were stopped for a job, until its attempt ended", examples=(0.0,))
    ] = 0


NAMES = tuple(each.name for each in fields(Figures))
_SECONDS = NAMES.index("seconds")


def of_attempt(job: Job, outcome: AttemptOutcome, result: KindResult, now: datetime, *, gib: float = 0.0) -> Figures:
    """Returns the figures of an attempt that has just ended. `job` is the job as it was leased, `result` is what the
    worker has reported, and `gib` is the memory of the worker's slot."""
    seconds = slot_seconds(job, now)
    is_good = outcome is AttemptOutcome.SUCCEEDED
    amounts = result.amounts if is_good and not job.dry_run else {}
    return Figures(
        succeeded=int(is_good),
        failed=int(outcome in _FAILED),
        seconds=seconds,
        gb_seconds=seconds * gib,
        stopped_seconds=_stopped(job, now),
        **{name: amount(each) for name, each in amounts.items()},
    )


def _stopped(job: Job, now: datetime) -> float:
    hand_over = job.hand_over
    if hand_over is None or hand_over.flink is None or hand_over.flink.ended_at is None:
        return 0.0
    # Earlier attempts have counted the time before this one.
    begun = hand_over.flink.ended_at if job.attempt <= 1 or job.leased_at is None else job.leased_at
    return max(0.0, (now - begun).total_seconds())


def gib_of_slot(driver: str | None, slots: int | None, executors: int | None, conf: Mapping[str, str]) -> float:
    """Returns the memory of one slot of a worker, in GiB."""
    of_executors = (executors or 0) * _gib(conf.get("spark.executor.memory"))
    return (_gib(driver) + of_executors) / max(1, slots or 1)


def _gib(text: str | None) -> float:
    """Returns a size in Spark's notation in GiB; 0 if the text has no unit."""
    found = re.fullmatch(r"(\d{1,9})([kmgt])b?", (text or "").strip().lower())
    return int(found[1]) * _GIB[found[2]] if found else 0.0


def record(connection: Connection, job: Job, outcome: AttemptOutcome, result: KindResult, now: datetime) -> None:
    """Stores the figures of an attempt that has just ended (`of_attempt`), and what the cost model learns from the
    attempt."""
    worker = connection.execute(_MEMORY, {"of_worker": job.worker_id}).one_or_none()
    gib = gib_of_slot(*worker) if worker else 0.0
    figures = of_attempt(job, outcome, result, now, gib=gib)
    add(connection, job.table_id, job.kind, figures, now)
    if figures.succeeded or figures.failed:
        ended = _ended(job, result, figures, gib, circumstance_store.at_end(connection, job))
        # The cost model reads ended attempts in the order of their positions.
        outbox.in_turn(connection, lambda connection: cost_store.record(connection, ended, now))
    if figures.succeeded and job.worth is not None:
        saved = saved_by(vars(figures), worker_store.read_rates(connection))
        gain_store.end(connection, job.id, saved, now)


def _ended(job: Job, result: KindResult, figures: Figures, gib: float, circumstances: Circumstances) -> Ended:
    """Returns what the cost model learns from an attempt. A dry run only plans to read and write."""
    is_good = bool(figures.succeeded)
    moved = result if is_good and not job.dry_run else None
    return Ended(
        table_id=job.table_id,
        kind=job.kind.value,
        dry_run=job.dry_run,
        seconds=figures.seconds,
        work=result.work,
        gib=gib,
        is_good=is_good,
        cpu_seconds=_known(result.cpu_seconds),
        bytes_read=_known(moved and moved.input_bytes),
        bytes_written=_known(getattr(moved, "bytes_written", None)),
        circumstances=circumstances,
    )


def _known(given: object) -> float | None:
    return amount(given) if isinstance(given, int | float) else None


def add(connection: Connection, table_id: str, kind: JobKind, figures: Figures, ended_at: datetime) -> None:
    row = {"table_id": table_id, "kind": kind.value, "ended_at": ended_at, **vars(figures)}
    totals = connection.execute(_add(connection.dialect.name), row).one()
    connection.execute(_f.insert().values(totals._asdict()))


@cache
def _add(dialect: str) -> sa.Executable:
    statement = insert_into(dialect, _t)
    new = statement.excluded
    amounts = {name: _t.c[name] + new[name] for name in NAMES}
    # A row that is added later must not have an earlier time, although the clocks of replicas differ a little.
    later = sa.case((new.ended_at > _t.c.ended_at, new.ended_at), else_=_t.c.ended_at)
    return statement.on_conflict_do_update(
        index_elements=["table_id", "kind"], set_={"ended_at": later, **amounts}
    ).returning(*_t.c)


@dataclass(frozen=True)
class Sums:
    """The figures of one table, or of one of its kinds of jobs."""

    table_id: str
    kind: str | None
    amounts: Sequence[float]  # One for each member of Figures, in the same order.

    @property
    def seconds(self) -> float:
        return self.amounts[_SECONDS]


def sums(connection: Connection, since: datetime, until: datetime, *, by_kind: bool) -> list[Sums]:
    """Returns the sums of the attempts that ended at `since` or later, and before `until`: by table, or by table and
    kind. The query's duration depends on the number of tables, not on the number of attempts."""
    last, before = _f.alias("last"), _f.alias("before")
    amounts = [last.c[name] - sa.func.coalesce(before.c[name], 0) for name in NAMES]
    keys = [_t.c.table_id, *([_t.c.kind] if by_kind else [])]
    query = (
        sa.select(*keys, *(sa.func.sum(each) for each in amounts))
        .select_from(_t)
        .join(last, last.c.id == _newest(until))
        .outerjoin(before, before.c.id == _newest(since))
        .where(last.c.ended_at >= since)
        .group_by(*keys)
    )
    if by_kind:
        return [Sums(table_id, kind, found) for table_id, kind, *found in connection.execute(query)]
    return [Sums(table_id, None, found) for table_id, *found in connection.execute(query)]


def gb_hours_since(connection: Connection, table_id: str, since: datetime) -> tuple[float, datetime | None]:
    """Returns the GB-hours of the table's attempts that have ended since `since`, and when the first of these ended."""
    ended = _f.c.table_id == table_id, _f.c.ended_at >= since
    earlier = _totals_before(connection, table_id, since)
    rows = connection.execute(
        sa.select(_f.c.kind, sa.func.max(_f.c.gb_seconds).label("most"), sa.func.min(_f.c.ended_at).label("first"))
        .where(*ended)
        .group_by(_f.c.kind)
    ).all()
    spent = sum(row.most - earlier.get(row.kind, 0.0) for row in rows)
    return spent / 3600, min((row.first for row in rows), default=None)


def gb_hours_of_each(
    connection: Connection, table_id: str, since: datetime, until: datetime
) -> list[tuple[datetime, float]]:
    """Returns the ends of the table's attempts in this period, the earliest first, and the GB-hours of each."""
    in_period = _f.c.table_id == table_id, _f.c.ended_at >= since, _f.c.ended_at < until
    rows = connection.execute(sa.select(_f.c.kind, _f.c.ended_at, _f.c.gb_seconds).where(*in_period)).all()
    totals = _totals_before(connection, table_id, since)
    found = []
    for kind, ended_at, total in sorted(rows, key=lambda each: (each.ended_at, each.gb_seconds)):
        found.append((ended_at, (total - totals.get(kind, 0.0)) / 3600))
        totals[kind] = total
    return found


def _totals_before(connection: Connection, table_id: str, since: datetime) -> dict[str, float]:
    query = sa.select(_f.c.kind, sa.func.max(_f.c.gb_seconds).label("most"))
    rows = connection.execute(query.where(_f.c.table_id == table_id, _f.c.ended_at < since).group_by(_f.c.kind))
    return {row.kind: row.most for row in rows}


def _newest(before: datetime) -> sa.ScalarSelect[int]:
    """The newest row of a table and kind before that moment."""
    return (
        sa.select(_f.c.id)
        .where(_f.c.table_id == _t.c.table_id, _f.c.kind == _t.c.kind, _f.c.ended_at < before)
        .order_by(_f.c.ended_at.desc(), _f.c.id.desc())
        .limit(1)
        .correlate(_t)
        .scalar_subquery()
    )


def prune(connection: Connection, before: datetime, limit: int) -> int:
    """Deletes at most `limit` figures of attempts that ended before `before`, and returns how many. The newest of these
    rows stays if later rows of its table and kind continue its totals. The time of such a row is set to the beginning
    of time, so that every period begins after it."""
    later = _f.alias("later")
    is_same = sa.and_(later.c.table_id == _f.c.table_id, later.c.kind == _f.c.kind)
    has_later = sa.exists().where(is_same, later.c.ended_at < before, later.c.id > _f.c.id)
    is_over = sa.exists().where(_t.c.table_id == _f.c.table_id, _t.c.kind == _f.c.kind, _t.c.ended_at < before)
    old = sa.select(_f.c.id).where(_f.c.ended_at < before, has_later | is_over).limit(limit)
    number = connection.execute(_f.delete().where(_f.c.id.in_(old))).rowcount
    if number < limit:
        is_left = sa.and_(_f.c.ended_at < before, _f.c.ended_at > _BEGINNING)
        connection.execute(_f.update().where(is_left).values(ended_at=_BEGINNING))
        connection.execute(_t.delete().where(_t.c.ended_at < before))
    return number
