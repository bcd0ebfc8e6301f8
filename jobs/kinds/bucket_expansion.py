"""Bucket expansion: a table with a bucket index gets more buckets."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from jobs.contract import JobKind
from jobs.kinds.kind import Kind, Policy, WorksOn
from jobs.kinds.parameters import Spec
from jobs.kinds.results import Count, Many, Part, ReplacementResult
from jobs.kinds.words import ActiveWriterParams, Codec, PartitionChoice


class RescaleParams(ActiveWriterParams, frozen=True, kw_only=True):
    """Parameters of every job that changes the number of buckets."""

    num_buckets: int | None = None
    partitions: Annotated[
        Annotated[tuple[PartitionChoice, ...], Spec(min_length=1, max_length=10_000)] | None,
        Spec(
            'Partition paths as in storage; or `{"prefix": ...}` for all with that prefix, including later '
            "ones. Default: the whole table"
        ),
    ] = None
    settle_seconds: Annotated[
        int, Spec("How long the job watches afterwards for writers that still use the old number", ge=1, le=600)
    ] = 15
    codec: Annotated[Codec | None, Spec("Compression of the new files. Default: the table's")] = None


class MultipleParams(RescaleParams, frozen=True, kw_only=True):
    """Exactly one of `num_buckets` and `factor`."""

    factor: int | None = None

    def __post_init__(self) -> None:
        if (self.num_buckets is None) == (self.factor is None):
            raise ValueError("give exactly one of num_buckets and factor")


class BucketExpansionParams(MultipleParams, frozen=True, kw_only=True):
    """Exactly one of `num_buckets` and `factor`."""

    num_buckets: Annotated[int | None, Spec("The new number, a multiple of the current one", ge=2, le=1_000_000)] = None
    factor: Annotated[int | None, Spec("The new number as a multiple of the current one", ge=2, le=8)] = None


class BucketRulesChange(Part, frozen=True, kw_only=True):
    """Rules of the hashing config before and after a job"""

    before: Annotated[str, Spec("Before the job")]
    after: Annotated[str, Spec("After the job")]


class RescaleResult(ReplacementResult, frozen=True, kw_only=True):
    buckets: Annotated[
        Many[int], Spec("Numbers of buckets before and after, in the partition with the most buckets")
    ] = UNSET
    partitions: Annotated[Count, Spec("Partitions that were rewritten")] = UNSET
    rules: Annotated[
        str | BucketRulesChange | UnsetType,
        Spec("Rules of the hashing config; in a dry run the rules before and after"),
    ] = UNSET


KIND = Kind(
    JobKind.BUCKET_EXPANSION,
    "Bucket expansion",
    "Ex",
    "Gives a bucket-indexed table more buckets, without a shuffle.",
    BucketExpansionParams,
    {"params": {"num_buckets": 8}, "dry_run": True},
    module="bucket_rescale",
    policy=Policy(40, "When a table gets more buckets", {"mode": "suggest"}),
    rewrites=True,
    stops_flink=True,
    changes_bucket_number=True,
    needs_every_partition=True,
    audited=True,
    rolls_back_dead=True,
    waits_for_repair=True,
    works_on=WorksOn.EVERYTHING,
    result=RescaleResult,
)
