"""The settings of a replacement while writers are active, from a job's parameters."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.format.bucket_rules import BucketRules
from jobs.job_params import OnActiveWriters
from jobs.kinds.words import LOCK_SECONDS, WAIT_SECONDS, ReplacingParams


@dataclass(frozen=True)
class ReplacementConfig:
    on_active_writers: OnActiveWriters = OnActiveWriters.WAIT
    wait_seconds: float = WAIT_SECONDS  # Longest wait for a moment to commit; 0 means no wait.
    # Longest time of rewriting while writers wait. If there is more work, another round without the lock comes first.
    lock_seconds: float = LOCK_SECONDS
    may_leave_out: bool = False  # Changed slices that do not fit into `lock_seconds` may be left out.
    needs_pause: bool = False  # The next writers must have read the new state, so the commit needs a pause of writes.
    writers_retry: bool = False  # See `Writers`.
    ignores_writers: bool = False  # The replacement cannot harm any write in flight.
    starts_alone: bool = False  # The replacement also starts at a moment without a write in flight.
    beside_plans: bool = False  # The replacement leaves out the file groups of pending plans.
    rules: BucketRules | None = None  # Rows are put into buckets by these numbers, so nobody may change them meanwhile.

    @classmethod
    def of(cls, params: ReplacingParams, *, rules: BucketRules | None = None, **more: bool) -> ReplacementConfig:
        """Returns the configuration by a job's parameters `on_active_writers`, `wait_seconds` and `lock_seconds`."""
        is_abort = params.on_active_writers is OnActiveWriters.ABORT
        wait = 0 if is_abort else params.wait_seconds
        return cls(params.on_active_writers, wait_seconds=wait, lock_seconds=params.lock_seconds, rules=rules, **more)
