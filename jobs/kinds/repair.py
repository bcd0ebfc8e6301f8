"""Repair: rows of stale writes are brought back, or leftovers removed."""

from __future__ import annotations

from typing import Annotated

from jobs.contract import JobKind
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.words import HAND_OVER_SECONDS, WAIT_SECONDS, HandOverSeconds, Word


class RepairParams(Parameters, frozen=True, kw_only=True):
    instants: Annotated[
        Annotated[tuple[Word, ...], Spec(min_length=1, max_length=1000)] | None,
        Spec(
            "Completed instants to repair, also without proof, in addition to those that are proved to be "
            "stale. Default: all that seem to be, unless an overwrite or a deletion replaced their file groups"
        ),
    ] = None
    accepted: Annotated[
        tuple[Word, ...] | None,
        Spec(
            "Instants that count as repaired: their deletes were lost and have been run again, or nothing "
            "proves that their rows are astray, and these shall stay where they are",
            max_length=1000,
        ),
    ] = None
    leftovers: Annotated[
        bool | None,
        Spec(
            "Instead remove what a diagnosis names as left behind: markers of writes that have ended, files of "
            "writes that were rolled back, and hashing configs without a commit, if no row was written by them"
        ),
    ] = None
    wait_seconds: Annotated[int, Spec("How long to wait for a moment without writes", ge=0, le=86_400)] = WAIT_SECONDS
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS

    def __post_init__(self) -> None:
        if self.leftovers and (self.instants or self.accepted):
            raise ValueError("a repair of leftovers takes no instants: start one job for each")


KIND = Kind(
    JobKind.REPAIR,
    "Repair",
    "Re",
    "Recovers the rows of commits that wrote to replaced file groups, or with an old number of buckets.",
    RepairParams,
    policy=Policy(10, "Whether rows of stale writes are brought back at once"),
    rewrites=True,
    stops_flink=True,
    audited=True,
    rolls_back_dead=True,
)
