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
    """The behaviour of a replacement beside writers."""

    on_active_writers: OnActiveWriters = OnActiveWriters.WAIT
    wait_seconds: float = WAIT_SECONDS  # Longest wait for a moment to commit; 0 is no wait.
    # Longest rewriting while writers are kept waiting; more than that is done before, in another round.
    lock_seconds: float = LOCK_SECONDS
    may_leave_out: bool = False  # Changed slices that do not fit into that time may stay as they are.
    needs_pause: bool = False  # The state that the next starting writers have read matters.
    writers_retry: bool = False  # See `Writers`.
    ignores_writers: bool = False  # The replacement cannot harm any write in flight.
    beside_plans: bool = False  # The replacement leaves out the file groups of pending plans.

    @classmethod
    def of(cls, params: ActiveWriterParams, **more: bool) -> ReplacementConfig:
        """Returns the configuration by a job's parameters `on_active_writers`, `wait_seconds` and `lock_seconds`."""
        is_abort = params.on_active_writers is OnActiveWriters.ABORT
        wait = 0 if is_abort else params.wait_seconds
        return cls(params.on_active_writers, wait_seconds=wait, lock_seconds=params.lock_seconds, **more)
