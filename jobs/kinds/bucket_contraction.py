"""Bucket contraction: a table with a bucket index gets fewer buckets."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from jobs.contract import JobKind
from jobs.kinds import bucket_expansion
from jobs.kinds.bucket_expansion import MultipleParams
from jobs.kinds.kind import Policy
from jobs.kinds.parameters import Spec


class BucketContractionParams(MultipleParams, frozen=True, kw_only=True):
    """Exactly one of `num_buckets` and `factor`."""

    num_buckets: Annotated[
        int | None,
        Spec(
            "The new number, a divisor of the current one; partitions that have it already are left unchanged",
            ge=1,
            le=1_000_000,
        ),
    ] = None
    factor: Annotated[int | None, Spec("How many buckets become one, in each of the partitions", ge=2, le=1024)] = None


KIND = replace(
    bucket_expansion.KIND,
    kind=JobKind.BUCKET_CONTRACTION,
    title="Bucket contraction",
    letters="Ct",
    summary="Gives a bucket-indexed table fewer buckets: files of several buckets become one, without a shuffle.",
    params=BucketContractionParams,
    example={"params": {"num_buckets": 4}, "dry_run": True},
    policy=Policy(50, "When a table gets fewer buckets", {"mode": "suggest"}),
)
