"""Reads the rows of an overview. The number of queries does not depend on the number of tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any

import sqlalchemy as sa
from sqlalchemy import Connection

from jobs.contract import JobKind, Problem
from jobs.spec import Documented, Spec
from service.catalog.table_events import UNHEALTHY_AFTER
from service.db import schema
from service.db.documents import rows_of
from service.db.engine import decoded
from service.delegation.plan import PlanState
from service.delivery.webhook import DeliveryState
from service.health.overview import ListedTable, Listing, TableState
from service.lake.table import TableType
from service.model.calls import calls
from service.queue import job_store
from service.queue.job import ACTIVE, WITH_WORKER, Job, JobState, JobVerdict, verdict_of
from service.queue.job_store import JOBS

_t = schema.tables
_j = schema.jobs
_w = schema.watches
_h = schema.webhooks
_d = schema.deliveries
_p = schema.delegated_plans

MOST_LAST_JOBS = 20

# Every overview executes these statements, so they are built once. SQLite uses the small partial index of leased jobs
# only with literals, not with parameters.
_LEASED = schema.jobs.alias("leased")
_HAS_WORKER = _LEASED.c.state.in_(schema.literals(WITH_WORKER))
_BUSY = sa.select(sa.func.aggregate_strings(_LEASED.c.table_id, " ")).where(_HAS_WORKER).scalar_subquery()
_ACTIVITY = sa.select(_j.c.state, sa.func.count(), _BUSY).where(job_store.is_active()).group_by(_j.c.state)
_SHAPES = sa.select(_t.c.id, _t.c["index"], _t.c.profile).where(schema.among(_t.c.id, "of_tables"))
_IS_DISABLED = _h.c.disabled_because.is_not(None)
_OPEN = (DeliveryState.PENDING, DeliveryState.DEAD)
_WEBHOOKS = sa.select(
    sa.func.count().label("webhooks"),
    sa.func.count(sa.case((sa.and_(sa.not_(_IS_DISABLED), _h.c.failing_since.is_not(None)), 1))).label("failing"),
    sa.func.count(sa.case((_IS_DISABLED, 1))).label("disabled"),
    *(
        sa.select(sa.func.count())
        .where(schema.DELIVERY_IS_OPEN, _d.c.state == sa.literal_column(f"'{state.value}'"))
        .label(state.value)
        for state in _OPEN
    ),
).select_from(_h)
_TURN = sa.case((_j.c.state == JobState.RUNNING.value, 0), (_j.c.state == JobState.LEASED.value, 1), else_=2)
_IN_TURN = (_TURN, _j.c.created_at, _j.c.id)
# An index has the jobs of one state in their order. So of the thousands of jobs that may wait, only the first are read.
_FIRST = sa.union_all(
    *(
        sa.select(
            sa.select(_j.c.id)
            .where(_j.c.state == state.value)
            .order_by(_j.c.created_at, _j.c.id)
            .limit(sa.bindparam("number"))
            .subquery(state.value)
            .c.id
        )
        for state in ACTIVE
    )
)
_ACTIVE = JOBS.all_of(JOBS.select().where(_j.c.id.in_(_FIRST)).order_by(*_IN_TURN).limit(sa.bindparam("number")))
_OF_TABLE = (
    sa.select((_j.c.id + " " + _j.c.state).label("job"))
    .where(_j.c.table_id == _t.c.id)
    .order_by(_j.c.created_at.desc(), _j.c.id.desc())
    .limit(MOST_LAST_JOBS)
    .correlate(_t)
    .subquery()
)
# One index lookup for each table is enough. A window function would read all jobs of these tables.
_JOBS = sa.select(sa.func.aggregate_strings(_OF_TABLE.c.job, ",")).correlate(_t).scalar_subquery()
_LAST = sa.select(_JOBS).where(schema.among(_t.c.id, "of_tables"))
# Only parts of the result are read, because a plan may name thousands of files.
_OF_RESULT = (
    _j.c.result.is_not(None).label("has_result"),
    _j.c.result["nothing_to_do"].label("nothing_to_do"),
    _j.c.result["refusals", 0].label("refusal"),
)
_TIMES = (_j.c.created_at, _j.c.started_at, _j.c.finished_at)
_PAST = (
    sa.select(_j.c.id, _j.c.table_id, _j.c.kind, _j.c.state, _j.c.dry_run, *_TIMES, _j.c.error, *_OF_RESULT)
    .where(schema.among(_j.c.id, "of_ids"))
    .order_by(_j.c.created_at.desc(), _j.c.id.desc())
)
_MOST: sa.BindParameter[int] = sa.bindparam("most")
_SUGGESTIONS = (
    sa.select(_p.c.base_path, sa.func.max(_p.c.table_name).label("name"), sa.func.count().label("plans"))
    .where(_p.c.table_id.is_(None), _p.c.state == PlanState.UNREGISTERED.value)
    .group_by(_p.c.base_path)
    .order_by(_p.c.base_path)
    .limit(_MOST)
)


@dataclass(frozen=True)
class Activity:
    """The numbers of active jobs by state, and the tables whose jobs workers hold."""

    jobs: Mapping[JobState, int]
    busy: Collection[str]


@dataclass(frozen=True)
class PastJob(Documented):
    """The fields of an earlier or active job that the overview shows."""

    id: Annotated[str, Spec(examples=("job_4be1c0d2f6a89b37",))]
    kind: Annotated[JobKind, Spec(examples=("compaction",))]
    state: Annotated[JobState, Spec(examples=("succeeded",))]
    dry_run: Annotated[bool, Spec("Whether the job changes nothing")]
    verdict: Annotated[JobVerdict | None, Spec("The same as in `GET /v1/jobs/{id}`", examples=("refused",))]
    created_at: Annotated[datetime, Spec("When the job was submitted")]
    started_at: Annotated[datetime | None, Spec("When the job's last attempt began; null before the first")]
    finished_at: Annotated[datetime | None, Spec("Null while the job is active")]
    error: Annotated[
        str | None,
        Spec(
            "The title of the error of its last attempt, even if the job is tried again",
            examples=("The table has no such column",),
        ),
    ]


@dataclass(frozen=True)
class Shape:
    """The members of a table's registration that describe its type and index."""

    index: Mapping[str, Any] | None
    profile: Mapping[str, Any]


@dataclass(frozen=True)
class Suggestion:
    """A table that is not registered although its writer delegates plans. `plans` is their number."""

    base_path: str
    table_name: str
    plans: int


@dataclass(frozen=True)
class WebhookCounts:
    """Numbers of webhooks, and of their deliveries."""

    webhooks: int = 0
    failing: int = 0
    disabled: int = 0
    deliveries: Mapping[DeliveryState, int] = field(default_factory=Counter)


def activity(connection: Connection) -> Activity:
    found = connection.execute(_ACTIVITY).all()
    # Each row has the numbers of all states.
    busy = {table_id for *_, tables in found if tables for table_id in tables.split(" ")}
    return Activity({JobState(state): number for state, number, _ in found}, busy)


def tables(connection: Connection, busy: Collection[str]) -> Listing:
    kind = _t.c.profile["table_type"].as_string().label("type")
    # Tags are read as text. Most tables have the same tags as others, and the same text is parsed only once.
    tags = sa.cast(_t.c.tags, sa.Text).label("tags")
    of_table = (_t.c.id, _t.c.name, _t.c.base_path, _t.c.created_at, _t.c.owner, tags, kind)
    # The error is read only for the few tables whose polls fail, because reading a JSON document takes longer than
    # reading the rest of the row.
    error = sa.case((_w.c.failures > 0, _w.c.error)).label("error")
    of_watch = (_w.c.looked_at.is_not(None).label("is_polled"), _w.c.failures, error)
    query: sa.Select[Any] = sa.select(*of_table, *of_watch).outerjoin(_w, _w.c.table_id == _t.c.id)
    types = {each.value: each for each in TableType}
    # Unpacking a row takes a fraction of the time that reading its attributes takes.
    found = [
        ListedTable(
            table_id, name, base_path, at, _state(table_id in busy, *of_watch), types.get(type_), owner, _tags(tags)
        )
        for table_id, name, base_path, at, owner, tags, type_, *of_watch in calls.giving_way(connection.execute(query))
    ]
    return Listing(found)


def active_jobs(connection: Connection, limit: int) -> list[Job]:
    """Returns the active jobs: those that workers hold first, then the oldest."""
    return _ACTIVE.read(connection, {"number": limit})


def last_jobs(connection: Connection, table_ids: Collection[str], number: int) -> Mapping[str, list[PastJob]]:
    """Returns the last `number` jobs of each of these tables, newest first. After these come the active jobs among the
    table's last `MOST_LAST_JOBS`."""
    wanted = []
    for text in connection.execute(_LAST, {"of_tables": list(table_ids)}).scalars():
        jobs = [each.split(" ") for each in text.split(",")] if text else []
        wanted += [job_id for at, (job_id, state) in enumerate(jobs) if at < number or state in ACTIVE]
    found = defaultdict(list)
    for row in connection.execute(_PAST, {"of_ids": wanted}):
        found[row.table_id].append(_past(row))
    return found


def _counts(rows: Sequence[tuple[int, ...]]) -> WebhookCounts:
    [(webhooks, failing, disabled, *numbers)] = rows
    return WebhookCounts(webhooks, failing, disabled, dict(zip(_OPEN, numbers, strict=True)))


SHAPES = rows_of(tuple[str, dict[str, Any] | None, dict[str, Any]], _SHAPES).then(
    lambda rows: {table_id: Shape(index, profile) for table_id, index, profile in rows}
)
"""Reads the shapes of the tables `of_tables`, by table id."""

SUGGESTIONS = rows_of(tuple[str, str, int], _SUGGESTIONS).then(lambda rows: [Suggestion(*row) for row in rows])
"""Reads at most `most` tables that are not registered although their writers delegate plans, ordered by path."""

WEBHOOKS = rows_of(tuple[int, int, int, int, int], _WEBHOOKS).then(_counts)
"""Counts the webhooks, and the deliveries that wait or were given up."""


@lru_cache(maxsize=1000)
def _tags(text: str) -> Mapping[str, str]:
    tags: Mapping[str, str] = decoded(text)
    return tags


def _state(is_busy: bool, is_polled: bool, failures: int, error: Any) -> TableState:
    if failures:
        problem = Problem.from_json(error) if error else None
        # A single failure of the storage does not count, as in `service.health.problem_facts`.
        if problem and failures >= (UNHEALTHY_AFTER if problem.retriable else 1):
            return TableState.UNREADABLE
    if not is_polled:
        return TableState.UNPOLLED
    return TableState.BUSY if is_busy else TableState.IDLE


def _past(row: sa.Row[Any]) -> PastJob:
    state = JobState(row.state)
    # SQLite returns 1 for `true`.
    said = {"refused": row.refusal is not None, "nothing_to_do": row.nothing_to_do == 1}
    return PastJob(
        id=row.id,
        kind=JobKind(row.kind),
        state=state,
        dry_run=row.dry_run,
        verdict=verdict_of(state, dry_run=row.dry_run, **said) if row.has_result else None,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        error=row.error.get("title") if row.error else None,
    )
