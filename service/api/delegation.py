"""Hudi's protocol of a table service manager, and the plans that writers have delegated through this protocol."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Path, Query, Response
from pydantic import BaseModel, Field

from jobs.kinds.words import NO_NUL
from service.api.answers import Declared, PageOf
from service.api.dependencies import DELEGATION_PATH, CallerDep, DatabaseDep, LakeDep
from service.api.query_parameters import TOLERANT, AnyOf, Asked
from service.api.requests import SOME_TEXT
from service.api.routes import Routes
from service.api.statuses import ACCEPTED
from service.api.structs import made
from service.db.engine import reading
from service.delegation import inbox, plan_store
from service.delegation.plan import (
    DelegatedPlan,
    DelegatedService,
    ExecutionHints,
    PlanRequest,
    PlanState,
    data_table_of,
    instants_of,
)
from service.model import errors
from service.policies.policy import GROUP_PATTERN

log = logging.getLogger(__name__)

router = Routes(prefix="/v1", tags=["delegation"])

# The client sends the instants in the URL. 1000 instants of 20 digits fit.
_MOST_INSTANT_TEXT = 24_000
_Wish = Annotated[str, Query(description="What the writer asks for; ignored if the value is not valid")]


class DelegationOut(BaseModel):
    """The answer to a writer, which reads only its status."""

    table_id: str | None = Field(description="Null if no table is registered with this base path")
    stored: list[str] = Field(description="Instants that were not known before", examples=[["20260101120000000"]])


class PlanOut(Declared, declared=DelegatedPlan):
    table_id: str | None
    table_name: str
    hint: str | None = Field(description="The remedy, for a table that is not registered")
    queue: str | None = Field(description="The worker group that its writer asks for")
    resource: str | None = Field(description="Resources that its writer asks for; not used")
    parallelism: int | None = Field(description="Parallelism that its writer asks for; not used")
    engine: str | None = Field(description="Engine that the writer names", examples=["SPARK"])
    username: str | None = Field(description="User that the writer names")
    requested_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, plan: DelegatedPlan) -> PlanOut:
        hint = inbox.SUGGESTION if plan.state is PlanState.UNREGISTERED else None
        return made(cls, plan, hint=hint, **vars(plan.hints))


@router.on(
    f"GET {DELEGATION_PATH.removeprefix(router.prefix)}{{service}}",
    "Delegate the pending plans of a table (called by Hudi's writers)",
    also={ACCEPTED: "The database is unavailable, and nothing was stored"},
    openapi_extra=TOLERANT,
)
def delegate_plans(
    service: Annotated[DelegatedService, Path()],
    database: DatabaseDep,
    lake: LakeDep,
    caller: CallerDep,
    response: Response,
    *,
    _action: Annotated[Literal["REQUEST"], Query(alias="action")],
    base_path: Annotated[str, Query(alias="basepath", min_length=1, max_length=4096, pattern=NO_NUL)],
    instant: Annotated[
        str, Query(max_length=_MOST_INSTANT_TEXT, description="All pending instants, separated by commas")
    ] = "",
    table_name: Annotated[str, Query(max_length=1024, pattern=NO_NUL)] = "",
    queue: _Wish = "",
    resource: _Wish = "",
    parallelism: _Wish = "",
    execution_engine: _Wish = "",
    username: _Wish = "",
) -> DelegationOut:
    """Stores the plans. A repeated request changes nothing. If a request was lost, the next one is enough, because each
    request names all pending plans. The URI in the writer's option has the credentials, `http://writer:<token>@...`:
    the callback key if the service has one, otherwise any token."""
    try:
        instants = instants_of(instant)
    except ValueError as error:
        raise errors.ParamsInvalidError.of("instant", str(error)) from error
    data_table, is_metadata = data_table_of(base_path)
    hints = ExecutionHints.parse(
        queue=queue,
        resource=resource,
        parallelism=parallelism,
        engine=execution_engine,
        username=username,
        group_pattern=GROUP_PATTERN,
    )
    name = table_name or data_table.rstrip("/").rpartition("/")[2]
    request = PlanRequest(service, data_table, is_metadata, name, instants, hints)
    try:
        received = inbox.receive(database.engine, database.notifier, database.clock, request, caller=caller.name)
    except errors.DatabaseUnavailableError as error:
        # An error status would make the writer fail after its commit. The writer's next request names these plans
        # again.
        log.warning("Delegated plans of %s were not stored: %s", data_table, error)
        response.status_code = ACCEPTED
        return DelegationOut(table_id=None, stored=[])
    if received.table_id is not None:
        lake.poll_requests.ask(received.table_id)
    return DelegationOut(table_id=received.table_id, stored=list(received.new))


@router.reader("GET /delegated-plans", "List the plans that writers have delegated, newest first")
def list_delegated_plans(
    database: DatabaseDep,
    *,
    table_id: Annotated[str | None, Query(max_length=64, pattern=SOME_TEXT)] = None,
    state: AnyOf[PlanState] = [],
    asked: Asked,
) -> PageOf[PlanOut]:
    """`state=unregistered` lists the tables that wait to be registered. `since` and `until` are times of the first
    request."""
    with reading(database.engine) as connection:
        page = plan_store.page(connection, asked, table_id=table_id, states=state)
    return PageOf[PlanOut].of_page(page, PlanOut.of)
