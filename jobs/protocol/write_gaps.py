"""Predicts when the next write starts, by the gaps between the last writes."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

RECENT = timedelta(minutes=10)
GAPS = 5
NEVER = float("inf")


def quiet_seconds(writes: Sequence[tuple[datetime, datetime]], now: datetime) -> float:
    """Returns the seconds since a write completed, `NEVER` if none has."""
    return max((now - max(end for _, end in writes)).total_seconds(), 0.0) if writes else NEVER


def seconds_until_next_write(writes: Sequence[tuple[datetime, datetime]], now: datetime) -> float:
    """Returns the seconds in which no write is expected to start, `NEVER` when none is expected at all.

    `writes` are start and completion of completed writes, in any order; none may be in flight at `now`. Until the
    shortest of the recent gaps has passed, the result is its remainder. After twice the longest gap the writer is taken
    to have stopped. In between a write may start at any moment.
    """
    recent = sorted(write for write in writes if now - write[1] <= RECENT)
    gaps = [(after[0] - before[1]).total_seconds() for before, after in pairwise(recent)][-GAPS:]
    if not gaps:
        return NEVER
    quiet_for = quiet_seconds(recent, now)
    if quiet_for < min(gaps):
        return min(gaps) - quiet_for
    return NEVER if quiet_for > 2 * max(*gaps, 0.5) else 0.0
