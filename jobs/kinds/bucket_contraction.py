"""Bucket contraction: a table with a bucket index gets fewer buckets."""

from __future__ import annotations

from typing import Annotated

from jobs.contract import JobKind
from jobs.kinds.bucket_expansion import RescaleParams, RescaleResult
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import Spec


class BucketContractionParams(RescaleParams, frozen=True, kw_only=True):
    """Exactly one of `num_buckets` and `factor`."""

    num_buckets: Annotated[
        int | None,
        Spec(
            "The new number, a divisor of the current one; partitions that have it are left alone", ge=1, le=1_000_000
        ),
    ] = None
    factor: Annotated[
        int | None, Spec("The current number as a multiple of the new one, in each of the partitions", ge=2, le=1024)
    ] = None


KIND = Kind(
    JobKind.BUCKET_CONTRACTION,
    "Bucket contraction",
    "Ct",
    "Gives a bucket-indexed table fewer buckets: the files of several become one, without a shuffle.",
    BucketContractionParams,
    {"params": {"num_buckets": 4}, "dry_run": True},
    module="bucket_rescale",
    policy=Policy(50, "When a table gets fewer buckets", {"mode": "suggest"}),
    rewrites=True,
    stops_flink=True,
    changes_bucket_number=True,
    needs_every_partition=True,
    audited=True,
    rolls_back_dead=True,
    waits_for_repair=True,
    result=RescaleResult,
)
