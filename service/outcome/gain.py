"""The gain of a job: what it saves readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobs.contract import JobKind
from service.model.formatting import duration

if TYPE_CHECKING:
    from service.outcome.read_cost import ReadCost
    from service.outcome.reads import Reads


@dataclass(frozen=True, slots=True)
class Gain:
    """What a job saves: processor seconds in each read of the whole table, and in all reads of an hour."""

    seconds_per_read: float
    seconds_per_hour: float

    def text(self, work_seconds: float | None) -> str:
        """Returns words such as "saves 3.1 reader-minutes an hour for 8 s of work"."""
        saved = f"saves {self.seconds_per_hour / 60:.2g} reader-minutes an hour"
        return f"{saved} for {duration(work_seconds)} of work" if work_seconds else saved

    def per_second(self, work_seconds: float) -> float:
        """Returns the seconds an hour that each second of work saves."""
        return self.seconds_per_hour / max(work_seconds, 0.001)


def gain_of(kind: JobKind, cost: ReadCost, reads: Reads) -> Gain | None:
    """Returns the expected gain; None for kinds that do not make reads cheaper."""
    match kind:
        case JobKind.COMPACTION:
            saved = cost.now - cost.compacted
        case JobKind.CLUSTERING:
            saved = cost.compacted - cost.merged
        case _:
            return None
    return Gain(saved, saved * reads.per_day / 24)
