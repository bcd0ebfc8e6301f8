"""Repair: rows of stale writes are brought back, or leftovers removed."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET

from jobs.contract import JobKind
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import Count, KindResult, Texts
from jobs.kinds.words import HAND_OVER_SECONDS, WAIT_SECONDS, HandOverSeconds, Instant


class RepairParams(Parameters, frozen=True, kw_only=True):
    instants: Annotated[
        Annotated[tuple[Instant, ...], Spec(min_length=1, max_length=1000)] | None,
        Spec(
            "Completed instants to repair even if nothing proves that they are stale, in addition to the proved stale"
            " writes. Default: all suspected writes, except those whose file groups an overwrite or a deletion replaced"
        ),
    ] = None
    accepted: Annotated[
        tuple[Instant, ...] | None,
        Spec(
            "Instants to mark as repaired without changing anything: because you have run their lost deletes again, or "
            "because their rows shall stay where they are",
            max_length=1000,
        ),
    ] = None
    leftovers: Annotated[
        bool | None,
        Spec(
            "Instead remove the leftovers that a diagnosis has found: markers of ended writes, files of "
            "rolled-back writes, and hashing configs that have neither a commit nor rows written by them"
        ),
    ] = None
    wait_seconds: Annotated[int, Spec("How long to wait for a moment without writes", ge=0, le=86_400)] = WAIT_SECONDS
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS

    def __post_init__(self) -> None:
        if self.leftovers and (self.instants or self.accepted):
            raise ValueError("a repair of leftovers takes no instants: start one job for each purpose")


class RepairResult(KindResult, frozen=True, kw_only=True):
    repaired: Annotated[Texts, Spec("Stale writes whose rows were brought back")] = UNSET
    cleared: Annotated[Texts, Spec("Suspected stale writes that turned out to be harmless")] = UNSET
    left: Annotated[
        Texts,
        Spec(
            "Suspected stale writes that were left unchanged, because nothing proves them and `instants` does not name"
            " them"
        ),
    ] = UNSET
    waived: Annotated[
        Texts, Spec("Suspected stale writes that count as repaired now, because `accepted` names them")
    ] = UNSET
    rows: Annotated[Count, Spec("Rows that were brought back")] = UNSET
    deletes: Annotated[Count, Spec("Deletes that were done again")] = UNSET
    superseded: Annotated[Count, Spec("Rows that were not brought back, because the table has newer ones")] = UNSET
    moved: Annotated[Count, Spec("Rows that were moved to their buckets")] = UNSET
    deletes_without_rows: Annotated[
        Texts,
        Spec(
            "Commits after the repaired ones with deletes that have removed no row. If they deleted rows that only a"
            " wrong bucket had, these rows are back: run the deletes again"
        ),
    ] = UNSET
    stale: Annotated[Texts, Spec("Stale writes that would be repaired; only in a dry run")] = UNSET
    suspects: Annotated[Texts, Spec("Writes that would be checked; only in a dry run")] = UNSET
    file_groups: Annotated[Count, Spec("File groups of these writes")] = UNSET
    late_files: Annotated[Count, Spec("Files of fenced writers; with `leftovers`")] = UNSET
    markers: Annotated[Texts, Spec("Instants whose markers are left behind; with `leftovers`")] = UNSET
    hashing_configs: Annotated[Texts, Spec("Dangling hashing configs; with `leftovers`")] = UNSET


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
    ends_with_instant=False,
    result=RepairResult,
)
