"""Savepoints: commits whose files are kept."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET

from jobs.contract import JobKind
from jobs.kinds.kind import Kind
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import KindResult, Many, Maybe, Part, SomeInstant
from jobs.kinds.words import NO_NUL, Instant


class SavepointParams(Parameters, frozen=True, kw_only=True):
    action: Annotated[Literal["create", "list", "delete"], Spec("What to do with savepoints")] = "create"
    instant: Annotated[Instant | None, Spec("The commit. Default when creating: the latest completed one")] = None
    comment: Annotated[str, Spec("Note for others", max_length=1000, pattern=NO_NUL)] = ""
    wait_seconds: Annotated[int, Spec("How long to wait for writes that began before this commit", ge=0, le=86_400)] = (
        60
    )

    def __post_init__(self) -> None:
        if self.action == "delete" and self.instant is None:
            raise ValueError("name the instant of the savepoint to delete")


class SavepointOfTable(Part, frozen=True, kw_only=True):
    """A savepoint"""

    instant: Annotated[SomeInstant, Spec("The commit whose files are kept")]
    by: Annotated[str | None, Spec("Who created it")]
    comment: Annotated[str | None, Spec("Why")]
    files: Annotated[int, Spec("Number of files that are kept")]


class SavepointResult(KindResult, frozen=True, kw_only=True):
    savepoint: Annotated[Maybe[SomeInstant], Spec("The savepoint that was created")] = UNSET
    deleted: Annotated[Maybe[SomeInstant], Spec("The savepoint that was deleted")] = UNSET
    savepoints: Annotated[Many[SavepointOfTable], Spec("All savepoints of the table")] = UNSET


KIND = Kind(
    JobKind.SAVEPOINT,
    "Savepoint",
    "Sp",
    "Creates, lists or deletes savepoints. A savepoint keeps the files of a commit, so that the table can be"
    " restored to it.",
    SavepointParams,
    {"params": {"comment": "before the migration"}},
    may_merge=False,
    result=SavepointResult,
)
