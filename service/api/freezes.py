"""Freezes: /v1/freezes"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from fastapi import Path, Response
from pydantic import Field, StringConstraints, model_validator

from jobs.kinds.words import NO_NUL
from service.api.answers import ListOf, Shown
from service.api.dependencies import CallerDep, DatabaseDep
from service.api.entity_tags import set_tag
from service.api.requests import NAME, Moment, Request, Word
from service.api.routes import Routes
from service.api.statuses import CREATED
from service.db.engine import reading
from service.policies import freeze_store
from service.policies.errors import FreezeNotFoundError, TooManyFreezesError
from service.policies.freeze import Freeze
from service.scheduling import freezing

router = Routes(prefix="/v1/freezes", tags=["policies"])

Name = Annotated[str, Path(pattern=NAME, examples=["black-friday"])]
_EXAMPLE = {"starts_at": "2026-11-27T00:00:00Z", "ends_at": "2026-11-30T00:00:00Z", "reason": "the sale"}


class FreezeIn(Request, json_schema_extra={"examples": [_EXAMPLE]}):
    starts_at: Moment = Field(description="When the freeze begins")
    ends_at: Moment = Field(description="When the freeze ends, later than `starts_at`")
    tables: Annotated[list[Word], Field(min_length=1, max_length=100)] = Field(
        default=["*"],
        description="Patterns of tables, as in policies: `orders_*`, `tag:team=shop`; all by default",
    )
    reason: Annotated[str, StringConstraints(max_length=1000, pattern=NO_NUL)] = Field(
        "", description="Shown to other users"
    )

    @model_validator(mode="after")
    def _has_a_length(self) -> Self:
        if self.ends_at <= self.starts_at:
            raise ValueError("ends_at must be later than starts_at")
        return self


class FreezeOut(Shown, declared=Freeze):
    tables: list[str]
    created_at: datetime
    updated_at: datetime


@router.reader("GET ", "List the freezes, the ended ones too")
def list_freezes(database: DatabaseDep) -> ListOf[FreezeOut]:
    with reading(database.engine) as connection:
        return ListOf[FreezeOut].of(freeze_store.every(connection), FreezeOut.of)


@router.reader("GET /{name}", "Show a freeze", FreezeNotFoundError)
def get_freeze(name: Name, database: DatabaseDep, response: Response) -> FreezeOut:
    with reading(database.engine) as connection:
        set_tag(response, connection, database.cipher, "freeze", name)
        return FreezeOut.of(freeze_store.get(connection, name))


@router.operator(
    "PUT /{name}",
    "Start no automatic jobs on some tables from one time to another",
    TooManyFreezesError,
    also={CREATED: "There was no such freeze before"},
)
def put_freeze(name: Name, wanted: FreezeIn, database: DatabaseDep, caller: CallerDep, response: Response) -> FreezeOut:
    """Jobs that have begun go on, and jobs can still be submitted, as in a pause. The table's decisions show the freeze
    as their reason."""
    now = database.clock()
    members = {**wanted.model_dump(), "tables": tuple(wanted.tables)}
    freeze, is_new = freezing.put(
        database, Freeze(name=name, **members, set_by=caller.name, created_at=now, updated_at=now)
    )
    if is_new:
        response.status_code = CREATED
    return FreezeOut.of(freeze)


@router.operator("DELETE /{name}", "Delete a freeze, which ends it", FreezeNotFoundError)
def delete_freeze(name: Name, database: DatabaseDep) -> None:
    freezing.delete(database, name)
