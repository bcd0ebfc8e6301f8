"""The clocks. Code that depends on the time gets a clock as argument, so that tests can control the time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]

# The limit must be well below 20 %. A worker considers its lease lost after 80 % of the lease's time, and the service
# must not end the lease before that.
_MOST_CORRECTION = 0.1


def utc_now() -> datetime:
    """Returns the wall-clock time, as an aware datetime in UTC."""
    return datetime.now(UTC)


def elapsed() -> float:
    """Returns the seconds since some moment in the past. Setting the system's clock does not change the value. Time
    during which the machine was suspended counts, if the system can measure it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass(frozen=True)
class ClockReading:
    """The time of the service, and the time of the reference clock at the same moment."""

    at: datetime
    reference_at: datetime


class SteadyClock:
    """The clock of the service, for everything that the service plans, leases and records. Thread-safe.

    The clock follows a reference clock without jumps: it advances by the elapsed time, corrected by at most a tenth of
    the elapsed time. So nothing is due an hour early or late if somebody changes the reference by an hour. Intervals
    are up to a tenth shorter or longer until both clocks agree again.

    The clock continues from its `last` reading, which an earlier process has stored. The reference says how much time
    has passed since that reading; if the reference was set back meanwhile, no time has passed.
    """

    def __init__(
        self,
        reference: Clock = utc_now,
        elapsed: Callable[[], float] = elapsed,
        *,
        last: ClockReading | None = None,
    ) -> None:
        self._reference = reference
        self._elapsed = elapsed
        self._guard = threading.Lock()
        self._at = elapsed()
        now = reference()
        last = last or ClockReading(now, now)
        self._start = last.at
        # A float is used, because a datetime would lose the fractions of microseconds between two calls.
        self._seconds = 0.0
        self._advance(max(0.0, (now - last.reference_at).total_seconds()), now)

    def __call__(self) -> datetime:
        return self.read().at

    def read(self) -> ClockReading:
        with self._guard:
            at = self._elapsed()
            passed, self._at = at - self._at, at
            reference_at = self._reference()
            self._advance(passed, reference_at)
            return ClockReading(self._start + timedelta(seconds=self._seconds), reference_at)

    def _advance(self, passed: float, reference_at: datetime) -> None:
        self._seconds += passed
        behind = (reference_at - self._start).total_seconds() - self._seconds
        most = _MOST_CORRECTION * passed
        self._seconds += max(-most, min(behind, most))
