"""The outcome of a simulated period, or of a real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from jobs.contract import JobKind
from jobs.spec import Documented, Spec


@dataclass(slots=True)
class Sums:
    """The time and cost of jobs until now."""

    jobs: int = 0
    seconds: float = 0.0
    gib_seconds: float = 0.0


@dataclass(frozen=True)
class KindOutcome(Documented):
    """The jobs of one kind."""

    kind: JobKind
    jobs: Annotated[int, Spec("Jobs that succeeded", examples=(412,))]
    seconds: Annotated[float, Spec("Time that workers spent on these jobs", examples=(5400.0,))]
    gb_hours: Annotated[float, Spec("This time in hours, times the memory of a slot in GiB", examples=(3.0,))]


@dataclass(frozen=True)
class Point(Documented):
    """The sums over all tables at one time."""

    at: Annotated[datetime, Spec("Time", examples=("2026-01-01T12:00:00Z",))]
    log_bytes: Annotated[int, Spec("Log files that wait for a compaction", examples=(5 << 30,))]
    base_bytes: Annotated[int, Spec("Size of the base files", examples=(50 << 30,))]
    freed_bytes: Annotated[int, Spec("Size of files that are out of use", examples=(1 << 30,))]
    read_overhead: Annotated[
        float, Spec("Cost of a read of all tables, divided by the cost right after compactions", examples=(1.08,))
    ]
    small_file_overhead: Annotated[
        float,
        Spec("Cost of a read right after compactions, divided by the cost with small files merged", examples=(1.02,)),
    ] = 1.0

    @property
    def storage_overhead(self) -> float:
        """The size of all files, divided by that of the files in use."""
        return 1 + self.freed_bytes / max(1, self.base_bytes + self.log_bytes)


@dataclass(frozen=True)
class TableOutcome:
    """The outcome of one table. `overhead` is the read overhead that was not exceeded in 95 % of the time.
    `logs_seconds` are the processor seconds that logs added to a read on average."""

    id: str
    jobs: int
    seconds: float
    gb_hours: float
    overhead: float
    logs_seconds: float = 0.0
    kept: float | None = None  # The share of the time for which its objective was kept; None without one.


@dataclass(frozen=True)
class Outcome:
    """The outcome of a real or a simulated period. `rewritten_bytes` are the bytes of base files that jobs wrote.
    `longest_wait` is the longest time for which a due job waited for a slot, in seconds; None if it is not known."""

    kinds: Sequence[KindOutcome] = ()
    points: Sequence[Point] = ()
    rewritten_bytes: int = 0
    longest_wait: float | None = None
    tables: Mapping[str, TableOutcome] = field(default_factory=dict)
    kept: float | None = None  # The share of the time for which objectives were kept, of all tables that have one.

    @property
    def jobs(self) -> int:
        return sum(each.jobs for each in self.kinds)

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.kinds)

    @property
    def gb_hours(self) -> float:
        return sum(each.gb_hours for each in self.kinds)

    @property
    def read_overhead(self) -> float | None:
        """The read overhead that was not exceeded in 95 % of the time."""
        return percentile([each.read_overhead for each in self.points])

    @property
    def small_file_overhead(self) -> float | None:
        return percentile([each.small_file_overhead for each in self.points])

    @property
    def storage_overhead(self) -> float | None:
        return percentile([each.storage_overhead for each in self.points])


def percentile(values: Sequence[float]) -> float | None:
    """Returns the smallest value that at least 95 % of the values do not exceed; None without values."""
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))] if values else None
