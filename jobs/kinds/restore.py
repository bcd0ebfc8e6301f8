"""Restore: the table goes back to a savepoint."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET

from jobs.contract import JobKind
from jobs.kinds.kind import Kind
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import STREAMS, Count, KindResult, Maybe, SomeInstant, Texts
from jobs.kinds.words import HAND_OVER_SECONDS, HandOverSeconds, Instant, TableName


class RestoreParams(Parameters, frozen=True, kw_only=True):
    savepoint: Annotated[Instant, Spec("The instant of the savepoint")]
    table_name: TableName
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS


class RestoreResult(KindResult, frozen=True, kw_only=True):
    savepoint: Annotated[Maybe[SomeInstant], Spec("The savepoint")] = UNSET
    rolled_back: Annotated[Texts, Spec("Commits that are undone")] = UNSET
    writers_commits: Annotated[Count, Spec("Those of these commits that wrote rows")] = UNSET
    streams: Annotated[Texts, STREAMS] = UNSET
    indexes_dropped: Annotated[Texts, Spec("Indexes that the restored table cannot have, which were dropped")] = UNSET


KIND = Kind(
    JobKind.RESTORE,
    "Restore",
    "Rs",
    "Takes the table back to a savepoint. All later commits are lost for good. The writers must be stopped.",
    RestoreParams,
    {"params": {"savepoint": "20260101120000000", "table_name": "trips"}, "dry_run": True},
    rewrites=True,
    stops_flink=True,
    audited=True,
    result=RestoreResult,
)
