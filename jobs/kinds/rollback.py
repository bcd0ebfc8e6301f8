"""Rollback: a pending instant, or the latest commit, is undone."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from jobs.contract import JobKind
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import STREAMS, KindResult, Maybe, SomeInstant, Texts
from jobs.kinds.words import HAND_OVER_SECONDS, HandOverSeconds, Instant, TableName


class RollbackParams(Parameters, frozen=True, kw_only=True):
    instant: Annotated[Instant, Spec("A pending instant, or the latest completed commit")]
    table_name: Annotated[TableName | None, Spec("Needed for a completed instant: the table's name")] = None
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS


class RollbackResult(KindResult, frozen=True, kw_only=True):
    instant: Annotated[Maybe[SomeInstant], Spec("The instant that is undone")] = UNSET
    action: Annotated[str | UnsetType | None, Spec("Action of the instant")] = UNSET
    state: Annotated[str | UnsetType | None, Spec("State of the instant")] = UNSET
    operation: Annotated[str | UnsetType | None, Spec("Operation of the instant")] = UNSET
    file_groups: Annotated[int | UnsetType | None, Spec("File groups that the instant wrote")] = UNSET
    streams: Annotated[Texts, STREAMS] = UNSET


KIND = Kind(
    JobKind.ROLLBACK,
    "Rollback",
    "Rb",
    "Rolls back a pending instant that nobody works on, or the latest completed commit.",
    RollbackParams,
    {"params": {"instant": "20260101120000000"}, "dry_run": True},
    policy=Policy(20, "When writes of dead writers are rolled back"),
    rewrites=True,
    stops_flink=True,
    audited=True,
    may_merge=False,
    result=RollbackResult,
)
