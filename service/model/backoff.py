"""Delays before further attempts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from random import Random


@dataclass(frozen=True)
class BackOff:
    """Exponential delays from `first` to at most `most`, in seconds.

    Half of each delay is random ("equal jitter"), so jobs that failed at the same time, for example because the storage
    was down, do not retry at the same time.
    """

    first: float = 2.0
    most: float = 300.0
    factor: float = 2.0

    def delay(self, attempt: int, rng: Random) -> timedelta:
        """Returns the delay after the failure of attempt number `attempt`; the first attempt has the number 1."""
        # The exponent is limited, because a float overflows at 2**1024.
        full = min(self.most, self.first * self.factor ** min(max(attempt, 1) - 1, 64))
        return timedelta(seconds=full * (0.5 + rng.random() / 2))
