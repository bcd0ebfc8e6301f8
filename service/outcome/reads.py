"""The frequency of a table's reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

DEFAULT_PER_DAY = 24.0
"""A table whose reads are unknown is assumed to have this many reads a day, if the reads of too few other tables are
known."""

SEEN_FOR = timedelta(days=7)
"""A read counts for this time."""

_HALF_LIFE_HOURS = 24.0
# The rate is computed over at least this time, because the reads of the first hours say little.
_LEAST_HOURS = 6.0
# A table with fewer reads a day counts as not read.
_NEXT_TO_NEVER = 0.1


class ReadSource(StrEnum):
    """Where the frequency of reads comes from. The owner's declaration takes precedence over observed reads."""

    OWNER = "owner"
    LINEAGE = "lineage"
    SPARK_LOGS = "spark_logs"
    CONSUMERS = "consumers"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Reads:
    """A table's reads."""

    per_day: float = DEFAULT_PER_DAY
    source: ReadSource = ReadSource.ASSUMED
    of_tables: int = 0  # The number of tables whose median is assumed; 0 for a constant.

    @property
    def is_known(self) -> bool:
        return self.source is not ReadSource.ASSUMED

    @property
    def have_stopped(self) -> bool:
        """Whether it is known, from the owner or from earlier reads, that the table is not read any more."""
        return self.is_known and self.per_day < _NEXT_TO_NEVER

    @property
    def text(self) -> str:
        """Returns words such as "reads unknown: 24 a day assumed"."""
        if not self.is_known:
            of_others = f", the median of {self.of_tables} tables" if self.of_tables else ""
            return f"reads unknown: {self.per_day:.3g} a day assumed{of_others}"
        return f"{self.per_day:.3g} reads a day ({_WORDS[self.source]})"


_WORDS = {
    ReadSource.OWNER: "as its owner says",
    ReadSource.LINEAGE: "by OpenLineage",
    ReadSource.SPARK_LOGS: "by Spark's event logs",
    ReadSource.CONSUMERS: "by its consumers",
}


def reads_of(declared: float | None, seen: Mapping[ReadSource, Mapping[int, int]]) -> Reads:
    """Returns the reads of a table. `declared` is the number of reads a day that its owner has declared. `seen` are the
    reads by source and age in hours.

    Several sources may report the same reads, so the largest number counts. The weight of a read halves with each day.
    """
    if declared is not None:
        return Reads(declared, ReadSource.OWNER)
    rates = {source: _rate(hours) for source, hours in seen.items() if hours}
    if not rates:
        return Reads()
    source = max(rates, key=lambda each: (rates[each], each))
    return Reads(rates[source], source)


def _rate(hours: Mapping[int, int]) -> float:
    """Returns the reads a day: the weighted number of reads, divided by the sum of the weights of all hours since the
    first read."""
    decay = math.log(2) / _HALF_LIFE_HOURS
    # Ages are negative after a clock was set back.
    weighted = sum(number * math.exp(-decay * max(0, age)) for age, number in hours.items())
    observed = max(_LEAST_HOURS, max(hours) + 1.0)
    return 24 * weighted * decay / (1 - math.exp(-decay * observed))
