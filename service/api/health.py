"""Liveness, readiness, and explanations of problem types. These calls need no token."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from service.api.dependencies import AppContextDep
from service.api.responses import HealthOut
from service.api.statuses import documented, status_of
from service.db import migrate
from service.model.errors import DatabaseUnavailableError, GroundskeeperError, NotReadyError, RouteNotFoundError

router = APIRouter(tags=["health"])


class ProblemType(BaseModel):
    type: str
    title: str
    hint: str
    status: int = Field(description="HTTP status of such an answer")


@router.get("/healthz", operation_id="isAlive", summary="Check that the process is alive")
async def healthz() -> HealthOut:
    # Not in a thread of the pool, which requests that hang may have used up.
    return HealthOut()


@router.get(
    "/readyz",
    operation_id="isReady",
    summary="Check that the database is reachable and up to date",
    responses=documented(NotReadyError, DatabaseUnavailableError),
)
def readyz(context: AppContextDep) -> HealthOut:
    if not migrate.is_at_head(context.engine):
        raise NotReadyError("The database does not have the schema of this version.")
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
