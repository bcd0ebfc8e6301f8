"""Cleaning: old versions of files are deleted."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET

from jobs.contract import JobKind
from jobs.job_params import CleaningPolicy
from jobs.kinds.kind import Kind, Policy, WorksOn
from jobs.kinds.parameters import ByService, Spec
from jobs.kinds.results import Count, Many, Part, PlansResult, SomeInstant, Text, Texts
from jobs.kinds.words import ExecutesPlans, Parallelism

FILES_PER_CLEAN = 100_000


class Consumer(msgspec.Struct, frozen=True):
    """An incremental reader. `instant` is the last commit that it has read; later commits are kept for it."""

    name: str
    instant: str


Consumers = Annotated[tuple[Consumer, ...], ByService]


class CleaningParams(ExecutesPlans, frozen=True, kw_only=True):
    parallelism: Parallelism = None
    policy: Annotated[CleaningPolicy, Spec("What `retain` counts")] = CleaningPolicy.KEEP_LATEST_COMMITS
    retain: Annotated[int, Spec("Commits, hours or file versions to keep", ge=1, le=1_000_000)] = 10
    files_per_clean: Annotated[
        int | None,
        Spec(
            f"Maximum number of files that one clean deletes, by default {FILES_PER_CLEAN}. The job deletes more files"
            " by further cleans",
            ge=1,
            le=1_000_000,
        ),
    ] = None
    consumers: Consumers = ()


class ConsumerSeen(Part, frozen=True, kw_only=True):
    """A consumer of the table for which more is kept"""

    name: Annotated[str, Spec("Its name")]
    instant: Annotated[SomeInstant, Spec("The last commit that it has seen")]


class CleaningResult(PlansResult, frozen=True, kw_only=True):
    files: Annotated[Count, Spec("Number of files")] = UNSET
    bytes: Annotated[Count, Spec("Size of these files in bytes")] = UNSET
    cleans: Annotated[Count, Spec("Cleans into which the files are divided")] = UNSET
    policy: Annotated[Text, Spec("The policy that was applied")] = UNSET
    retain: Annotated[Count, Spec("The requested value of `retain`")] = UNSET
    retained: Annotated[
        Count,
        Spec("The value of `retain` that was used; it is higher than requested if consumers need more"),
    ] = UNSET
    consumers: Annotated[Many[ConsumerSeen], Spec("Consumers for which more was kept")] = UNSET
    partitions: Annotated[Count, Spec("Partitions with files to delete")] = UNSET
    dropped_partitions: Annotated[Texts, Spec("Partitions that are deleted completely")] = UNSET
    paths: Annotated[Texts, Spec("Files that would be deleted; 1000 at most")] = UNSET
    rolled_back: Annotated[Texts, Spec("Instants of dead writers that were rolled back")] = UNSET
    late_files_deleted: Annotated[Count, Spec("Files of fenced writers that were removed")] = UNSET
    files_deleted: Annotated[Count, Spec("Files that were deleted")] = UNSET
    failed_deletes: Annotated[Count, Spec("Files that could not be deleted")] = UNSET

    @property
    def has_gained(self) -> bool | None:
        done = self.files_deleted or self.late_files_deleted or self.dropped_partitions or self.rolled_back
        return bool(done) if self.files_deleted is not UNSET else None

    @property
    def amounts(self) -> dict[str, object]:
        return {"files_deleted": self.files_deleted, "freed_bytes": self.bytes if self.files_deleted else 0}


KIND = Kind(
    JobKind.CLEANING,
    "Cleaning",
    "Cn",
    "Deletes file slices that no retained instant needs.",
    CleaningParams,
    {"params": {"policy": "KEEP_LATEST_COMMITS", "retain": 10}},
    policy=Policy(80, "When old versions of files are deleted", {"retain": 20}),
    rolls_back_dead=True,
    waits_for_repair=True,
    works_on=WorksOn.OUT_OF_USE,
    may_merge=False,
    result=CleaningResult,
)
