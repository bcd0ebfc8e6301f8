"""The clocks. Code that depends on the time gets a clock as argument, so that tests can control it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]

# The limit must be well below 20 %, because a worker considers its lease lost after 80 % of its time, and the lease
# must not expire before.
_MOST_CORRECTION = 0.1


def utc_now() -> datetime:
    """Returns the wall-clock time, as an aware datetime in UTC."""
    return datetime.now(UTC)


def elapsed() -> float:
    """Returns seconds since some moment in the past. The value does not change when the clock is set. Time for which
    the machine was suspended counts if the system can measure it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass(frozen=True)
class ClockReading:
    """The time of the service, and the time of the clock that it follows, both at the same moment."""

    at: datetime
    reference_at: datetime


class SteadyClock:
    """The time of the service, for everything that it plans, leases and records. Thread-safe.

    The clock follows a reference clock without jumps: it advances by the elapsed time, corrected by at most a tenth of
    that. So if the reference is set by an hour, nothing is due an hour early or late; intervals are up to a tenth
    shorter or longer until both clocks agree again.

    The clock continues from its `last` reading, which an earlier process has stored. The time since then comes from the
    reference; if the reference was set back meanwhile, it counts as zero.
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
        # A float, because a datetime would lose the fractions of microseconds between two calls.
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
