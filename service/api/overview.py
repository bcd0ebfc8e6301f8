"""/v1/overview: the state of the whole installation, and one page of its tables"""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from fastapi import Query

from jobs.kinds.words import NO_NUL
from service.api.dependencies import DatabaseDep, MonitoringDep
from service.api.health_problems import HealthProblemOut, SeverityCounts
from service.api.job_models import Prospects
from service.api.overview_models import (
    ActiveJob,
    ActiveJobs,
    Overview,
    ProblemsNow,
    SuggestionOut,
    TableRow,
    TableRows,
    WebhookSummary,
    WorkerSummary,
)
from service.api.policy_models import PauseOut
from service.api.query_parameters import AnyOf
from service.api.routes import Routes
from service.api.table_models import IncidentCounts
from service.db.engine import reading
from service.delegation.inbox import SUGGESTION
from service.delivery import outbox
from service.health import overview, overview_store
from service.health.overview import Filter, Health, Order, TableState
from service.health.problem import ProblemKind
from service.incidents import store as incident_store
from service.incidents.incident import IncidentState
from service.lake.table import TableType
from service.policies import pause_store
from service.queue import worker_store
from service.queue.job import JobState
from service.queue.waiting import waits_of

router = Routes(prefix="/v1", tags=["problems"])

_TOP_PROBLEMS = 20
_ACTIVE_JOBS = 50
_JOBS_OF_TABLE = 20
_SUGGESTIONS = 20


@router.reader("GET /overview", "Show the state of everything, and a page of tables with their last jobs")
def get_overview(
    database: DatabaseDep,
    monitoring: MonitoringDep,
    *,
    q: Annotated[
        str,
        Query(max_length=200, pattern=NO_NUL, description="A part of the name or path, in capitals or not"),
    ] = "",
    health: Annotated[
        list[Health], Query(max_length=10, description="The most serious problem. May be repeated. Default: any")
    ] = [],
    kind: Annotated[
        list[ProblemKind], Query(max_length=50, description="A problem of this kind. May be repeated. Default: any")
    ] = [],
    table_type: AnyOf[TableType] = [],
    state: AnyOf[TableState] = [],
    sort: Annotated[
        Order,
        Query(
            description="`problems`: the most serious first; `backlog`: the most bytes of logs first; `commit`: the"
            " last commit first; `silent`: the longest without a commit first; `registered`: the newest first"
        ),
    ] = Order.PROBLEMS,
    limit: Annotated[int, Query(ge=1, le=200, description="Maximum number of tables on a page")] = 50,
    cursor: Annotated[str | None, Query(max_length=2000, description="`next_cursor` of the previous page")] = None,
) -> Overview:
    """All that the first page of the dashboard shows. The filter and the order are those of the tables. Problems and
    backlogs are some seconds old, and of many thousands of tables the list is too, so that a call takes
    milliseconds."""
    known = monitoring.problems.known(database.engine, database.clock)
    outlook = monitoring.forecaster.outlook(database.engine, database.clock)
    now = database.clock()
    wanted = Filter(q, health, kind, table_type, state)
    with reading(database.engine) as connection:
        # First: what commits in the meantime may come twice, but not be missed.
        event_id = outbox.newest(connection)
    remembered = None if table_type else monitoring.problems.tables(database.engine, database.clock)
    with reading(database.engine) as connection:
        activity = overview_store.activity(connection)
        tables = remembered or overview_store.tables(connection, activity.busy, with_type=bool(table_type))
        selected = overview.select(tables, known, wanted, sort, limit=limit, cursor=cursor)
        ids = [table.id for table in selected.tables]
        shapes = overview_store.shapes(connection, ids)
        past = overview_store.last_jobs(connection, ids, _JOBS_OF_TABLE)
        of_tables = incident_store.counts(connection, ids)
        unresolved = incident_store.count_unresolved(connection)
        jobs = overview_store.active_jobs(connection, _ACTIVE_JOBS)
        suggestions = overview_store.suggestions(connection, _SUGGESTIONS)
        webhooks = overview_store.webhooks(connection)
        workers = worker_store.every(connection)
        prospects = Prospects(waits_of(connection, [job for job, _ in jobs], now, workers), outlook)
        pause = pause_store.pause_of(connection)
    incidents: Counter[IncidentState] = Counter()
    for (_, incident_state), number in unresolved.items():
        incidents[incident_state] += number
    alive = [worker for worker in workers if worker.is_alive(now)]
    ready = [worker for worker in alive if worker.is_ready]
    return Overview(
        at=now,
        event_id=event_id,
        problems=ProblemsNow(
            as_of=known.as_of,
            counts=SeverityCounts(**{severity.value: number for severity, number in known.counts.items()}),
            items=[HealthProblemOut.of(each) for each in known.problems[:_TOP_PROBLEMS]],
        ),
        pause=PauseOut.of(pause),
        jobs=ActiveJobs(
            queued=activity.jobs.get(JobState.QUEUED, 0),
            leased=activity.jobs.get(JobState.LEASED, 0),
            running=activity.jobs.get(JobState.RUNNING, 0),
            forecast={name: group.summary for name, group in outlook.groups.items() if group.queued},
            items=[ActiveJob.of(job, prospects, table_name=name) for job, name in jobs],
        ),
        incidents=IncidentCounts.of(incidents),
        suggestions=[SuggestionOut.of(each, SUGGESTION) for each in suggestions],
        webhooks=WebhookSummary.of(webhooks),
        workers=WorkerSummary(
            alive=len(alive),
            ready=len(ready),
            slots=sum(worker.info.slots or 1 for worker in ready),
            busy=sum(len(worker.job_ids) for worker in alive),
        ),
        tables=TableRows(
            items=[
                TableRow.of(table, known, shapes[table.id], past.get(table.id, ()), of_tables.get(table.id, {}))
                for table in selected.tables
            ],
            total=selected.total,
            matching=selected.matching,
            before=selected.before,
            next_cursor=selected.next_cursor,
        ),
    )
