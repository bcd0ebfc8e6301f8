"""The figures of ended attempts, and their sums for reports."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import sqlalchemy as sa

from jobs.contract import JobKind
from jobs.kinds.registry import KINDS
from jobs.spec import Spec, Told
from service.db import schema
from service.queue.job import AttemptOutcome
from service.queue.job_tally import amount

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from service.queue.job import Job

_f = schema.attempt_figures
_w = schema.workers

_FAILED = (AttemptOutcome.FAILED, AttemptOutcome.LOST)
# The report of a broken worker must not be too large for the column.
_MOST = 2**50
_GIB = {"k": 2.0**-20, "m": 2.0**-10, "g": 1.0, "t": 2.0**10}
# Every job executes this statement, so it is built once.
_MEMORY = sa.select(_w.c.driver_memory, _w.c.slots, _w.c.executors, _w.c.spark_conf).where(
    _w.c.id == sa.bindparam("of_worker")
)


@dataclass(frozen=True)
class Figures(Told):
    """What attempts have done and cost. Amounts are those that succeeded, without dry runs."""

    succeeded: Annotated[int, Spec("Attempts that succeeded, dry runs included", examples=(412,))] = 0
    failed: Annotated[int, Spec("Attempts that failed, or whose worker disappeared", examples=(3,))] = 0
    seconds: Annotated[
        float, Spec("Time that workers spent on attempts, failed ones and dry runs included", examples=(5400.0,))
    ] = 0
    gb_seconds: Annotated[
        float,
        Spec(
            "`seconds` of each attempt, multiplied by the memory of one slot in GiB: the memory of the worker's driver"
            " and executors, divided by its slots. A worker that does not report its memory counts as 0",
            examples=(10800.0,),
        ),
    ] = 0
    freed_bytes: Annotated[float, Spec("Size of the files that cleanings have deleted", examples=(53687091200.0,))] = 0
    files_deleted: Annotated[float, Spec("How many files these are", examples=(1200.0,))] = 0
    files_before: Annotated[
        float, Spec("Files that clusterings, expansions and contractions have replaced", examples=(5000.0,))
    ] = 0
    files_after: Annotated[float, Spec("Files that they have written instead", examples=(400.0,))] = 0
    log_files: Annotated[float, Spec("Log files that compactions have merged", examples=(8000.0,))] = 0
    log_bytes: Annotated[float, Spec("Their size in bytes", examples=(21474836480.0,))] = 0
    locked_seconds: Annotated[
        float,
        Spec(
            "Time for which commits of jobs held the lock of a table: a writer that wanted to commit waited at most so"
            " long",
            examples=(12.5,),
        ),
    ] = 0
    stopped_seconds: Annotated[
        float, Spec("Time for which Flink jobs were stopped for a job, until its attempt ended", examples=(0.0,))
    ] = 0

    def __add__(self, other: Figures) -> Figures:
        return Figures(*(getattr(self, each) + getattr(other, each) for each in NAMES))


NAMES = tuple(each.name for each in fields(Figures))


def of_attempt(
    job: Job, outcome: AttemptOutcome, details: Mapping[str, Any], now: datetime, *, gib: float = 0.0
) -> Figures:
    """Returns the figures of an attempt that has just ended. `job` is as it was leased, `details` are those of the
    worker's result, `gib` is the memory of its slot."""
    seconds = max(0.0, (now - job.leased_at).total_seconds()) if job.leased_at else 0.0
    is_good = outcome is AttemptOutcome.SUCCEEDED
    amounts = KINDS[job.kind].result.parse(details).amounts if is_good and not job.dry_run else {}
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
    """Returns a size in Spark's notation in GiB; 0 for what has no unit."""
    found = re.fullmatch(r"(\d{1,9})([kmgt])b?", (text or "").strip().lower())
    return int(found[1]) * _GIB[found[2]] if found else 0.0


def record(
    connection: Connection, job: Job, outcome: AttemptOutcome, details: Mapping[str, Any], now: datetime
) -> None:
    """Stores the figures of an attempt that has just ended (`of_attempt`)."""
    worker = connection.execute(_MEMORY, {"of_worker": job.worker_id}).one_or_none()
    figures = of_attempt(job, outcome, details, now, gib=gib_of_slot(*worker) if worker else 0.0)
    work = KINDS[job.kind].result.parse(details).work
    row = {
        **vars(figures),
        "ended_at": now,
        "table_id": job.table_id,
        "kind": job.kind.value,
        "dry_run": job.dry_run,
        "work_bytes": min(work.bytes, _MOST),
        "work_files": min(work.files, _MOST),
    }
    connection.execute(_f.insert(), row)


def sums(connection: Connection, since: datetime, until: datetime) -> dict[tuple[str, JobKind], Figures]:
    """Returns the sums of the attempts that ended from `since` on and before `until`, by table and kind."""
    query = (
        sa.select(_f.c.table_id, _f.c.kind, *(sa.func.sum(_f.c[name]).label(name) for name in NAMES))
        .where(_f.c.ended_at >= since, _f.c.ended_at < until)
        .group_by(_f.c.table_id, _f.c.kind)
    )
    known = {each.value: each for each in JobKind}
    return {
        (row.table_id, known[row.kind]): Figures(*(row._mapping[name] for name in NAMES))
        for row in connection.execute(query)
        if row.kind in known
    }


def prune(connection: Connection, before: datetime, limit: int) -> int:
    """Deletes at most `limit` figures of attempts that ended before, and returns how many."""
    old = sa.select(_f.c.id).where(_f.c.ended_at < before).limit(limit)
    return connection.execute(_f.delete().where(_f.c.id.in_(old))).rowcount
