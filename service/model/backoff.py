"""How long to wait before the next attempt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True)
class BackOff:
    """Exponential, from `first` on, at most `most`, in seconds.

    Half of each delay is random ("equal jitter"): jobs that failed together, say because the storage was away, do not
    come back together, and none comes back at once.
    """

    first: float = 2.0
    most: float = 300.0
    factor: float = 2.0

    def delay(self, attempt: int, rng: Random) -> timedelta:
        """The wait after attempt `attempt` (1 is the first) failed."""
        # The exponent is bounded because a float overflows at 2**1024.
        full = min(self.most, self.first * self.factor ** min(max(attempt, 1) - 1, 64))
        return timedelta(seconds=full * (0.5 + rng.random() / 2))
