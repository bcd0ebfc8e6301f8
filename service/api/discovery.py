"""Finds the tables below a folder, and registers them: /v1/discover"""

from __future__ import annotations

import threading
import time
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from jobs.contract import Problem
from jobs.kinds.words import NO_NUL
from service.api import tables
from service.api.dependencies import Caller, CallerDep, DatabaseDep, LakeDep
from service.api.errors import ServiceBusyError
from service.api.problems import problem_uri
from service.api.query_parameters import Glob
from service.api.requests import (
    OWNER_TEXT,
    TAGS_TEXT,
    LockIn,
    Options,
    Owner,
    ReadersIn,
    Request,
    TableIn,
    Tags,
    WritersIn,
    without_secret,
)
from service.api.routes import Routes
from service.api.structs import made, struct_of
from service.catalog import table_store
from service.db import audit_record
from service.db.engine import reading
from service.events.database import Database
from service.lake.location import canonical
from service.model import table_errors
from service.model.errors import GroundskeeperError
from service.observation.lake_access import LakeAccess
from service.registration import discovery, path_rules
from service.registration.discovery import TableSummary
from service.registration.path_rules import Given, PathRule

router = Routes(prefix="/v1", tags=["tables"])

# Clients wait a minute for an answer, so the search must end before that.
_SECONDS = 40.0
MOST_RULES = 20
# A process runs one search at a time.
_turn = threading.Lock()


def _is_rule(text: str) -> str:
    PathRule.parse(text)
    return text


Rule = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=NO_NUL), AfterValidator(_is_rule)]

_SEARCHES = [
    {"root": "s3a://lake/shop/"},
    {
        "root": "s3a://lake/shop/",
        "pattern": "orders/*",
        "register": True,
        "lock": {"provider": "filesystem"},
        "writers": {"hudi_version": "1.2.0", "engines": ["spark"]},
        "rules": ["{team}/*"],
    },
]


class DiscoverIn(Request, json_schema_extra={"examples": _SEARCHES}):
    root: Annotated[
        str,
        StringConstraints(min_length=1, max_length=4096, pattern=NO_NUL),
        AfterValidator(without_secret),
    ] = Field(description="The folder: an absolute path or a URI (s3a://...)", examples=["s3a://lake/shop/"])
    pattern: Glob = Field(
        "*",
        description="A glob for the paths of tables relative to the root; `*` also matches slashes",
        examples=["orders/*"],
    )
    registers: bool = Field(
        False,
        alias="register",
        description="Registers every table that was found and is not registered yet, with the members below",
    )
    limit: int = Field(
        100,
        ge=1,
        le=500,
        description="Maximum number of tables that this call examines or registers. Tables that are already registered"
        " do not count",
    )
    lock: LockIn = Field(
        default_factory=lambda: LockIn.model_validate({}), description="The lock that the writers of all tables take"
    )
    writers: WritersIn | None = Field(None, description="What is known about the writers of all tables")
    readers: ReadersIn | None = Field(None, description="What is known about the readers of all tables")
    hudi_options: Options = Field(default_factory=dict, description="Added to the Hudi client's options in every job")
    owner: Owner | None = Field(None, description=OWNER_TEXT, examples=["shop@example.com"])
    tags: Tags = Field(default_factory=dict, description=TAGS_TEXT)
    rules: list[Rule] = Field(
        default_factory=list,
        max_length=MOST_RULES,
        description="Rules that derive owner and tags from paths below the root: `{team}/*` gives the tag `team`, "
        "`{owner}` the owner; `*` is one folder, `**` any number. If several rules give the same tag, "
        "the first one counts; rules take precedence over `owner` and `tags`",
        examples=[["{owner}/{team}/*"]],
    )

    def given(self, base_path: str, root: str) -> Given:
        path = base_path.removeprefix(root).strip("/") or "."
        return path_rules.given(path_rules.parsed(self.rules), path, owner=self.owner, tags=self.tags)


class FoundState(StrEnum):
    """`registered` includes tables that this call has registered."""

    REGISTERED = "registered"
    CAN_BE_REGISTERED = "can-be-registered"
    REFUSED = "refused"


class ReasonOut(BaseModel):
    """Why a folder or a table is left out."""

    type: str = Field(description="Type of the problem", examples=["/problems/table-not-supported"])
    title: str = Field(description="What is wrong", examples=["Groundskeeper does not support this kind of Hudi table"])
    detail: str = Field(description="What is wrong in this case", examples=["Table version 5"])
    hint: str = Field(
        description="What to do", examples=["Table versions 6, 8 and 9 with Parquet base files are supported."]
    )

    @classmethod
    def of(cls, error: GroundskeeperError | Problem) -> ReasonOut:
        problem = error.problem() if isinstance(error, GroundskeeperError) else error
        return made(cls, problem, type=problem_uri(error.type))


class FoundTable(BaseModel):
    """A table below the root."""

    base_path: str = Field(description="Canonical, as in a registration", examples=["s3a://lake/shop/orders"])
    name: str | None = Field(
        description="The name in its `hoodie.properties`; null if the file was not read", examples=["orders"]
    )
    table_type: str | None = Field(description="Type in its properties", examples=["MERGE_ON_READ"])
    table_version: int | None = Field(description="Version in its properties", examples=[9])
    state: FoundState = Field(
        description="Whether the table is registered, can be registered, or is refused", examples=["registered"]
    )
    is_new: bool = Field(description="Whether this call has registered the table", examples=[True])
    table_id: str | None = Field(description="Null unless the table is registered", examples=["tbl_0f3c2a9d5e7b1c44"])
    reason: ReasonOut | None = Field(description="Why the table is refused; null otherwise")
    owner: str | None = Field(
        description="The owner that this search declares when it registers the table; a registered table keeps its own",
        examples=["shop@example.com"],
    )
    tags: dict[str, str] = Field(
        description="The tags that this search declares when it registers the table", examples=[{"team": "shop"}]
    )

    @classmethod
    def known(
        cls, base_path: str, gets: Given, table_id: str, seen: TableSummary | None = None, *, is_new: bool = False
    ) -> FoundTable:
        members = {"state": FoundState.REGISTERED, "table_id": table_id, "is_new": is_new, "reason": None}
        return cls._of(base_path, gets, seen, **members)

    @classmethod
    def unknown(
        cls, base_path: str, gets: Given, seen: TableSummary | None, error: GroundskeeperError | None = None
    ) -> FoundTable:
        state, reason = (FoundState.REFUSED, ReasonOut.of(error)) if error else (FoundState.CAN_BE_REGISTERED, None)
        return cls._of(base_path, gets, seen, state=state, table_id=None, is_new=False, reason=reason)

    @classmethod
    def _of(cls, base_path: str, gets: Given, seen: TableSummary | None, **members: Any) -> FoundTable:
        of_table = vars(seen) if seen else dict.fromkeys(("name", "table_type", "table_version"))
        return made(cls, None, base_path=base_path, owner=gets.owner, tags=gets.tags, **of_table, **members)


class SkippedFolder(BaseModel):
    """A folder that could not be listed."""

    path: str = Field(description="Its path relative to the root", examples=["archive/2019"])
    reason: ReasonOut = Field(description="Why")


class DiscoveryOut(BaseModel):
    items: list[FoundTable] = Field(description="The tables that match, in the order of their paths")
    skipped: list[SkippedFolder] = Field(description="Folders that could not be listed; 50 at most")
    is_complete: bool = Field(
        description="False if a limit of depth, number or time ended the search. Then repeat a call that registers, or"
        " name folders further below",
        examples=[True],
    )


@router.admin(
    "POST /discover", "Find the tables below a folder, and register them", *tables.REGISTRATION_ERRORS, ServiceBusyError
)
def discover_tables(wanted: DiscoverIn, database: DatabaseDep, lake: LakeDep, caller: CallerDep) -> DiscoveryOut:
    """Without `register`, the call only reads. If a table cannot be registered, it is listed with the reason, and the
    others are still registered. Policies act on each registered table at once, so its writers must take the given
    lock."""
    if not _turn.acquire(blocking=False):
        raise ServiceBusyError("Another search for tables is running.")
    try:
        return discover(wanted, database, lake, caller)
    finally:
        _turn.release()


def discover(wanted: DiscoverIn, database: Database, lake: LakeAccess, caller: Caller) -> DiscoveryOut:
    """Searches and registers until `_SECONDS` have passed. A registration that has begun by then is completed."""
    end = time.monotonic() + _SECONDS
    roots, root = caller.roots(lake), lake.readers.run(canonical, wanted.root)
    walked = lake.readers.run(
        discovery.walk,
        root,
        pattern=wanted.pattern,
        storage_options=lake.storage_options,
        allowed_roots=roots,
    )
    with reading(database.engine) as connection:
        known = table_store.find_all(connection, walked.tables)
    items: list[FoundTable] = []
    left, is_complete = wanted.limit, walked.is_complete
    for base_path in walked.tables:
        gets = wanted.given(base_path, root)
        if base_path in known:
            items.append(FoundTable.known(base_path, gets, known[base_path]))
        elif left == 0 or time.monotonic() > end:
            is_complete = False
        else:
            left -= 1
            items.append(_new(base_path, gets, wanted, database=database, lake=lake, caller=caller))
    skipped = [struct_of(SkippedFolder)(path=each.path, reason=ReasonOut.of(each.problem)) for each in walked.skipped]
    return struct_of(DiscoveryOut)(items=items, skipped=skipped, is_complete=is_complete)


def _new(
    base_path: str, gets: Given, wanted: DiscoverIn, *, database: Database, lake: LakeAccess, caller: Caller
) -> FoundTable:
    seen = None
    try:
        seen = lake.readers.run(
            discovery.summary_of,
            base_path,
            storage_options=lake.storage_options,
            allowed_roots=caller.roots(lake),
        )
        if not wanted.registers:
            return FoundTable.unknown(base_path, gets, seen)
        body = TableIn(
            base_path=base_path,
            name=None,
            index=None,
            lock=wanted.lock,
            writers=wanted.writers,
            readers=wanted.readers,
            hudi_options=wanted.hudi_options,
            owner=gets.owner,
            tags=gets.tags,
        )
        # Each registration has a separate entry in the audit trail.
        with audit_record.separate():
            table = tables.register_table(body, database, lake, caller)
        return FoundTable.known(base_path, gets, table.id, seen, is_new=True)
    except table_errors.TableAlreadyRegisteredError as error:
        return FoundTable.known(base_path, gets, str(error.extensions["table_id"]), seen)
    except GroundskeeperError as error:
        return FoundTable.unknown(base_path, gets, seen, error)
