"""The behaviour of a replacement beside writers, by a job's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobs.job_params import OnActiveWriters
from jobs.kinds.words import LOCK_SECONDS, WAIT_SECONDS

if TYPE_CHECKING:
    from jobs.kinds.words import ActiveWriterParams


@dataclass(frozen=True)
class ReplacementConfig:
    """The behaviour of a replacement beside writers.

    `wait_seconds` bounds the wait for a moment to commit, 0 means no wait.
    `lock_seconds` bounds the rewriting done while writers are kept waiting; more than that is done before, in another
    round. `may_leave_out`: changed slices that do not fit into that time may stay as they are. `needs_pause`: the state
    that the next starting writers have read matters. `writers_retry`: see `Writers`. `ignores_writers`: the replacement
    cannot harm any write in flight. `beside_plans`: the replacement leaves out the file groups of pending plans.
    """

    on_active_writers: OnActiveWriters = OnActiveWriters.WAIT
    wait_seconds: float = WAIT_SECONDS
    lock_seconds: float = LOCK_SECONDS
    may_leave_out: bool = False
    needs_pause: bool = False
    writers_retry: bool = False
    ignores_writers: bool = False
    beside_plans: bool = False

    @classmethod
    def of(cls, params: ActiveWriterParams, **more: bool) -> ReplacementConfig:
        """Returns the configuration by a job's parameters `on_active_writers`, `wait_seconds` and `lock_seconds`."""
        is_abort = params.on_active_writers is OnActiveWriters.ABORT
        wait = 0 if is_abort else params.wait_seconds
        return cls(params.on_active_writers, wait_seconds=wait, lock_seconds=params.lock_seconds, **more)
