"""The protocol of the workers: /v1/worker/announcements and /v1/worker/leases"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

import anyio
import anyio.to_thread
from fastapi import BackgroundTasks, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool

from jobs.contract import Heartbeat, LogLine, Problem, Result, WorkerInfo, WorkOrder
from service.access.token import Role
from service.api.dependencies import Caller, CallerDep, DatabaseDep, LakeDep, QueueDep, needs
from service.api.jobs import JobId
from service.api.routes import Routes
from service.api.statuses import NOTHING
from service.api.worker_models import (
    AnnounceRequest,
    HeartbeatIn,
    HeartbeatOut,
    LeaseOut,
    LeaseRequest,
    ReportIn,
    ReportOut,
    WorkerInfoIn,
)
from service.events.database import Database
from service.model import errors, job_errors
from service.observation.lake_access import LakeAccess
from service.queue import lease_store, verification
from service.queue import leases as leasing
from service.queue.job import Holder
from service.registration import registry
from service.scheduling.queue_settings import QueueSettings

log = logging.getLogger(__name__)

router = Routes(prefix="/v1/worker", tags=["worker"], dependencies=[Depends(needs(Role.WORKER))])

# The queue is also polled, because no notification says that a job's back-off has ended, and notifications of other
# replicas may be lost. An empty queue in SQLite is polled seldom, because each commit calls the notifier.
_POLL_SECONDS = 1.0
_EMPTY_SECONDS = 5.0

# The check must be short, because the worker waits for the answer while its lease runs out.
_VERIFICATION_SECONDS = 5.0


@router.on("POST /announcements", "Announce a worker that is not ready yet")
def announce_worker(wanted: AnnounceRequest, database: DatabaseDep, caller: CallerDep) -> None:
    """Announces a worker that takes no jobs yet, because its Spark is starting or waits for executors. `GET
    /v1/workers` shows them. The token must be made for the worker's group."""
    info = _info(wanted.worker, caller)
    leasing.announce(database, wanted.worker_id, info)


def _info(worker: WorkerInfoIn | None, caller: Caller) -> WorkerInfo:
    info = WorkerInfo.from_json(worker.model_dump() if worker else {})
    if not caller.may_lease(info.group):
        raise errors.ForbiddenError(
            f"This token is not for the worker group {info.group}.",
            hint=f"Make one: groundskeeper token create --role worker --group {info.group}.",
        )
    return info


@router.on(
    "POST /leases",
    "Take the next job",
    responses={int(NOTHING): {"description": "No job is due"}},
    response_model=LeaseOut,
)
async def lease_job(
    wanted: LeaseRequest, *, database: DatabaseDep, lake: LakeDep, queue: QueueDep, caller: CallerDep, request: Request
) -> LeaseOut | Response:
    """Waits up to `wait_seconds` for a job, and returns as soon as one is submitted. The token must be made for the
    worker's group, and from then on the lease belongs to this token and worker."""
    order = await _next_order(wanted, database=database, lake=lake, queue=queue, caller=caller, request=request)
    return _out(order, queue) if order else Response(status_code=NOTHING)


def _out(order: WorkOrder, queue: QueueSettings) -> LeaseOut:
    return LeaseOut(plan=order.to_json(), lease_seconds=queue.leases.lease.total_seconds())


async def _next_order(
    wanted: LeaseRequest,
    *,
    database: Database,
    lake: LakeAccess,
    queue: QueueSettings,
    caller: Caller,
    request: Request,
) -> WorkOrder | None:
    info = _info(wanted.worker, caller)

    def announced() -> WorkOrder | None:
        leasing.announce(database, wanted.worker_id, info)
        return lease()

    lease = partial(
        leasing.lease,
        database,
        queue.leases,
        worker_id=wanted.worker_id,
        group=info.group,
        permissions=lake.permissions,
        token_id=caller.token_id,
        request_id=wanted.request_id,
        only_submitted=wanted.only_submitted,
    )

    def may_find() -> bool:
        return lease_store.may_find(
            database.engine,
            database.clock(),
            info.group,
            only_submitted=wanted.only_submitted,
            request_id=wanted.request_id,
        )

    def may_become_due() -> bool:
        return lease_store.may_become_due(database.engine, info.group)

    look: Callable[[], WorkOrder | None] = announced
    loop = asyncio.get_running_loop()
    end = loop.time() + wanted.wait_seconds
    with database.notifier.listener(may_become_due) as listener:
        while not database.notifier.is_closed:
            listener.forget()
            if look is announced or may_find():
                # A worker that died while waiting must not get a job.
                if await request.is_disconnected():
                    return None
                if (order := await run_in_threadpool(look)) is not None:
                    return order
                look = lease
            if (left := end - loop.time()) <= 0:
                return None
            await listener.wait(min(left, _POLL_SECONDS if may_become_due() else _EMPTY_SECONDS))
    # The service is stopping. Without this pause a long-polling worker would repeat its request in a tight loop.
    await asyncio.sleep(min(0.2, wanted.wait_seconds))
    return None


@router.on("POST /leases/{job_id}/heartbeat", "Extend a lease, and report progress", operation_id="beatLease")
def heartbeat(
    job_id: JobId, beat: HeartbeatIn, database: DatabaseDep, queue: QueueDep, caller: CallerDep
) -> HeartbeatOut:
    """The answer `cancel` means: stop, clean up and report. The answer `lost` means that the lease was lost: stop, and
    write nothing."""
    heartbeat = Heartbeat.from_json(beat.model_dump())
    answer = leasing.heartbeat(
        database, queue.leases, job_id=job_id, beat=heartbeat, holder=Holder(beat.worker_id, caller.token_id)
    )
    return HeartbeatOut(answer=answer.value)


@router.on("POST /leases/{job_id}/result", "End an attempt", job_errors.LeaseLostError)
async def report_result(
    job_id: JobId,
    wanted: ReportIn,
    *,
    database: DatabaseDep,
    lake: LakeDep,
    queue: QueueDep,
    caller: CallerDep,
    request: Request,
    afterwards: BackgroundTasks,
) -> ReportOut:
    """Compares a success with the table's timeline: the job is `unknown` if the reported instants have not completed.

    The answer to a report with `next` has the next job, if one is due, like `POST /v1/worker/leases`. Afterwards the
    service polls the table again, because its files and buckets may have changed.
    """
    result = Result.from_json(wanted.result.model_dump())
    contradiction = await _contradiction(database, lake, queue, job_id, result)
    job = await run_in_threadpool(
        leasing.report,
        database,
        queue.rng,
        queue.leases,
        job_id=job_id,
        attempt=wanted.attempt,
        result=result,
        holder=Holder(wanted.worker_id, caller.token_id),
        contradiction=contradiction,
        log=[LogLine.from_json(line.model_dump()) for line in wanted.log],
    )
    if not job.dry_run:
        # The next job must not wait for the poll.
        afterwards.add_task(lake.poll_requests.ask, job.table_id)
        afterwards.add_task(registry.detect_after, database.engine, lake, job.table_id, job.kind)
    following = None
    if wanted.next and wanted.worker_id:
        ask = LeaseRequest(
            worker_id=wanted.worker_id,
            wait_seconds=0,
            only_submitted=False,
            worker=wanted.next.worker,
            request_id=wanted.next.request_id,
        )
        try:
            following = await _next_order(
                ask, database=database, lake=lake, queue=queue, caller=caller, request=request
            )
        except Exception:  # An error about the next job must not undo the report.
            log.exception("No job could be leased with the answer to the report of job %s", job_id)
    return ReportOut(state=job.state, next=_out(following, queue) if following else None)


async def _contradiction(
    database: Database, lake: LakeAccess, queue: QueueSettings, job_id: str, result: Result
) -> Problem | None:
    """Returns how the timeline contradicts the result. Returns None if it does not, or if the storage does not answer
    in time."""
    read = partial(
        verification.contradiction,
        database.engine,
        lake.readers,
        job_id,
        result,
        storage_options=lake.storage_options,
        allowed_roots=lake.permissions.roots,
    )
    with anyio.move_on_after(_VERIFICATION_SECONDS):
        return await anyio.to_thread.run_sync(read, abandon_on_cancel=True, limiter=queue.verifications)
    log.warning("Job %s: the table's timeline could not be read within %g s", job_id, _VERIFICATION_SECONDS)
    return None
