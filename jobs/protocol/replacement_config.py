"""The behaviour of a replacement beside writers, by a job's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs.job_params import OnActiveWriters

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_WAIT_SECONDS = 300.0
DEFAULT_LOCK_SECONDS = 20.0


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
    wait_seconds: float = DEFAULT_WAIT_SECONDS
    lock_seconds: float = DEFAULT_LOCK_SECONDS
    may_leave_out: bool = False
    needs_pause: bool = False
    writers_retry: bool = False
    ignores_writers: bool = False
    beside_plans: bool = False

    @classmethod
    def of(cls, params: Mapping[str, Any], **more: bool) -> ReplacementConfig:
        """Returns the configuration by a job's parameters `on_active_writers`, `wait_seconds` and `lock_seconds`."""
        policy = OnActiveWriters(params.get("on_active_writers", OnActiveWriters.WAIT))
        wait = float(params.get("wait_seconds", DEFAULT_WAIT_SECONDS))
        return cls(
            policy,
            wait_seconds=0.0 if policy is OnActiveWriters.ABORT else wait,
            lock_seconds=float(params.get("lock_seconds", DEFAULT_LOCK_SECONDS)),
            **more,
        )
