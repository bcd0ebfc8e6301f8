"""Delays further attempts of jobs of policies during pauses and outside of maintenance windows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from service.catalog.registration import Registration
from service.model.formatting import utc_minute
from service.policies import freeze_store, pause_store, windows
from service.policies.freeze import Freeze, lasting
from service.policies.policy import Pause, Policy
from service.policies.policy_registry import effective_of
from service.policies.precedence import Subject
from service.queue.job import Job

_WINDOW = "the next maintenance window"

LOOK_AGAIN = timedelta(seconds=15)
"""Time until the next check. A pause may end at any time, and a policy may change at any time."""


@dataclass(frozen=True)
class AttemptDelay:
    """Until when a job is held back, and why. `because` continues the words "waits for"."""

    until: datetime
    because: str


def delay_of(connection: Connection, job: Job, table: Registration, now: datetime) -> AttemptDelay | None:
    """Returns why a due job must not be retried now; None if it may be retried. A submitted job, or a job for which
    writers were stopped, may always be retried."""
    if job.reason is None or job.attempt == 0 or job.hand_over is not None:
        return None
    frozen = lasting(freeze_store.not_ended(connection, now), Subject.of(table), now)
    return standstill(pause_store.pause_of(connection), effective_of(connection, table).policy, now, frozen)


def standstill(pause: Pause | None, policy: Policy, now: datetime, frozen: Freeze | None = None) -> AttemptDelay | None:
    if pause:
        return AttemptDelay(
            now + LOOK_AGAIN, f"the end of the pause of all upkeep, since {utc_minute(pause.since)} by {pause.by}"
        )
    if policy.paused:
        return AttemptDelay(now + LOOK_AGAIN, "the end of the pause of this table's upkeep, by its policy")
    if frozen:
        return AttemptDelay(min(frozen.ends_at, now + LOOK_AGAIN), f"the end of a freeze: {frozen}")
    if policy.windows and windows.closes_at(policy.windows, policy.time_zone, now) is None:
        opens_at = windows.opens_at(policy.windows, policy.time_zone, now)
        until = now + LOOK_AGAIN if opens_at is None else min(opens_at, now + LOOK_AGAIN)
        return AttemptDelay(until, f"{_WINDOW}, at {utc_minute(opens_at) if opens_at else 'an unknown time'}")
    return None


def is_window(because: str) -> bool:
    """Returns whether a job is held back by its maintenance windows, not by a pause."""
    return because.startswith(_WINDOW)
