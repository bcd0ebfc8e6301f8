"""Partition TTL: partitions that have expired are dropped."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET

from jobs.contract import JobKind
from jobs.job_params import TtlStrategy
from jobs.kinds.cleaning import Consumers
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import (
    Count,
    Flag,
    KindResult,
    Many,
    Maybe,
    Number,
    Part,
    ResultReason,
    SomeInstant,
    Text,
    WorkLeft,
)
from jobs.kinds.words import HAND_OVER_SECONDS, WAIT_SECONDS, HandOverSeconds, Partitions


class PartitionTtlParams(Parameters, frozen=True, kw_only=True):
    days_retain: Annotated[
        int, Spec("Partitions that are older than this number of days are dropped", ge=1, le=36_500, examples=(90,))
    ]
    strategy: Annotated[
        TtlStrategy,
        Spec(
            "`KEEP_BY_TIME`: days since the last modification, also by a table service that rewrites files; "
            "`KEEP_BY_CREATION_TIME`: days since the commit that created the partition"
        ),
    ] = TtlStrategy.KEEP_BY_TIME
    partitions: Partitions | None = None
    limit_partitions: Annotated[
        int,
        Spec("Maximum number of partitions to drop, the oldest first. The result says what is `left`", ge=1, le=1000),
    ] = 100
    wait_seconds: Annotated[
        int, Spec("How long to wait for a moment at which nobody writes to these partitions", ge=0, le=86_400)
    ] = WAIT_SECONDS
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS
    consumers: Consumers = ()


class ExpiredPartition(Part, frozen=True, kw_only=True):
    """A partition that has expired"""

    partition: Annotated[str, Spec("Its path")]
    since: Annotated[SomeInstant | None, Spec("The instant from which its age is counted")]
    modified: Annotated[SomeInstant | None, Spec("The instant that wrote to it last")]
    file_groups: Annotated[int, Spec("File groups in the partition")]
    files: Annotated[int, Spec("Files in the partition")]
    rows: Annotated[int | None, Spec("Rows in the partition")]
    bytes: Annotated[int, Spec("Size of these files in bytes")]


class WithheldPartition(ResultReason, frozen=True, kw_only=True):
    """A partition that has expired but is kept, with the reason"""

    partition: Annotated[str, Spec("Its path")]


class PartitionTtlResult(KindResult, frozen=True, kw_only=True):
    files: Annotated[Count, Spec("Number of files")] = UNSET
    bytes: Annotated[Count, Spec("Size of these files in bytes")] = UNSET
    rows: Annotated[Count, Spec("Number of rows")] = UNSET
    strategy: Annotated[Text, Spec("How the age of a partition is determined")] = UNSET
    days_retain: Annotated[Number, Spec("Age at which a partition expires, in days")] = UNSET
    partitions: Annotated[Many[ExpiredPartition], Spec("Partitions that were dropped, or would be")] = UNSET
    withheld: Annotated[Many[WithheldPartition], Spec("Partitions that have expired but are kept, with the reason")] = (
        UNSET
    )
    left: Annotated[Maybe[WorkLeft], Spec("Work that is left to the next job")] = UNSET
    kept_unchanged: Annotated[Flag, Spec("Whether the file slices of all other partitions stayed as they were")] = UNSET

    @property
    def leaves_work(self) -> bool | None:
        return bool(self.left.partitions and self.partitions) if self.left else None


KIND = Kind(
    JobKind.PARTITION_TTL,
    "Partition TTL",
    "Tt",
    "Drops partitions that were last modified, or created, too many days ago. Cleaning removes their files later.",
    PartitionTtlParams,
    {"params": {"days_retain": 90}, "dry_run": True},
    policy=Policy(70, "When partitions expire"),
    rewrites=True,
    stops_flink=True,
    needs_partitions=True,
    needs_every_partition=True,
    audited=True,
    rolls_back_dead=True,
    waits_for_repair=True,
    result=PartitionTtlResult,
)
