"""One call for many tables, with an outcome for each: /v1/tables/bulk"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, assert_never

from fastapi import Body
from pydantic import BaseModel, Field, StringConstraints, model_validator

from service.access.token import Role
from service.api.dependencies import CallerDep, DatabaseDep, LakeDep, QueueDep, check_role, forbidden
from service.api.health_problems import AcknowledgementTerms
from service.api.params import JobIn, as_json
from service.api.policy_models import PolicyIn
from service.api.problems import problem_uri
from service.api.requests import OWNER_TEXT, SOME_TEXT, Owner, Request, Tags
from service.api.routes import Routes
from service.catalog import decision_times, table_store, watch_store
from service.catalog.ownership import MOST_TAGS
from service.db import audit_record
from service.db.engine import reading, writing
from service.events.database import Database
from service.health import acknowledgement_store, problem_search
from service.model.errors import DatabaseUnavailableError, GroundskeeperError, ParamsInvalidError
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
    """`pause` and `resume` set `paused` in each table's own policy. `unacknowledge` takes back the acknowledgements of
    the tables' problems. `poll` reads the tables' timelines now."""

    action: Literal["pause", "resume", "unacknowledge", "poll"]


class ProblemsOfTables(Tables, AcknowledgementTerms):
    """Acknowledges the present problems of each table, until a problem ends or becomes more serious, or until a given
    time. Earlier acknowledgements stay as they are."""

    action: Literal["acknowledge"]


class PolicyOfTables(Tables):
    """Sets some settings of each table's own policy; all others stay as they are."""

    action: Literal["policy"]
    policy: PolicyIn = Field(
        default_factory=lambda: PolicyIn(),
        description="The settings that are set",
        examples=[{"compaction": {"commits": 10}}],
    )
    unset: Annotated[
        list[Annotated[str, StringConstraints(max_length=100, pattern=SOME_TEXT)]], Field(max_length=200)
    ] = Field(
        default_factory=list,
        description="Settings to remove, so that weaker levels apply again: for example `compaction.commits`, or all "
        "of `compaction`",
        examples=[["clustering"]],
    )

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.policy and not self.unset:
            raise ValueError("needs a policy, or names of settings in unset")
        return self


class LabelsOfTables(Tables):
    """Declares the owner and tags of each table. Needs the role admin, as every declaration does."""

    action: Literal["label"]
    owner: Owner | None = Field(
        None,
        description=f"{OWNER_TEXT}. Null removes the owner; if left out, the owner stays",
        examples=["shop@example.com"],
    )
    tags: Tags = Field(default_factory=dict, description="Tags to add to each table, or to set to another value")
    remove_tags: Annotated[
        list[Annotated[str, StringConstraints(max_length=64, pattern=SOME_TEXT)]], Field(max_length=100)
    ] = Field(default_factory=list, description="Keys of tags to remove", examples=[["tier"]])

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if "owner" not in self.model_fields_set and not self.tags and not self.remove_tags:
            raise ValueError("needs an owner, tags or remove_tags")
        return self


class JobsOfTables(Tables):
    """Submits the same job on each table."""

    action: Literal["run"]
    job: JobIn = Field(description="The job for each table")


class BulkProblem(BaseModel):
    type: str = Field(description="The type of the problem", examples=["/problems/job-conflict"])
    title: str
    detail: str
    hint: str | None


class BulkItem(BaseModel):
    table_id: str = Field(description="Id of the table from the request", examples=["tbl_0f3c2a9d5e7b1c44"])
    table_name: str | None = Field(description="Null if there is no such table", examples=["orders"])
    outcome: BulkOutcome = Field(
        description="`unchanged`: nothing had to change, for example because the table was already paused; "
        "`refused`: see `problem`. Other tables are changed even if one is refused"
    )
    job_id: str | None = Field(
        description="The job that was submitted; null without one", examples=["job_4be1c0d2f6a89b37"]
    )
    problem: BulkProblem | None = Field(description="Why the action was refused; null otherwise")


class BulkOut(BaseModel):
    items: list[BulkItem] = Field(description="In the order of the request, each table once")
    done: int = Field(description="Number of tables that the call has changed", examples=[12])
    unchanged: int = Field(description="Number of tables where nothing had to change", examples=[0])
    refused: int = Field(description="Number of tables with a `problem`", examples=[1])


@dataclass(frozen=True)
class _Change:
    is_new: bool
    job_id: str | None = None


@router.operator("POST /bulk", "Do the same with many tables", operation_id="changeTables", of_tables=True)
def change_tables(
    wanted: Annotated[
        SetOfTables | ProblemsOfTables | PolicyOfTables | LabelsOfTables | JobsOfTables, Body(discriminator="action")
    ],
    *,
    database: DatabaseDep,
    lake: LakeDep,
    queue: QueueDep,
    caller: CallerDep,
) -> BulkOut:
    """Each table is changed in a separate transaction, so that a refusal of one does not affect the others. A repeated
    call changes nothing more. A job that is still active from the first call is not submitted again, but refused as
    `job-conflict`."""

    def paused(table_id: str, *, is_paused: bool) -> _Change:
        return _Change(policy_registry.set_paused(database.engine, database.clock, table_id, paused=is_paused))

    def acknowledged(table_id: str, given: AcknowledgementTerms | None) -> _Change:
        found = [each.id for each in problem_search.of_table(database.engine, database.clock(), table_id).problems]
        with writing(database.engine) as connection:
            table_store.get(connection, table_id)
            if given is not None:
                known = given.by(caller, database.clock())
                return _Change(acknowledgement_store.add(connection, found, known) > 0)
            return _Change(acknowledgement_store.remove(connection, found) > 0)

    def set_(table_id: str, policy: PolicyIn, unset: list[str]) -> _Change:
        with audit_record.separate():
            audit_record.exists("table-policy", table_id)
            return _Change(policy_registry.change_table(database.engine, database.clock, table_id, policy, unset))

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
            case "acknowledge":
                return lambda table_id: acknowledged(table_id, wanted)
            case "unacknowledge":
                return lambda table_id: acknowledged(table_id, None)
            case "policy":
                return lambda table_id: set_(table_id, wanted.policy, wanted.unset)
            case "label":
                return lambda table_id: _labelled(table_id, wanted, database)
            case "poll":
                return polled
            case "run":
                return lambda table_id: submitted(table_id, wanted.job)
            case other:
                assert_never(other)

    role = Role.ADMIN if isinstance(wanted, LabelsOfTables) else Role.OPERATOR
    if not caller.may_on_some(role):
        raise forbidden(caller, role)
    with reading(database.engine) as connection:
        tables = table_store.get_all(connection, set(wanted.tables))

    def changed(table_id: str) -> _Change:
        if table := tables.get(table_id):
            check_role(caller, role, table)
        return change()(table_id)

    names = {table_id: table.name for table_id, table in tables.items()}
    items = [_item(each, names.get(each), changed) for each in dict.fromkeys(wanted.tables)]
    database.notifier.notify()
    counts = Counter(each.outcome for each in items)
    return BulkOut(items=items, **{each.value: counts[each] for each in BulkOutcome})


def _labelled(table_id: str, wanted: LabelsOfTables, database: Database) -> _Change:
    with audit_record.separate():
        audit_record.exists("table", table_id)
        with writing(database.engine) as connection:
            table = table_store.get(connection, table_id, for_update=True)
            tags = {key: value for key, value in table.tags.items() if key not in wanted.remove_tags} | wanted.tags
            if len(tags) > MOST_TAGS:
                raise ParamsInvalidError(f"{table.name} would have {len(tags)} tags; at most {MOST_TAGS} are allowed.")
            owner = wanted.owner if "owner" in wanted.model_fields_set else table.owner
            if (owner, tags) == (table.owner, table.tags):
                return _Change(is_new=False)
            now = database.clock()
            table_store.change(connection, table.evolve(owner=owner, tags=tags, updated_at=now))
            # Other policies may apply now.
            decision_times.wake(connection, table_id, now)
    return _Change(is_new=True)


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
