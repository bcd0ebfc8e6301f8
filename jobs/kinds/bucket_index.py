"""Bucket index: a table with another index, or none, gets a bucket index, or a table gives its bucket index up."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET

from jobs.contract import JobKind
from jobs.kinds.kind import Kind, WorksOn
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import Count, Many, ReplacementResult, Text, Texts, WriterOption
from jobs.kinds.words import HAND_OVER_SECONDS, WAIT_SECONDS, Codec, HandOverSeconds, Names


class BucketIndexParams(Parameters, frozen=True, kw_only=True):
    action: Annotated[
        Literal["adopt", "drop"],
        Spec(
            "`adopt` routes all rows to file groups of a bucket index, and commits them at once. `drop` gives the"
            " bucket index up: the rows stay in their files, and the logs of a merge-on-read table are compacted"
        ),
    ]
    num_buckets: Annotated[
        int | None,
        Spec(
            "Number of buckets of each partition. Default: so many that the largest partition has about 512 MiB in each"
            " bucket, a power of two",
            ge=1,
            le=1_000_000,
        ),
    ] = None
    hash_fields: Annotated[
        Names | None,
        Spec("The fields of the record key that are hashed (`hoodie.bucket.index.hash.field`). Default: all of them"),
    ] = None
    codec: Annotated[Codec | None, Spec("Compression of the new files. Default: the table's")] = None
    wait_seconds: Annotated[int, Spec("How long to wait for a moment without writes in flight", ge=0, le=86_400)] = (
        WAIT_SECONDS
    )
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS

    def __post_init__(self) -> None:
        given = [name for name in ("num_buckets", "hash_fields", "codec") if getattr(self, name) is not None]
        if self.action == "drop" and given:
            raise ValueError(f"`{given[0]}` is only for `adopt`")


class BucketIndexResult(ReplacementResult, frozen=True, kw_only=True):
    action: Annotated[Text, Spec("The action of the job")] = UNSET
    num_buckets: Annotated[Count, Spec("Number of buckets of each partition; absent after `drop`")] = UNSET
    hash_fields: Annotated[Texts, Spec("The fields of the record key that are hashed")] = UNSET
    partitions: Annotated[Count, Spec("Partitions of the table")] = UNSET
    bytes_of_largest_bucket: Annotated[
        Count, Spec("Expected size of a bucket in the largest partition, in bytes; only in a dry run")
    ] = UNSET
    misplaced: Annotated[Count, Spec("Rows that are not in the file group of their bucket; only in a dry run")] = UNSET
    writer_options: Annotated[
        Many[WriterOption], Spec("Options that every Spark writer needs afterwards, in place of those that it has now")
    ] = UNSET


KIND = Kind(
    JobKind.BUCKET_INDEX,
    "Bucket index",
    "Bi",
    "Gives a table with a Bloom, simple or no index a bucket index, or takes it back. The writers must be stopped.",
    BucketIndexParams,
    {"params": {"action": "adopt"}, "dry_run": True},
    works_on=WorksOn.EVERYTHING,
    rewrites=True,
    stops_flink=True,
    needs_every_partition=True,
    audited=True,
    rolls_back_dead=True,
    waits_for_repair=True,
    ends_with_instant=False,
    result=BucketIndexResult,
)
