"""Partition TTL: partitions that have expired are dropped."""

from __future__ import annotations

from typing import Annotated

from jobs.contract import JobKind
from jobs.job_params import TtlStrategy
from jobs.kinds.cleaning import Consumers
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.words import HAND_OVER_SECONDS, WAIT_SECONDS, HandOverSeconds, Partitions


class PartitionTtlParams(Parameters, frozen=True, kw_only=True):
    days_retain: Annotated[int, Spec("Partitions that are older are dropped", ge=1, le=36_500, examples=(90,))]
    strategy: Annotated[
        TtlStrategy,
        Spec(
            "`KEEP_BY_TIME`: days since the last modification, also by a table service that rewrites files; "
            "`KEEP_BY_CREATION_TIME`: days since the commit that created the partition"
        ),
    ] = TtlStrategy.KEEP_BY_TIME
    partitions: Partitions | None = None
    limit_partitions: Annotated[
        int, Spec("Partitions to drop at most, the oldest first. The result says what is `left`", ge=1, le=1000)
    ] = 100
    wait_seconds: Annotated[
        int, Spec("How long to wait for a moment at which nobody writes to these partitions", ge=0, le=86_400)
    ] = WAIT_SECONDS
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS
    consumers: Consumers = ()


KIND = Kind(
    JobKind.PARTITION_TTL,
    "Partition TTL",
    "Tt",
    "Drops partitions that were not modified, or created, for a number of days. Cleaning removes their files later.",
    PartitionTtlParams,
    {"params": {"days_retain": 90}, "dry_run": True},
    policy=Policy(70, "When partitions expire"),
    rewrites=True,
    stops_flink=True,
    needs_every_partition=True,
    audited=True,
    rolls_back_dead=True,
    waits_for_repair=True,
)
