"""The settings of a policy about the buckets of consistent hashing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jobs.job_params import OnActiveWriters  # noqa: TC001 - the API reads it at run time
from jobs.kinds.bucket_resize import BucketResizeParams
from jobs.kinds.parameters import Spec
from service.policies.settings import MIB, Cron, Interval, Mode, Section, SuggestOr

_RESIZE = BucketResizeParams()


@dataclass(frozen=True)
class ResizeSettings(Section):
    """Resizes a table with consistent hashing when a bucket has more than `split_bytes`, or two neighbours have at most
    `merge_bytes` each. If `cron` is set, sizes are checked only at its times."""

    params = BucketResizeParams

    mode: SuggestOr = Mode.OFF
    split_bytes: Annotated[int, Spec("Parameter of the job", ge=MIB, lt=2**53)] = _RESIZE.split_bytes
    merge_bytes: Annotated[int, Spec("Parameter of the job; 0: none is merged", ge=0, lt=2**53)] = _RESIZE.merge_bytes
    min_buckets: int = _RESIZE.min_buckets
    max_buckets: int = _RESIZE.max_buckets
    cron: Cron = None
    min_interval_seconds: Interval = 86_400
    on_active_writers: OnActiveWriters = _RESIZE.on_active_writers
    wait_seconds: int = _RESIZE.wait_seconds
    lock_seconds: int = _RESIZE.lock_seconds
    hand_over_seconds: int = _RESIZE.hand_over_seconds
