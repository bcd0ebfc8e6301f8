"""The known workers: /v1/workers"""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from service.access.token import Role
from service.api.dependencies import AppContextDep, needs
from service.db.engine import reading
from service.queue import worker_store
from service.queue.worker import Worker

router = APIRouter(prefix="/v1/workers", tags=["jobs"])


class WorkerOut(BaseModel):
    """A worker as it describes itself; null where it gave no value."""

    id: str = Field(examples=["host-4711-1f0c2a"])
    version: str | None
    master: str | None
    slots: int | None = Field(description="Jobs that it runs at once")
    driver_memory: str | None
    group: str = Field(description="The worker gets the jobs of tables whose policy names this group")
    first_seen: datetime
    last_seen: datetime = Field(description="Exact to a few seconds")
    job_ids: list[str] = Field(description="Jobs that it has leased")

    @classmethod
    def of(cls, worker: Worker) -> WorkerOut:
        return cls(
            id=worker.id,
            **worker.info.to_json(),
            first_seen=worker.first_seen,
            last_seen=worker.last_seen,
            job_ids=list(worker.job_ids),
        )


class WorkerList(BaseModel):
    items: list[WorkerOut]


@router.get(
    "",
    operation_id="listWorkers",
    summary="List the workers, most recently seen first",
    dependencies=[Depends(needs(Role.READER))],
)
def list_workers(context: AppContextDep) -> WorkerList:
    """Leaves out workers that were not seen for a day."""
    with reading(context.engine) as connection:
        return WorkerList(items=[WorkerOut.of(worker) for worker in worker_store.every(connection)])
