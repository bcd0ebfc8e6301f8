"""Bucket resize: buckets of a table with consistent hashing are split and merged by their size."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET

from jobs.contract import JobKind
from jobs.kinds.kind import Kind, Policy, WorksOn
from jobs.kinds.parameters import Spec
from jobs.kinds.results import Count, KeyProof, Many, Maybe, Number, Part, ReplacementResult
from jobs.kinds.words import Partitions, ReplacingParams

_MIB = 1 << 20
MARGIN = 4
"""The thresholds differ by this factor at least, so that halves of a split bucket are not merged again, and merged
buckets are not split again."""

ONE_SIDED = 0.9
"""A split that leaves more than this share of the rows or bytes in one bucket is of no use: few keys have them."""


class BucketResizeParams(ReplacingParams, frozen=True, kw_only=True):
    split_bytes: Annotated[int, Spec("A bucket whose files have more bytes is split into two", ge=1)] = 240 * _MIB
    merge_bytes: Annotated[
        int,
        Spec(
            "Neighbouring buckets whose files have at most this many bytes each are merged; at most a fourth of"
            " `split_bytes`. 0: none is merged",
            ge=0,
        ),
    ] = 24 * _MIB
    min_buckets: Annotated[int, Spec("Minimum number of buckets of a partition", ge=1, le=100_000)] = 1
    max_buckets: Annotated[int, Spec("Maximum number of buckets of a partition", ge=1, le=100_000)] = 1024
    partitions: Partitions | None = None

    def __post_init__(self) -> None:
        if self.min_buckets > self.max_buckets:
            raise ValueError("min_buckets is larger than max_buckets")
        if self.merge_bytes * MARGIN > self.split_bytes:
            raise ValueError("merge_bytes must be at most a fourth of split_bytes")


class ResizedBuckets(Part, frozen=True, kw_only=True):
    """A bucket that is split, or neighbours that become one"""

    partition: Annotated[str, Spec("Path of the partition")]
    change: Annotated[str, Spec("`split` or `merge`", examples=("split",))]
    file_ids: Annotated[tuple[str, ...], Spec("File groups that are replaced")]
    bytes: Annotated[int, Spec("Size of these file groups in bytes")]
    because: Annotated[str, Spec("Why")]
    larger_share: Annotated[
        Number,
        Spec("After a split: the share of the rows or bytes, whichever is more, in the larger bucket", examples=(0.5,)),
    ] = UNSET

    @property
    def is_one_sided(self) -> bool:
        return self.larger_share is not UNSET and self.larger_share > ONE_SIDED


class BucketResizeResult(ReplacementResult, frozen=True, kw_only=True):
    changes: Annotated[Many[ResizedBuckets], Spec("What is split and merged: the first 100 changes")] = UNSET
    split: Annotated[Count, Spec("Buckets that were split into two")] = UNSET
    one_sided: Annotated[
        Count, Spec("Splits of no use, since more than 90 % of the rows or bytes went into one of the two buckets")
    ] = UNSET
    merged_away: Annotated[Count, Spec("Buckets that no longer exist, because they were merged with a neighbour")] = (
        UNSET
    )
    partitions: Annotated[Count, Spec("Partitions whose buckets were changed")] = UNSET
    proof: Annotated[Maybe[KeyProof], Spec("The comparison of the rows before and after")] = UNSET

    @property
    def has_gained(self) -> bool | None:
        is_useless = bool(self.one_sided) and self.one_sided == self.split and not self.merged_away
        return False if self.nothing_to_do is True or is_useless else None


KIND = Kind(
    JobKind.BUCKET_RESIZE,
    "Bucket resize",
    "Br",
    "Splits large buckets of a table with consistent hashing, and merges small ones.",
    BucketResizeParams,
    {"params": {}, "dry_run": True},
    policy=Policy(45, "When buckets of consistent hashing are split and merged", {"mode": "auto"}),
    works_on=WorksOn.EVERYTHING,
    rewrites=True,
    stops_flink=True,
    refuses_flink=True,
    needs_every_partition=True,
    audited=True,
    rolls_back_dead=True,
    waits_for_repair=True,
    result=BucketResizeResult,
)
