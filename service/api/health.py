"""Liveness, readiness, and explanations of problem types. These calls need no token."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from service.api.dependencies import AppContextDep
from service.api.responses import HealthOut
from service.api.statuses import documented, status_of
from service.model.errors import (
    DatabaseDamagedError,
    DatabaseUnavailableError,
    GroundskeeperError,
    NotReadyError,
    RouteNotFoundError,
)

router = APIRouter(tags=["health"])

_SECONDS = 5.0


class ProblemType(BaseModel):
    type: str
    title: str
    hint: str
    status: int = Field(description="HTTP status of such an answer")


# No thread is needed for either call, so they are answered also when calls that wait for tables take all.
@router.get("/healthz", operation_id="isAlive", summary="Check that the process is alive")
async def healthz() -> HealthOut:
    return HealthOut()


@router.get(
    "/readyz",
    operation_id="isReady",
    summary="Check that the database can be used, and that no background task fails or stands still",
    responses=documented(NotReadyError, DatabaseUnavailableError, DatabaseDamagedError),
)
async def readyz(request: Request, context: AppContextDep) -> HealthOut:
    """Writes and commits, once a second at most: callers in between get the last outcome. Of an SQLite database it also
    checks that its files are still those that were opened, intact, and on a disk with space left."""
    outcome = asyncio.wrap_future(request.app.state.probe.outcome())
    # Unlike `wait_for` this does not cancel the attempt, which other callers may wait for.
    await asyncio.wait([outcome], timeout=_SECONDS)
    if not outcome.done():
        raise NotReadyError(f"The database did not answer within {_SECONDS:g} s.")
    if error := outcome.result():
        raise error
    if failing := context.rounds.failing():
        raise NotReadyError(f"These background tasks fail: {', '.join(failing)}.", hint="See the service's log.")
    if late := context.rounds.late():
        raise NotReadyError(
            f"These background tasks have not come round: {', '.join(late)}.",
            hint="See the service's log, and restart the service if it lasts.",
        )
    return HealthOut()


@router.get(
    "/problems/{name}",
    operation_id="explainProblem",
    summary="Explain a problem type",
    responses=documented(RouteNotFoundError),
)
def problem_type(name: Annotated[str, Path(examples=["job-conflict"])]) -> ProblemType:
    for kind in _every(GroundskeeperError):
        if kind.type == name:
            return ProblemType(type=kind.type, title=kind.title, hint=kind.hint, status=int(status_of(kind)))
    raise RouteNotFoundError(f"There is no problem type {name}.")


def _every(kind: type[GroundskeeperError]) -> list[type[GroundskeeperError]]:
    return [kind, *(found for below in kind.__subclasses__() for found in _every(below))]
