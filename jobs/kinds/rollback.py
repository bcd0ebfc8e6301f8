"""Rollback: a pending instant, or the latest commit, is undone."""

from __future__ import annotations

from typing import Annotated

from jobs.contract import JobKind
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import KindResult, SomeInstant
from jobs.kinds.words import HAND_OVER_SECONDS, HandOverSeconds, Instant, TableName


class RollbackParams(Parameters, frozen=True, kw_only=True):
    instant: Annotated[Instant, Spec("A pending instant, or the latest completed commit")]
    table_name: Annotated[TableName | None, Spec("Needed for a completed instant: the table's name")] = None
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS


class RollbackResult(KindResult, frozen=True, kw_only=True):
    instant: Annotated[SomeInstant, Spec("The instant that is undone")]
    action: Annotated[str | None, Spec("Its action")]
    state: Annotated[str | None, Spec("Its state")]
    operation: Annotated[str | None, Spec("Its operation")]
    file_groups: Annotated[int | None, Spec("File groups that it wrote")]


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
    result=RollbackResult,
)
