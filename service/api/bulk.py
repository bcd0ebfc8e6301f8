"""One call for many tables, with an outcome of each: /v1/tables/bulk"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, assert_never

from fastapi import Body
from pydantic import BaseModel, Field, StringConstraints

from service.api.dependencies import CallerDep, DatabaseDep, LakeDep, QueueDep
from service.api.params import JobIn, as_json
from service.api.problems import problem_uri
from service.api.requests import SOME_TEXT, Request
from service.api.routes import Routes
from service.catalog import table_store, watch_store
from service.db.engine import reading, writing
from service.health import acknowledgement_store
from service.health.problem_search import look
from service.model.errors import DatabaseUnavailableError, GroundskeeperError
from service.policies import policy_registry
from service.queue import breaker_store, submission
from service.queue.submission import JobRequest

router = Routes(prefix="/v1/tables", tags=["tables"])

MOST = 500


class BulkOutcome(StrEnum):
    """What a call has done to one table."""

    DONE = "done"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


class Tables(Request):
    tables: list[Annotated[str, StringConstraints(max_length=64, pattern=SOME_TEXT)]] = Field(
        min_length=1, max_length=MOST, description="Their ids", examples=[["tbl_0f3c2a9d5e7b1c44"]]
    )


class SetOfTables(Tables):
    """`pause` and `resume` set `paused` of each table's own policy. `acknowledge` marks its present problems as known
    until they end or become more serious, and `unacknowledge` takes that back. `poll` reads its timeline now."""

    action: Literal["pause", "resume", "acknowledge", "unacknowledge", "poll"]


class JobsOfTables(Tables):
    """Submits the same job on each table."""

    action: Literal["run"]
    job: JobIn = Field(description="The job of each")


class BulkProblem(BaseModel):
    type: str = Field(description="The type of the problem", examples=["/problems/job-conflict"])
    title: str
    detail: str
    hint: str | None


class BulkItem(BaseModel):
    table_id: str = Field(description="As in the request", examples=["tbl_0f3c2a9d5e7b1c44"])
    table_name: str | None = Field(description="Null if there is no such table", examples=["orders"])
    outcome: BulkOutcome = Field(
        description="`unchanged`: it was so already, such as paused; `refused`: see `problem`. A refusal keeps no other"
        " table from its turn"
    )
    job_id: str | None = Field(
        description="The job that was submitted; null without one", examples=["job_4be1c0d2f6a89b37"]
    )
    problem: BulkProblem | None = Field(description="Why it was refused; null otherwise")


class BulkOut(BaseModel):
    items: list[BulkItem] = Field(description="In the order of the request, each table once")
    done: int = Field(description="Number of tables that the call has changed", examples=[12])
    unchanged: int = Field(description="Number of tables that were so already", examples=[0])
    refused: int = Field(description="Number of tables with a `problem`", examples=[1])


@dataclass(frozen=True)
class _Change:
    is_new: bool
    job_id: str | None = None


@router.operator("POST /bulk", "Do the same with many tables", operation_id="changeTables")
def change_tables(
    wanted: Annotated[SetOfTables | JobsOfTables, Body(discriminator="action")],
    *,
    database: DatabaseDep,
    lake: LakeDep,
    queue: QueueDep,
    caller: CallerDep,
) -> BulkOut:
    """Each table is a transaction of its own, so that a refusal of one changes nothing for the others. Repeating the
    call changes nothing more; a job that is active is refused as `job-conflict`."""

    def paused(table_id: str, *, is_paused: bool) -> _Change:
        return _Change(policy_registry.set_paused(database.engine, database.clock, table_id, paused=is_paused))

    def acknowledged(table_id: str, *, is_known: bool) -> _Change:
        found = [each.id for each in look(database.engine, database.clock(), table_id)[0].problems]
        with writing(database.engine) as connection:
            table_store.get(connection, table_id)
            if is_known:
                return _Change(acknowledgement_store.add(connection, found, caller.name, database.clock()) > 0)
            return _Change(acknowledgement_store.remove(connection, found) > 0)

    def polled(table_id: str) -> _Change:
        with writing(database.engine) as connection:
            watch_store.get(connection, table_id)
            breaker_store.mended(connection, table_id, database.clock())
        return _Change(lake.poll_requests.ask(table_id, insists=True))

    def submitted(table_id: str, job: Any) -> _Change:
        asked = JobRequest(
            table_id=table_id,
            kind=job.kind,
            params=as_json(job.params),
            dry_run=job.dry_run,
            max_attempts=queue.planning.max_attempts,
            priority=job.priority,
            timeout_seconds=job.timeout_seconds,
            requested_by=caller.name,
        )
        return _Change(is_new=True, job_id=submission.submit(database, lake.permissions, asked).job.id)

    def change() -> Callable[[str], _Change]:
        match wanted.action:
            case "pause" | "resume" as action:
                return lambda table_id: paused(table_id, is_paused=action == "pause")
            case "acknowledge" | "unacknowledge" as action:
                return lambda table_id: acknowledged(table_id, is_known=action == "acknowledge")
            case "poll":
                return polled
            case "run":
                return lambda table_id: submitted(table_id, wanted.job)
            case other:
                assert_never(other)

    with reading(database.engine) as connection:
        names = table_store.names(connection, set(wanted.tables))
    items = [_item(each, names.get(each), change()) for each in dict.fromkeys(wanted.tables)]
    database.notifier.notify()
    counts = Counter(each.outcome for each in items)
    return BulkOut(items=items, **{each.value: counts[each] for each in BulkOutcome})


def _item(table_id: str, name: str | None, change: Callable[[str], _Change]) -> BulkItem:
    try:
        done = change(table_id)
    except DatabaseUnavailableError:
        raise
    except GroundskeeperError as error:
        problem = BulkProblem(type=problem_uri(error.type), title=error.title, detail=error.detail, hint=error.hint)
        return BulkItem(table_id=table_id, table_name=name, outcome=BulkOutcome.REFUSED, job_id=None, problem=problem)
    return BulkItem(
        table_id=table_id,
        table_name=name,
        outcome=BulkOutcome.DONE if done.is_new else BulkOutcome.UNCHANGED,
        job_id=done.job_id,
        problem=None,
    )
