"""The clocks, passed in wherever time matters so that tests can control it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]

# A lease may not run out before its worker takes it for lost, which is after 80 % of its time.
_MOST_CORRECTION = 0.1


def utc_now() -> datetime:
    """Returns the wall-clock time, as an aware datetime in UTC."""
    return datetime.now(UTC)


def elapsed() -> float:
    """Returns seconds since some moment in the past. Setting the clock does not change them, and the time that the
    machine was suspended counts where the system can tell."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class SteadyClock:
    """The time of the service, for all that it plans, leases and records. It may be used from any thread.

    It follows a reference clock, but makes none of its steps: it advances by the elapsed time, corrected by a tenth of
    that at most. So when the reference is set by an hour, nothing is due an hour early or late. All intervals are up to
    a tenth shorter or longer until both agree again.
    """

    def __init__(self, reference: Clock = utc_now, elapsed: Callable[[], float] = elapsed) -> None:
        self._reference = reference
        self._elapsed = elapsed
        self._guard = threading.Lock()
        self._at = elapsed()
        self._start = reference()
        # A float, because a datetime would lose the fractions of microseconds between two calls.
        self._seconds = 0.0

    def __call__(self) -> datetime:
        with self._guard:
            at = self._elapsed()
            passed, self._at = at - self._at, at
            self._seconds += passed
            behind = (self._reference() - self._start).total_seconds() - self._seconds
            most = _MOST_CORRECTION * passed
            self._seconds += max(-most, min(behind, most))
            return self._start + timedelta(seconds=self._seconds)
