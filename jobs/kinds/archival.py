"""Archival: the active timeline is shortened."""

from __future__ import annotations

from typing import Annotated

import msgspec

from jobs.contract import JobKind
from jobs.kinds.cleaning import Consumers
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import ByService, Parameters, Spec


class Kept(msgspec.Struct, frozen=True):
    """A reason of the service to keep `instant` and all later ones (`jobs.protocol.archival_limits.Limit`)."""

    type: str
    instant: str
    reason: str
    remedy: str = ""


class ArchivalParams(Parameters, frozen=True, kw_only=True):
    retain: Annotated[int, Spec("Completed commits to keep on the active timeline, at least", ge=2, le=1_000_000)] = 30
    consumers: Consumers = ()
    # The last instant that the service has recorded, None if it has none. A person's own tool does not say it.
    seen: Annotated[str | msgspec.UnsetType | None, ByService] = msgspec.UNSET
    keep: Annotated[tuple[Kept, ...], ByService] = ()


KIND = Kind(
    JobKind.ARCHIVAL,
    "Archival",
    "Ar",
    "Moves the oldest instants of the timeline to the history, and says what keeps others from that.",
    ArchivalParams,
    {"params": {"retain": 30}},
    policy=Policy(90, "When the active timeline is shortened"),
    waits_for_repair=True,
)
