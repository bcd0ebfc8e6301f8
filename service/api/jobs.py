"""Jobs: /v1/tables/{id}/jobs and /v1/jobs"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Body, Header, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse
from sqlalchemy import Connection

from jobs.contract import LogLevel
from service.access.errors import SecretUnreadableError
from service.api.answers import PageOf
from service.api.dependencies import CallerDep, DatabaseDep, ExposureDep, FleetDep, LakeDep, QueueDep
from service.api.errors import TooManyWaitsError
from service.api.job_models import AttemptOut, JobDetail, JobLog, JobOut, Prospects, SpentOut, as_text
from service.api.open_calls import MOST_SECONDS, JobWaits
from service.api.params import EXAMPLES, JobIn, as_json
from service.api.query_parameters import Asked, Limit, OfKinds, OfOwners, OfTable
from service.api.requests import SOME_TEXT, WritersStopped
from service.api.routes import Routes
from service.api.statuses import ACCEPTED, REPEATED
from service.api.tables import TableId
from service.catalog.errors import MetastoreForbiddenError
from service.db.engine import reading
from service.events.database import Database
from service.metrics.installation import FleetWork, Installation
from service.model import errors, job_errors, storage_errors, table_errors
from service.model.flink_restart import FlinkStateReturnsError
from service.queue import job_log, job_store
from service.queue import submission as submitting
from service.queue.cost import Cost
from service.queue.errors import REFUSALS_OF_CLUSTERING, JobNotRetriableError
from service.queue.forecaster import Planned
from service.queue.hand_over import coordinator
from service.queue.job import Job, JobState, JobVerdict
from service.queue.outlook import Outlook
from service.queue.submission import JobRequest
from service.queue.waiting import waiting_of

log = logging.getLogger(__name__)

router = Routes(prefix="/v1", tags=["jobs"])

JobId = Annotated[str, Path(max_length=64, pattern=SOME_TEXT, examples=["job_4be1c0d2f6a89b37"])]
IdempotencyKey = Annotated[
    str | None, Header(min_length=1, max_length=255, description="The same key on the same table returns the same job")
]
Level = Annotated[LogLevel, Query(description="Only lines of this level and above")]


_SUBMISSION_ERRORS: tuple[type[errors.GroundskeeperError], ...] = (
    table_errors.OptionNotAllowedError,
    storage_errors.PathForbiddenError,
    MetastoreForbiddenError,
    job_errors.JobConflictError,
    job_errors.IncidentOpenError,
    job_errors.IdempotencyKeyReusedError,
    job_errors.FenceLosesFlinkError,
    *REFUSALS_OF_CLUSTERING,
    SecretUnreadableError,
)


@router.operator(
    "POST /tables/{table_id}/jobs",
    "Submit a job",
    *_SUBMISSION_ERRORS,
    also={REPEATED: "The job that was submitted with this Idempotency-Key before"},
    status_code=ACCEPTED,
)
def submit_job(
    table_id: TableId,
    wanted: Annotated[JobIn, Body(openapi_examples=EXAMPLES)],
    *,
    database: DatabaseDep,
    lake: LakeDep,
    queue: QueueDep,
    fleet: FleetDep,
    caller: CallerDep,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> JobOut:
    """Queues the job; a worker starts it within moments. `Location` is the job's URL."""
    submission = submitting.submit(
        database,
        lake.permissions,
        JobRequest(
            table_id=table_id,
            kind=wanted.kind,
            params=as_json(wanted.params),
            dry_run=wanted.dry_run,
            max_attempts=queue.planning.max_attempts,
            idempotency_key=idempotency_key,
            priority=wanted.priority,
            timeout_seconds=wanted.timeout_seconds,
            requested_by=caller.name,
        ),
    )
    return _submitted(database, fleet, submission, response)


@router.reader("GET /jobs", "List jobs, newest first")
def list_jobs(
    database: DatabaseDep,
    fleet: FleetDep,
    *,
    table_id: OfTable = None,
    kind: OfKinds = [],
    state: Annotated[
        list[JobState], Query(description="May be repeated. Default: any", max_length=10, examples=[["queued"]])
    ] = [],
    selection: OfOwners,
    asked: Asked,
) -> PageOf[JobOut]:
    """`since` and `until` are times of submission."""
    with reading(database.engine) as connection:
        page = job_store.page(connection, asked, table_id=table_id, kinds=kind, states=state, selection=selection)
        prospects = _prospects(connection, page.items, database.clock())
    prospects = _foreseen(fleet, page.items, prospects)
    return PageOf[JobOut].of_page(page, lambda job: JobOut.of(job, prospects))


@router.reader("GET /jobs/{job_id}", "Show a job, its attempts, and what it waits for", TooManyWaitsError)
async def get_job(
    job_id: JobId,
    *,
    database: DatabaseDep,
    fleet: FleetDep,
    caller: CallerDep,
    exposure: ExposureDep,
    request: Request,
    wait_seconds: Annotated[
        float,
        Query(ge=0, le=MOST_SECONDS, description="Delays the answer until the job has ended, but at most this long"),
    ] = 0,
) -> JobDetail:
    """To wait for the end of the job, call with `wait_seconds` and repeat the call until `state` is `succeeded`,
    `failed` or `cancelled`."""
    if wait_seconds:
        waits: JobWaits = request.app.state.job_waits
        await waits.until_end(job_id, wait_seconds, request=request, database=database, caller=caller)
    return await run_in_threadpool(_detail, database, fleet, job_id, exposure.spark_ui_url)


def _detail(database: Database, fleet: FleetWork, job_id: str, spark_ui_url: str | None) -> JobDetail:
    now = database.clock()
    with reading(database.engine) as connection:
        job = job_store.get(connection, job_id)
        prospects = _prospects(connection, [job], now)
        attempts = job_store.attempts(connection, job_id)
    return JobDetail.of(
        job,
        _foreseen(fleet, [job], prospects),
        attempts=[AttemptOut.of(attempt, spark_ui_url) for attempt in attempts],
        spent=SpentOut.of(job.spent(attempts, now)),
    )


@router.operator("POST /jobs/{job_id}/cancel", "Cancel a job", job_errors.JobNotCancellableError, status_code=ACCEPTED)
def cancel_job(job_id: JobId, database: DatabaseDep, fleet: FleetDep) -> JobOut:
    """Cancels a queued job at once. The worker of a running job learns of it within seconds, and cleans up first."""
    return _out(database, fleet, submitting.cancel(database, job_id))


@router.operator(
    "POST /jobs/{job_id}/retry",
    "Repeat a job that failed or was cancelled",
    table_errors.TableNotFoundError,
    JobNotRetriableError,
    *_SUBMISSION_ERRORS,
    also={REPEATED: "The job that already repeats this one, and has not ended"},
    status_code=ACCEPTED,
)
def retry_job(
    job_id: JobId,
    *,
    database: DatabaseDep,
    lake: LakeDep,
    queue: QueueDep,
    fleet: FleetDep,
    caller: CallerDep,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> JobOut:
    """Submits a new job with the same kind, parameters and table. Like any new job, it may be refused, and goes to the
    worker group of the table's policy. `retry_of` names the old job. Until the new job has ended, a repeated call
    returns the new job."""
    with reading(database.engine) as connection:
        job = job_store.get(connection, job_id)
    asked = JobRequest.again(
        job, max_attempts=queue.planning.max_attempts, idempotency_key=idempotency_key, requested_by=caller.name
    )
    submission = submitting.submit(database, lake.permissions, asked)
    return _submitted(database, fleet, submission, response)


@router.reader(
    "GET /jobs/{job_id}/log",
    "Read the log of a job",
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    response_model=JobLog,
)
def get_job_log(
    job_id: JobId,
    database: DatabaseDep,
    *,
    level: Level = LogLevel.DEBUG,
    form: Annotated[
        Literal["json", "text"] | None,
        Query(alias="format", description="Default: text if `Accept` names `text/plain`, else json"),
    ] = None,
    accept: Annotated[str | None, Header(max_length=1024, include_in_schema=False)] = None,
    limit: Limit = 100,
    cursor: Annotated[
        str | None,
        Query(max_length=32, description="`next_cursor` or `position` of an earlier answer", examples=["1.499"]),
    ] = None,
) -> JobLog | Response:
    """Returns the lines of all attempts, the oldest first: all lines of the worker, and warnings and errors of its JVM.
    A worker sends lines with its heartbeats, so the last second of a killed worker may be missing. The newest MiB of
    lines is kept as long as the job."""
    with reading(database.engine) as connection:
        job_store.get(connection, job_id)
        page = job_log.page(connection, job_id, limit=limit, cursor=cursor, level=level)
    if form == "text" or (form is None and accept and "text/plain" in accept):
        return PlainTextResponse(as_text(page))
    return JobLog.of(page)


@router.reader(
    "GET /jobs/{job_id}/log.txt", "Download the log of a job", response_model=str, response_class=PlainTextResponse
)
def download_job_log(job_id: JobId, database: DatabaseDep, level: Level = LogLevel.DEBUG) -> PlainTextResponse:
    """Returns all lines that are kept, the oldest first, as a file that is named after the job."""
    with reading(database.engine) as connection:
        job_store.get(connection, job_id)
        text = as_text(job_log.whole(connection, job_id, level))
    return PlainTextResponse(text, headers={"Content-Disposition": f'attachment; filename="{job_id}.log"'})


@router.operator(
    "POST /jobs/{job_id}/writers-stopped",
    "Confirm that the writers were stopped for a job that waits for this",
    job_errors.JobNotWaitingError,
    FlinkStateReturnsError,
)
def confirm_writers_stopped(
    job_id: JobId,
    *,
    database: DatabaseDep,
    lake: LakeDep,
    fleet: FleetDep,
    caller: CallerDep,
    confirmation: WritersStopped | None = None,
) -> JobOut:
    """Lets the job go on. Confirm only when every Flink job that writes the table has ended. A repeated call changes
    nothing."""
    stopped = confirmation or WritersStopped.model_validate({})
    job = coordinator.confirm(
        database.engine,
        database.notifier,
        database.clock,
        job_id,
        by=caller.name,
        savepoint=stopped.savepoint,
        restart=stopped.restart,
    )
    lake.poll_requests.ask(job.table_id)
    return _out(database, fleet, job)


def _submitted(database: Database, fleet: FleetWork, submission: submitting.Submission, response: Response) -> JobOut:
    if not submission.is_new:
        response.status_code = REPEATED
    response.headers["Location"] = f"/v1/jobs/{submission.job.id}"
    return _out(database, fleet, submission.job)


def _out(database: Database, fleet: FleetWork, job: Job) -> JobOut:
    with reading(database.engine) as connection:
        prospects = _prospects(connection, [job], database.clock())
    return JobOut.of(job, _foreseen(fleet, [job], prospects))


def _prospects(connection: Connection, jobs: Sequence[Job], now: datetime) -> Prospects:
    found = waiting_of(connection, jobs, now)
    return Prospects(found.names, found.waits)


def _foreseen(fleet: FleetWork, jobs: Sequence[Job], prospects: Prospects) -> Prospects:
    """Adds the forecast of active jobs, and the expected cost of the jobs that dry runs have planned."""
    active = [job.id for job in jobs if job.state.is_active]
    planned = {
        job.id: Planned(job.table_id, job.kind.value, job.parsed_result.work)
        for job in jobs
        if job.dry_run and job.verdict is JobVerdict.READY
    }
    if not active and not planned:
        return prospects
    try:
        outlook, costs = fleet.run(forecast, active, planned)
    except errors.FleetUnavailableError as error:
        # The call has already changed or read the job, and an answer may lack the forecast.
        log.warning("Answered without a forecast: %s", error)
        return prospects
    return replace(prospects, outlook=outlook, costs=costs)


def forecast(
    installation: Installation, active: Sequence[str], planned: Mapping[str, Planned]
) -> tuple[Outlook | None, dict[str, Cost]]:
    """Returns the outlook of active jobs, and the expected cost of planned ones."""
    database, forecaster = installation.database, installation.monitoring.forecaster
    outlook = forecaster.outlook(database.engine, database.clock, active).only(active) if active else None
    return outlook, forecaster.costs(database.engine, planned)
