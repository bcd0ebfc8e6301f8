"""Liveness and readiness, which need no token, and the metrics for Prometheus."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import datetime
from typing import Annotated, Literal, TypeVar

from fastapi import Depends, Request, Response
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from pydantic import BaseModel, Field
from sqlalchemy import Engine

from jobs.contract import DEFAULT_GROUP
from service.access.token import Role
from service.api.dependencies import METRICS_PATH, ExposureDep, MonitoringDep, bearer, caller_of, needs
from service.api.routes import Routes
from service.db.engine import reading
from service.model.errors import DatabaseDamagedError, DatabaseUnavailableError, GroundskeeperError, NotReadyError
from service.model.paced import Paced
from service.model.task_health import TaskHealth
from service.queue import demand_store, worker_store

log = logging.getLogger(__name__)

router = Routes(tags=["health"])

_SECONDS = 5.0
_SLOW = f"The database did not answer within {_SECONDS:g} s."
_Found = TypeVar("_Found")


class Check(BaseModel):
    status: Literal["ok", "warning", "failing"] = Field(description="`warning`: the service is ready nevertheless")
    detail: str = Field(default="", examples=["These background tasks fail: observe."])


class GroupCheck(BaseModel):
    ready: int = Field(description="Workers that take jobs", examples=[2])
    waiting: int = Field(description="Workers that start Spark, or wait for a first executor", examples=[0])
    queued: int = Field(description="Queued jobs", examples=[0])


class WorkersCheck(Check):
    groups: dict[str, GroupCheck] = Field(
        description="The group `default`, and all groups that have queued jobs or workers that were seen within a "
        "minute"
    )


class Checks(BaseModel):
    """What `/readyz` has checked."""

    database: Check = Field(description="Whether the database answers")
    scheduler: Check = Field(description="The background tasks of this process")
    workers: WorkersCheck = Field(description="Whether a worker takes jobs")


class Readiness(BaseModel):
    status: Literal["ok"] = Field(
        default="ok", description="Always `ok`; in all other cases the answer is a problem document"
    )
    checks: Checks = Field(description="The checks, one by one")


def worker_check(engine: Engine, clock: Callable[[], datetime]) -> Paced[WorkersCheck]:
    return Paced(lambda: _count(engine, clock()), "worker-check")


def _count(engine: Engine, now: datetime) -> WorkersCheck:
    try:
        with reading(engine) as connection:
            queued = demand_store.count_queued(connection)
            workers = [each for each in worker_store.every(connection) if each.is_alive(now)]
    except GroundskeeperError as error:
        return unknown(error.title)
    except Exception:
        log.exception("The workers cannot be counted")
        return unknown("The workers could not be counted; see the service's log.")
    return _judged(
        {
            name: GroupCheck(
                ready=sum(each.is_ready for each in workers if each.info.group == name),
                waiting=sum(not each.is_ready for each in workers if each.info.group == name),
                queued=queued.get(name, 0),
            )
            for name in sorted({DEFAULT_GROUP, *queued, *(each.info.group for each in workers)})
        }
    )


def _judged(groups: Mapping[str, GroupCheck]) -> WorkersCheck:
    lacking = [name for name, group in groups.items() if group.queued and not group.ready]
    if not any(group.ready for group in groups.values()):
        detail = "No worker is ready: jobs stay queued."
    elif lacking:
        detail = f"Jobs are queued for groups without a ready worker: {', '.join(lacking[:20])}."
    else:
        return WorkersCheck(status="ok", groups=dict(groups))
    return WorkersCheck(status="warning", detail=detail, groups=dict(groups))


def unknown(why: str) -> WorkersCheck:
    return WorkersCheck(status="warning", detail=why, groups={})


class HealthOut(BaseModel):
    status: Literal["ok"] = Field(default="ok", description="Always `ok`", examples=["ok"])


# `/healthz` and `/readyz` run in the event loop, so they are answered even while calls that wait for storage occupy all
# threads.
@router.on("GET /healthz", "Check that the process is alive")
async def is_alive() -> HealthOut:
    return HealthOut()


@router.on(
    "GET /readyz",
    "Check that the database can be used, and that no background task fails or stands still",
    NotReadyError,
    DatabaseUnavailableError,
    DatabaseDamagedError,
)
async def is_ready(request: Request, monitoring: MonitoringDep) -> Readiness:
    """Writes to the database and commits, at most once a second; calls in between get the last outcome. An SQLite
    database must also be intact, still be the file that was opened, and have space left on its disk. `checks` says what
    was found, even if the status is 503. A service without workers is ready, because it takes calls."""
    error = await _of_database(request)
    database = Check(status="failing", detail=error.detail or error.title) if error else Check(status="ok")
    if stuck := _of_scheduler(monitoring.tasks):
        error = error or stuck
    scheduler = Check(status="failing", detail=stuck.detail) if stuck else Check(status="ok")
    workers = unknown("The database cannot be read.")
    if database.status == "ok":
        counted = await _done(request.app.state.worker_check.latest())
        workers = counted.result() if counted else unknown("The database did not answer in time.")
    checks = Checks(database=database, scheduler=scheduler, workers=workers)
    if error is None:
        return Readiness(checks=checks)
    raise type(error)(
        error.detail, hint=error.hint, extensions={**error.extensions, "checks": checks.model_dump(mode="json")}
    )


async def _of_database(request: Request) -> GroundskeeperError | None:
    outcome: asyncio.Future[GroundskeeperError | None] | None = await _done(request.app.state.probe.outcome())
    return outcome.result() if outcome else NotReadyError(_SLOW)


async def _done(found: Future[_Found]) -> asyncio.Future[_Found] | None:
    """Waits for the outcome, but not longer than a caller would wait. Returns None if that time is over."""
    outcome = asyncio.wrap_future(found)
    # `wait_for` is not used, because it would cancel the outcome, for which other callers may also wait.
    await asyncio.wait([outcome], timeout=_SECONDS)
    return outcome if outcome.done() else None


def _of_scheduler(tasks: TaskHealth) -> GroundskeeperError | None:
    if failing := tasks.failing():
        return NotReadyError(f"These background tasks fail: {', '.join(failing)}.", hint="See the service's log.")
    if late := tasks.late():
        return NotReadyError(
            f"These background tasks have not run in time: {', '.join(late)}.",
            hint="See the service's log. If the tasks do not recover, restart the service.",
        )
    return None


_EXAMPLE = """# HELP groundskeeper_tables Registered tables
# TYPE groundskeeper_tables gauge
groundskeeper_tables 12.0
"""


async def may_scrape(request: Request, exposure: ExposureDep, _documented: Annotated[object, Depends(bearer)]) -> None:
    """Raises ForbiddenError unless the caller may read or the settings let anybody scrape."""
    if not exposure.open_metrics:
        await needs(Role.READER)(request, await caller_of(request, None))


# Scrapes need no thread of the pool, so they are answered even while calls that wait for storage occupy all threads.
@router.on(
    f"GET {METRICS_PATH}",
    "Show the metrics in the text format of Prometheus",
    NotReadyError,
    responses={
        200: {
            "description": "The metrics; `groundskeeper_database_up` is 0 if the metrics of the database could not be"
            " read",
            "content": {"text/plain": {"schema": {"type": "string"}, "example": _EXAMPLE}},
        }
    },
    dependencies=[Depends(may_scrape)],
    response_class=Response,
)
async def get_metrics(request: Request) -> Response:
    """Needs the role reader, unless `GROUNDSKEEPER_OPEN_METRICS` is set. An answer is computed at most once a second;
    calls get the last answer if it is at most two seconds old."""
    made: asyncio.Future[bytes] | None = await _done(request.app.state.scrapes.latest())
    if made is None:
        raise NotReadyError(_SLOW)
    return Response(made.result(), media_type=CONTENT_TYPE_PLAIN_0_0_4)
