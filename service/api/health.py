"""Liveness and readiness. These calls need no token."""

from __future__ import annotations

import asyncio

from fastapi import Request

from service.api.dependencies import MonitoringDep
from service.api.readiness import Check, Checks, Readiness, unknown
from service.api.responses import HealthOut
from service.api.routes import Routes
from service.model.errors import DatabaseDamagedError, DatabaseUnavailableError, GroundskeeperError, NotReadyError
from service.model.task_health import TaskHealth

router = Routes(tags=["health"])

_SECONDS = 5.0


# No thread is needed for either call, so they are answered also when calls that wait for tables take all.
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
    """Writes and commits, once a second at most: callers in between get the last outcome. The files of an SQLite
    database must also be those that were opened, intact, and on a disk with space left. `checks` says what
    was found, also with status 503. A service without workers is ready: it takes calls."""
    error = await _of_database(request)
    database = Check(status="failing", detail=error.detail or error.title) if error else Check(status="ok")
    if stuck := _of_scheduler(monitoring.tasks):
        error = error or stuck
    scheduler = Check(status="failing", detail=stuck.detail) if stuck else Check(status="ok")
    workers = unknown("The database does not tell.")
    if database.status == "ok":
        counted = asyncio.wrap_future(request.app.state.worker_check.latest())
        await asyncio.wait([counted], timeout=_SECONDS)
        workers = counted.result() if counted.done() else unknown("The database did not tell in time.")
    checks = Checks(database=database, scheduler=scheduler, workers=workers)
    if error is None:
        return Readiness(checks=checks)
    raise type(error)(
        error.detail, hint=error.hint, extensions={**error.extensions, "checks": checks.model_dump(mode="json")}
    )


async def _of_database(request: Request) -> GroundskeeperError | None:
    outcome = asyncio.wrap_future(request.app.state.probe.outcome())
    # Unlike `wait_for` this does not cancel the attempt, which other callers may wait for.
    await asyncio.wait([outcome], timeout=_SECONDS)
    if not outcome.done():
        return NotReadyError(f"The database did not answer within {_SECONDS:g} s.")
    found: GroundskeeperError | None = outcome.result()
    return found


def _of_scheduler(tasks: TaskHealth) -> GroundskeeperError | None:
    if failing := tasks.failing():
        return NotReadyError(f"These background tasks fail: {', '.join(failing)}.", hint="See the service's log.")
    if late := tasks.late():
        return NotReadyError(
            f"These background tasks have not come round: {', '.join(late)}.",
            hint="See the service's log, and restart the service if it lasts.",
        )
    return None
