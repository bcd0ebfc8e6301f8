"""The log bytes of a table from compaction to compaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from jobs.contract import JsonMapped

MOST_CYCLES = 8


@dataclass(frozen=True)
class Cycle(JsonMapped):
    """The period from one compaction to the next, as polls saw it. Sizes are those of all log files of the table
    together.

    `compacted_at` is when the compaction with which the period begins completed; None before the first compaction.
    `low_bytes` are the log bytes that this compaction left. `rises` is the number of successive polls, since
    `rising_since`, that each found more log bytes than the previous poll. `is_whole` says that polls saw the beginning
    of the period, so that `low_bytes` is right.
    """

    compacted_at: datetime | None
    low_bytes: int
    peak_bytes: int
    last_bytes: int
    rising_since: datetime
    rises: int = 0
    is_whole: bool = False


def extended(
    cycles: tuple[Cycle, ...], log_bytes: int, compacted_at: datetime | None, now: datetime
) -> tuple[Cycle, ...]:
    """Returns the cycles after a poll that found `log_bytes`, oldest first. At most the newest `MOST_CYCLES` are
    kept."""
    last = cycles[-1] if cycles else None
    if last is None or last.compacted_at != compacted_at:
        is_whole = last is not None or compacted_at is None
        return (*cycles, Cycle(compacted_at, log_bytes, log_bytes, log_bytes, now, is_whole=is_whole))[-MOST_CYCLES:]
    falls = log_bytes < last.last_bytes
    grown = replace(
        last,
        low_bytes=min(last.low_bytes, log_bytes),
        peak_bytes=max(last.peak_bytes, log_bytes),
        last_bytes=log_bytes,
        rising_since=now if falls else last.rising_since,
        rises=0 if falls else last.rises + (log_bytes > last.last_bytes),
    )
    return (*cycles[:-1], grown)
