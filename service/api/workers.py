"""The known workers, and the demand for them: /v1/workers"""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field, StringConstraints

from jobs.contract import DEFAULT_GROUP, WorkerState
from service.api.answers import Declared, ListOf
from service.api.dependencies import DatabaseDep, FleetDep
from service.api.job_models import JobProblem
from service.api.query_parameters import AnyOf, Since, Until
from service.api.routes import Routes
from service.api.structs import answered, made, struct_of
from service.db.engine import reading
from service.metrics.installation import Installation
from service.model.errors import FleetUnavailableError
from service.policies.policy import GROUP_PATTERN
from service.queue import demand, demand_store, worker_store
from service.queue.demand import Demand
from service.queue.outlook import GroupOutlook
from service.queue.worker import Worker

Groups = Annotated[
    list[Annotated[str, StringConstraints(pattern=GROUP_PATTERN)]] | None,
    Query(max_length=100, description="Worker group; may be repeated", examples=[["etl"]]),
]

router = Routes(prefix="/v1/workers", tags=["jobs"])


class WorkerOut(BaseModel):
    """A worker as it describes itself; members without a value are null."""

    id: str = Field(description="Id that the worker has given itself", examples=["host-4711-1f0c2a"])
    version: str | None
    master: str | None
    slots: int | None = Field(description="Jobs that the worker runs at once")
    spare_slots: int = Field(
        description="Submitted jobs that the worker may run in addition when all its slots are taken"
    )
    driver_memory: str | None
    group: str = Field(description="The worker gets the jobs of tables whose policy names this group")
    state: WorkerState | None = Field(
        description="Only a worker that is `ready` takes jobs; others start Spark, wait for a first executor, or have"
        " `failed` to start and ended",
        examples=["ready"],
    )
    executors: int | None = Field(description="Executors of its Spark application; null if its driver runs the tasks")
    spark_conf: dict[str, str] = Field(
        description="Spark options of the worker, and those of its resources; secrets are masked",
        examples=[{"spark.executor.memory": "4g"}],
    )
    error: JobProblem | None = Field(description="Why Spark did not start")
    application_id: str | None = Field(description="Id of its Spark application", examples=["app-20260101120000-0001"])
    ui_url: str | None = Field(description="Address of Spark's UI", examples=["http://10.0.0.7:4040"])
    read_rates: dict[str, float] | None = Field(
        description="Processor seconds that reads take on its machine, measured by the worker",
        examples=[{"scan_seconds_per_gib": 4.0, "merge_seconds_per_gib": 40.0}],
    )
    first_seen: datetime
    last_seen: datetime = Field(description="When the worker last called, exact to a few seconds")
    job_ids: list[str] = Field(description="Jobs that the worker has leased")

    @classmethod
    def of(cls, worker: Worker) -> WorkerOut:
        return made(
            cls,
            worker.info,
            id=worker.id,
            error=JobProblem.of(worker.info.error),
            first_seen=worker.first_seen,
            last_seen=worker.last_seen,
            job_ids=list(worker.job_ids),
        )


class DemandOut(Declared, declared=Demand):
    """The demand of a worker group, in numbers for a scaler and as a sentence. The members from `work_seconds` on come
    from a forecast."""

    wanted_slots: int = Field(
        description="Number of slots that are needed so that no startable job waits longer than the goal; at least "
        "`running`"
    )
    goal_seconds: float = Field(description="How long a job may wait for a slot")
    work_seconds: float = Field(description="Seconds that all due jobs together will take")
    wait_seconds: float | None = Field(description="When the last due job will start; null without a slot")
    done_seconds: float | None = Field(description="When the last due job will have ended; null without a slot")
    held_back: int = Field(description="Queued jobs that are not due: between two attempts, or until the writers stop")
    guesses: int = Field(description="Number of due jobs whose kind has not yet run on their table")
    forecast: str = Field(description="In words", examples=["99 queued, about 8 min with 1 slot"])

    @classmethod
    def of(cls, demand: Demand, outlook: GroupOutlook) -> DemandOut:
        return made(
            cls,
            demand,
            # The demand was counted a moment after the forecast was computed, so the two may disagree.
            wanted_slots=min(max(outlook.wanted_slots, demand.running), demand.running + demand.startable),
            goal_seconds=outlook.goal_seconds,
            work_seconds=round(outlook.work_seconds, 3),
            wait_seconds=_rounded(outlook.wait_seconds),
            done_seconds=_rounded(outlook.done_seconds),
            held_back=sum(outlook.held_back.values()),
            guesses=outlook.guesses,
            forecast=outlook.summary,
        )


class DemandByGroup(BaseModel):
    groups: dict[str, DemandOut] = Field(
        description="The group `default`, the groups of the query, and all groups that have queued or running jobs "
        "or workers"
    )


@router.reader("GET ", "List the workers, most recently seen first")
def list_workers(
    database: DatabaseDep,
    *,
    group: Groups = None,
    state: AnyOf[WorkerState] = [],
    since: Since = None,
    until: Until = None,
) -> ListOf[WorkerOut]:
    """Leaves out workers that were not seen for a day. `since` and `until` are times at which a worker was last
    seen."""
    with reading(database.engine) as connection:
        found = worker_store.every(connection)
    wanted = [
        each
        for each in found
        if (not group or each.info.group in group)
        and (not state or each.info.state in state)
        and (since is None or each.last_seen >= since)
        and (until is None or each.last_seen < until)
    ]
    return ListOf[WorkerOut].of(wanted, WorkerOut.of)


@router.reader("GET /demand", "Show the demand of each worker group, for a scaler", FleetUnavailableError)
def get_demand(
    fleet: FleetDep,
    group: Groups = None,
) -> DemandByGroup:
    """A `group` in the query is listed even if it has neither jobs nor workers. A scaler can compute the number of
    workers from a group's `wanted_slots`, with the slots of one worker as the target value."""
    return answered(fleet, demand_of, {DEFAULT_GROUP, *(group or ())})


def demand_of(installation: Installation, groups: Set[str]) -> DemandByGroup:
    database = installation.database
    now = database.clock()
    outlook = installation.monitoring.forecaster.outlook(database.engine, database.clock, is_scaled=True)
    with reading(database.engine) as connection:
        found = demand.demand(
            demand_store.queued(connection, now),
            demand_store.running(connection),
            worker_store.every(connection),
            groups=groups,
            now=now,
        )
    return struct_of(DemandByGroup)(
        groups={name: DemandOut.of(each, outlook.group(name)) for name, each in found.items()}
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
