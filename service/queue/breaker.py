"""The breaker of a table and a kind of job delays failing work, so that it takes few slots from other tables. A breaker
is closed if the last attempt succeeded. A failed attempt opens it: the next attempt waits until all failing work of the
worker group has had at most a tenth of the slots. After that wait the breaker is half open for one attempt, which
closes or opens it again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

from jobs.contract import JobKind, Problem
from jobs.spec import Spec
from service.model.formatting import count, duration
from service.model.record import Record
from service.queue.job import AttemptOutcome, Job

SHARE = 10
"""Failing work gets at most one of this many slot-seconds."""

MOST = timedelta(hours=1)
IDLE = timedelta(minutes=1)
"""`MOST` is the longest pause while other jobs wait for a slot. `IDLE` is the longest pause after a first failure while
no other job waits."""

_DOUBLED = 5
"""The largest number of times that a pause is doubled. After that many doublings, `IDLE` has grown to half of `MOST`.
"""

REMEMBERED = timedelta(hours=24)
"""Failures are forgotten after this time without a further attempt."""

COUNTED = timedelta(hours=2)
"""Time after the last failure for which a breaker counts as failing work. This time is longer than any pause."""

NOT_ITS_FAULT = frozenset({"no-executors"})
"""Types of errors that a worker reports and that are not the table's fault."""


class BreakerState(StrEnum):
    """The states of a breaker. A closed one is not stored."""

    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True)
class Breaker(Record):
    """A breaker that is not closed."""

    table_id: str
    kind: JobKind
    worker_group: str
    failures: Annotated[int, Spec("Failed attempts in a row", examples=(2,))]
    seconds: float  # Total time for which these attempts had a slot.
    since: Annotated[datetime, Spec("End of the first failed attempt")]
    failed_at: datetime  # The end of the last failed attempt.
    next_try_at: Annotated[datetime, Spec("When an attempt may start again")]
    error: Problem | None = None  # The error of the last failed attempt.

    def state(self, now: datetime) -> BreakerState:
        return BreakerState.OPEN if now < self.next_try_at else BreakerState.HALF_OPEN

    def put_off(self, pressure: Pressure) -> datetime:
        """Returns when the next attempt may start under this pressure on the slots. An attempt that somebody has
        requested may start at once; `next_try_at` is then the time of the failure."""
        if self.next_try_at <= self.failed_at or not pressure.others_wait:
            return self.next_try_at
        return max(self.next_try_at, self.failed_at + _pause(self.seconds / self.failures, self.failures, pressure))

    def sentence(self, now: datetime) -> str:
        """Returns a sentence without a full stop about the failures and the next attempt."""
        name = self.kind.value.replace("_", " ")
        wait = f", next try in {duration(self.next_try_at - now)}" if now < self.next_try_at else ""
        return (
            f"{count(self.failures, 'attempt')} of {name} failed in a row and took {self.seconds:.0f} s of a slot{wait}"
        )


@dataclass(frozen=True)
class Pressure:
    """How scarce the slots of a worker group are."""

    failing: int = 0  # The group's other breakers that are not closed.
    slots: int = 1  # Slots of living workers.
    others_wait: bool = True  # Whether any job of the group is due, or others have needed all slots recently.


def counts_as_failure(outcome: AttemptOutcome, error: Problem | None, *, refused: bool) -> bool:
    """Returns whether an attempt counts as a failure of its table. A refused attempt does not."""
    is_bad = outcome in (AttemptOutcome.FAILED, AttemptOutcome.UNKNOWN, AttemptOutcome.LOST)
    return is_bad and not refused and not (error and error.type in NOT_ITS_FAULT)


def after_failure(
    before: Breaker | None,
    job: Job,
    *,
    outcome: AttemptOutcome,
    error: Problem | None,
    pressure: Pressure,
    now: datetime,
) -> Breaker:
    """Returns the breaker after a failed attempt. `job` is the job as it was leased."""
    if before is not None and now - before.failed_at > REMEMBERED:
        before = None
    seconds = slot_seconds(job, now)
    failures = (before.failures if before else 0) + 1
    pause = _pause(seconds, failures, pressure)
    if outcome is AttemptOutcome.LOST and not pressure.others_wait:
        # The next attempt may start at once, to clean up what this one has left behind.
        pause = timedelta()
    elif outcome is AttemptOutcome.LOST and before is None:
        # Workers are lost occasionally, which is usually not the table's fault.
        pause = min(pause, IDLE)
    return Breaker(
        table_id=job.table_id,
        kind=job.kind,
        worker_group=job.worker_group,
        failures=failures,
        seconds=(before.seconds if before else 0.0) + seconds,
        since=before.since if before else now,
        failed_at=now,
        next_try_at=now + pause,
        error=error,
    )


def slot_seconds(job: Job, now: datetime) -> float:
    """Returns for how long this attempt has had its slot."""
    return max(0.0, (now - job.leased_at).total_seconds()) if job.leased_at else 0.0


def _pause(seconds: float, failures: int, pressure: Pressure) -> timedelta:
    """Returns a pause so long that all failing tables together get a tenth of the slots, if each fails like this one.
    Each further failure in a row doubles the pause, because the next attempt is unlikely to succeed."""
    tries = SHARE * (pressure.failing + 1) / max(pressure.slots, 1)
    longer = 2 ** min(failures - 1, _DOUBLED)
    pause = min(seconds * max(tries - 1, 0.0) * longer, MOST.total_seconds())
    return timedelta(seconds=pause if pressure.others_wait else min(pause, IDLE.total_seconds() * longer))
