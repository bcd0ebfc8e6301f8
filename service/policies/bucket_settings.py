"""The settings of the policies that change numbers of buckets (`service.policies.settings`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jobs.job_params import OnActiveWriters
from jobs.kinds.bucket_contraction import BucketContractionParams
from jobs.kinds.bucket_expansion import BucketExpansionParams, RescaleParams
from jobs.kinds.bucket_resize import BucketResizeParams
from jobs.kinds.parameters import Spec
from service.policies.settings import GIB, MIB, Cron, Interval, Mode, Section, SuggestOr

_EXPANSION = BucketExpansionParams(factor=2)
_RESIZE = BucketResizeParams()


@dataclass(frozen=True)
class RescaleSettings(Section):
    """Settings that bucket expansion and contraction share. If `cron` is set, sizes are checked only at the times of
    this expression."""

    params = RescaleParams

    mode: SuggestOr = Mode.OFF
    cron: Cron = None
    min_interval_seconds: Interval = 86_400
    on_active_writers: OnActiveWriters = _EXPANSION.on_active_writers
    wait_seconds: int = _EXPANSION.wait_seconds
    lock_seconds: int = _EXPANSION.lock_seconds
    hand_over_seconds: int = _EXPANSION.hand_over_seconds
    settle_seconds: int = _EXPANSION.settle_seconds
    codec: str | None = None


@dataclass(frozen=True)
class ExpansionSettings(RescaleSettings):
    """Expands partitions with a bucket of more than `max_bucket_bytes`, base file and log files together."""

    params = BucketExpansionParams

    mode: SuggestOr = Mode.SUGGEST
    max_bucket_bytes: Annotated[int, Spec("Size limit of the largest bucket", ge=MIB, lt=2**53)] = 3 * GIB


@dataclass(frozen=True)
class ContractionSettings(RescaleSettings):
    """Contracts partitions whose average bucket has less than `min_bucket_bytes`, base file and log files together.
    This is off by default, because a partition that is still being filled is small too."""

    params = BucketContractionParams

    min_interval_seconds: Interval = 7 * 86_400
    min_bucket_bytes: Annotated[
        int, Spec("The average bucket of a partition is too small if it has fewer bytes", ge=1024, lt=2**53)
    ] = 32 * MIB


@dataclass(frozen=True)
class ResizeSettings(Section):
    """Resizes a table with consistent hashing when a bucket has more than `split_bytes`, or two neighbours have at most
    `merge_bytes` each. If `cron` is set, sizes are checked only at the times of this expression."""

    params = BucketResizeParams

    mode: SuggestOr = Mode.OFF
    split_bytes: Annotated[int, Spec("Parameter of the job", ge=MIB, lt=2**53)] = _RESIZE.split_bytes
    merge_bytes: Annotated[int, Spec("Parameter of the job; 0: no bucket is merged", ge=0, lt=2**53)] = (
        _RESIZE.merge_bytes
    )
    min_buckets: int = _RESIZE.min_buckets
    max_buckets: int = _RESIZE.max_buckets
    cron: Cron = None
    min_interval_seconds: Interval = 86_400
    on_active_writers: OnActiveWriters = _RESIZE.on_active_writers
    wait_seconds: int = _RESIZE.wait_seconds
    lock_seconds: int = _RESIZE.lock_seconds
