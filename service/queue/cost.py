"""The cost of an attempt at a job: what ended attempts have taken, and what the next attempt is expected to take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from jobs.kinds.results import NO_WORK, Work
from service.model.formatting import duration, size
from service.queue.circumstances import UNKNOWN, Circumstances

DEFAULT_SECONDS = 30.0


class CostPart(StrEnum):
    """A part of the cost that is learned. An ended attempt and its row in the database have members of these names. A
    worker's report has them too, except the seconds, which the service itself measures from the lease on."""

    SECONDS = "seconds"
    CPU_SECONDS = "cpu_seconds"
    BYTES_READ = "bytes_read"
    BYTES_WRITTEN = "bytes_written"

    @property
    def depends_on_circumstances(self) -> bool:
        """Whether a warm worker, or one without other jobs, needs less of this part."""
        return self in (CostPart.SECONDS, CostPart.CPU_SECONDS)

    @property
    def least(self) -> float:
        """Smaller amounts count as this one."""
        return 0.001 if self.depends_on_circumstances else 1.0

    @property
    def most(self) -> float:
        """An attempt that has taken more is an error of measurement."""
        return 366 * 86_400.0 if self is CostPart.SECONDS else 2.0**50


_WORDS: Mapping[CostPart, Callable[[float], str]] = {
    CostPart.CPU_SECONDS: lambda amount: f"{duration(amount) if amount >= 10 else f'{amount:.2g} s'} of CPU",
    CostPart.BYTES_READ: lambda amount: f"reads {size(amount)}",
    CostPart.BYTES_WRITTEN: lambda amount: f"writes {size(amount)}",
}


class Basis(StrEnum):
    """The source of an expected cost. All sources but `TABLE` make it a guess."""

    TABLE = "table"
    SHAPE = "shape"
    KIND = "kind"
    DEFAULT = "default"


class Range(NamedTuple):
    """An expected amount. Eight of ten attempts take from `low` to `high`."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Expected cost of an attempt, from its lease to its end. Eight of ten attempts take from `low` to `high` seconds.
    `gib` is the memory of the slot; it is 0 if workers do not report it. `further` has the other learned parts."""

    seconds: float
    low: float
    high: float
    basis: Basis
    gib: float = 0.0
    further: Mapping[CostPart, Range] = field(default_factory=dict)

    @property
    def is_guess(self) -> bool:
        return self.basis is not Basis.TABLE

    @property
    def gb_hours(self) -> Range:
        """GiB of memory times hours."""
        return Range(*(seconds * self.gib / 3600 for seconds in (self.seconds, self.low, self.high)))

    @property
    def text(self) -> str:
        """Returns words such as "about 40 s (35 s to 48 s), 31 s of CPU, reads 1.2 GiB, 0.022 GB-hours"."""
        further = "".join(f", {_WORDS[each](found.expected)}" for each, found in self.further.items())
        memory = f", {self.gb_hours.expected:.2g} GB-hours" if self.gib else ""
        return f"about {duration(self.seconds)} ({duration(self.low)} to {duration(self.high)}){further}{memory}"


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that has ended. `is_good` says that it succeeded. The duration of a failed attempt is only a lower
    bound for the job. None means unknown."""

    table_id: str
    kind: str
    dry_run: bool
    seconds: float
    work: Work = NO_WORK
    gib: float = 0.0
    is_good: bool = True
    cpu_seconds: float | None = None
    bytes_read: float | None = None
    bytes_written: float | None = None
    circumstances: Circumstances = UNKNOWN

    def took(self, part: CostPart) -> float | None:
        """Returns the amount; None if it is not known. A job that moved no bytes had nothing to do, so its bytes do not
        count as known."""
        found: float | None = getattr(self, part.value)
        if found is None or (not part.depends_on_circumstances and not found):
            return None
        return max(found, part.least)
