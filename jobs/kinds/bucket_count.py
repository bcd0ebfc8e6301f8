"""Bucket count: a table with a bucket index gets any number of buckets."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from msgspec import UNSET

from jobs.contract import JobKind
from jobs.kinds import bucket_expansion
from jobs.kinds.bucket_expansion import RescaleParams, RescaleResult
from jobs.kinds.parameters import Spec
from jobs.kinds.results import EstimatedCost, Many, Text

AnyWay = Literal["auto", "one_rehash", "through_multiple"]


class BucketCountParams(RescaleParams, frozen=True, kw_only=True):
    num_buckets: Annotated[
        int,
        Spec("The new number; partitions that have it already are left unchanged", ge=1, le=1_000_000),
    ]
    way: Annotated[
        AnyWay,
        Spec(
            "`one_rehash`: a task reads all old buckets whose rows go to its new buckets. `through_multiple`: each old"
            " bucket is split first, so that more tasks share the work, but rows are written twice. `auto`: the"
            " cheaper of the two ways, which a dry run shows in `ways`"
        ),
    ] = "auto"


class RehashWay(EstimatedCost, frozen=True, kw_only=True):
    """A way to the new number, and what it would cost"""

    way: Annotated[str, Spec("Name of the way")]
    cost: Annotated[float, Spec("Time on this worker's cores in relation to the cheapest way")]


class BucketCountResult(RescaleResult, frozen=True, kw_only=True):
    way: Annotated[Text, Spec("The way that the job takes")] = UNSET
    ways: Annotated[Many[RehashWay], Spec("What each way would cost, the cheapest first; only in a dry run")] = UNSET


KIND = replace(
    bucket_expansion.KIND,
    kind=JobKind.BUCKET_COUNT,
    title="Bucket count",
    letters="Bn",
    summary="Gives a bucket-indexed table any number of buckets, also one without a common divisor, without a shuffle.",
    params=BucketCountParams,
    example={"params": {"num_buckets": 7}, "dry_run": True},
    policy=None,
    result=BucketCountResult,
)
