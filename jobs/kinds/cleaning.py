"""Cleaning: old versions of files are deleted."""

from __future__ import annotations

from typing import Annotated

import msgspec

from jobs.contract import JobKind
from jobs.job_params import CleaningPolicy
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import ByService, Spec
from jobs.kinds.words import ExecutesPlans, Parallelism


class Consumer(msgspec.Struct, frozen=True):
    """A reader that goes on from the last commit that it has seen, `instant`: what came after is kept for it."""

    name: str
    instant: str


Consumers = Annotated[tuple[Consumer, ...], ByService]


class CleaningParams(ExecutesPlans, frozen=True, kw_only=True):
    parallelism: Parallelism = None
    policy: Annotated[CleaningPolicy, Spec("What `retain` counts")] = CleaningPolicy.KEEP_LATEST_COMMITS
    retain: Annotated[int, Spec("Commits, hours or file versions to keep", ge=1, le=1_000_000)] = 10
    consumers: Consumers = ()


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
)
