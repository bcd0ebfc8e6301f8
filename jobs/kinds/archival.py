"""Archival: the active timeline is shortened."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from jobs.contract import JobKind
from jobs.kinds.cleaning import Consumers
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import ByService, Parameters, Spec
from jobs.kinds.results import Count, KindResult, Many, SomeInstant, Texts


class ArchivalLimit(msgspec.Struct, frozen=True):
    """A reason to keep an instant and all later ones on the active timeline"""

    type: Annotated[str, Spec("Kind of the reason, such as `pending-instant`, `savepoint` or `consumer`")]
    instant: Annotated[SomeInstant, Spec("The first instant that it keeps")]
    reason: Annotated[str, Spec("This case")]
    remedy: Annotated[str, Spec("What to do; empty if waiting is enough")] = ""


class ArchivalParams(Parameters, frozen=True, kw_only=True):
    retain: Annotated[int, Spec("Completed commits to keep on the active timeline, at least", ge=2, le=1_000_000)] = 30
    consumers: Consumers = ()
    # The last instant that the service has recorded; None if it has recorded none, UNSET if the caller is not the
    # service.
    seen: Annotated[str | UnsetType | None, ByService] = UNSET
    keep: Annotated[tuple[ArchivalLimit, ...], ByService] = ()


class ArchivalResult(KindResult, frozen=True, kw_only=True):
    retain: Annotated[Count, Spec("Commits to keep at least")] = UNSET
    instants: Annotated[Count, Spec("Instants on the active timeline")] = UNSET
    commits: Annotated[Count, Spec("Commits among them")] = UNSET
    candidates: Annotated[Texts, Spec("Instants that can be archived; only in a dry run")] = UNSET
    limits: Annotated[Many[ArchivalLimit], Spec("Reasons for which more instants stay on the active timeline")] = UNSET
    archived: Annotated[Count, Spec("Instants that were archived")] = UNSET
    last_archived: Annotated[SomeInstant | UnsetType | None, Spec("The last instant that was archived")] = UNSET


KIND = Kind(
    JobKind.ARCHIVAL,
    "Archival",
    "Ar",
    "Moves the oldest instants of the timeline to the history, and says why others cannot be moved yet.",
    ArchivalParams,
    {"params": {"retain": 30}},
    policy=Policy(90, "When the active timeline is shortened"),
    waits_for_repair=True,
    may_merge=False,
    result=ArchivalResult,
)
