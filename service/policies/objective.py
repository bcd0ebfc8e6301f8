"""The objective of a table: limits on the cost of its reads and its storage, which replace the thresholds of table
services."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jobs.spec import Spec
from service.policies.settings import Mode, Section

# A limit below this multiple of the cost right after a job would make a job due after almost every commit.
_LEAST_FACTOR = 1.1
FACTOR_BEYOND_JOBS = 2.0
"""The multiple of the cost right after a job at which the next job is due, where jobs cannot keep `read_seconds`."""


@dataclass(frozen=True)
class ObjectiveSettings(Section):
    """Settings that determine when compaction, clustering and cleaning run. The thresholds of a table service apply
    only if no member concerns this service."""

    read_overhead: Annotated[
        float | None,
        Spec(
            "Highest cost of a read, divided by its cost right after a compaction (and a clustering, if that is "
            "on); or null",
            gt=1,
            le=1000,
        ),
    ] = None
    read_seconds: Annotated[
        float | None,
        Spec(
            "Highest cost of a read of all current rows, in processor seconds of a reader as the service estimates"
            " them; or null",
            gt=0,
            le=1_000_000,
        ),
    ] = None
    of_reads: Annotated[
        float | None,
        Spec(
            "Share of the reads that must not cost more than `read_overhead` and `read_seconds` allow, among the reads"
            " of all tables to which this pattern's policy applies; or null for all reads",
            gt=0,
            lt=1,
        ),
    ] = None
    log_age_seconds: Annotated[
        int | None, Spec("Longest time for which a log file may wait for a compaction; or null", ge=60, le=31_536_000)
    ] = None
    least_worth: Annotated[
        float | None,
        Spec(
            "A job that makes reads cheaper waits, for up to a day, until readers have paid this number of seconds "
            "for each second of its work; or null",
            gt=0,
            le=1_000_000,
        ),
    ] = None
    storage_overhead: Annotated[
        float | None,
        Spec("Highest size of all files, divided by the size of the files in use; or null", gt=1, le=1000),
    ] = None
    max_gb_hours_per_day: Annotated[
        float | None,
        Spec(
            "When the table's jobs have taken this many GB-hours in 24 hours, compaction, clustering and cleaning wait,"
            " even if other limits are exceeded; or null",
            gt=0,
            le=1_000_000,
        ),
    ] = None
    kept_percent: Annotated[
        float,
        Spec("Share of the time for which the objective is to be kept; the rest is the error budget", gt=0, lt=100),
    ] = 99.0

    @property
    def concerns_reads(self) -> bool:
        """Whether a member says when log files are merged."""
        return self.weighs_reads or self.log_age_seconds is not None

    @property
    def weighs_reads(self) -> bool:
        """Whether a member concerns the cost of reads, which also depends on small files."""
        return self.limits_reads or self.least_worth is not None

    @property
    def limits_reads(self) -> bool:
        """Whether a member limits the cost of a single read."""
        return self.read_overhead is not None or self.read_seconds is not None

    def is_beyond_jobs(self, least_seconds: float) -> bool:
        """Whether jobs cannot keep `read_seconds`, because a read costs nearly as much, or more, right after a job:
        `least_seconds`."""
        return self.read_seconds is not None and self.read_seconds < least_seconds * _LEAST_FACTOR

    def most_overhead(self, least_seconds: float) -> float | None:
        """Returns the highest allowed cost of a read, divided by its cost right after a job; None if no member limits
        it."""
        found = [] if self.read_overhead is None else [self.read_overhead]
        if self.read_seconds is not None and least_seconds > 0:
            is_beyond = self.is_beyond_jobs(least_seconds)
            found.append(FACTOR_BEYOND_JOBS if is_beyond else self.read_seconds / least_seconds)
        return min(found, default=None)

    @property
    def is_any(self) -> bool:
        """Whether any member concerns decisions."""
        return self.is_set or self.weighs_reads or self.max_gb_hours_per_day is not None

    @property
    def is_set(self) -> bool:
        """Whether there is an objective that can be kept or missed."""
        return self.limits_reads or self.log_age_seconds is not None or self.storage_overhead is not None


@dataclass(frozen=True)
class AdviceSettings(Section):
    """Advice about thresholds (`service.simulation.advice`). In the mode `auto` advice is applied without asking, and
    taken back if the outcome is worse than expected."""

    mode: Annotated[Mode, Spec("`suggest` only shows what the mode `auto` would do")] = Mode.SUGGEST
    read_overhead: Annotated[
        float,
        Spec(
            "A read may cost this many times what it costs right after a compaction, or a merge of small files, in 95 %"
            " of the time",
            gt=1,
            le=1000,
        ),
    ] = 1.2
    storage_overhead: Annotated[
        float | None,
        Spec(
            "All files may have this many times the size of those in use, in 95 % of the time; null: a tenth more than"
            " now",
            gt=1,
            le=1000,
        ),
    ] = None


@dataclass(frozen=True)
class BudgetSettings(Section):
    """Limits on the cost of jobs. All tables of the level that sets a member share this budget. Compaction, clustering
    and cleaning wait when the budget is spent. Days are days in UTC."""

    gb_hours_per_day: Annotated[
        float | None, Spec("GB-hours of all jobs of these tables in a day; or null", gt=0, le=100_000_000)
    ] = None
    worker_hours_per_day: Annotated[
        float | None, Spec("Hours of workers' slots that these jobs may take in a day; or null", gt=0, le=100_000_000)
    ] = None
    carry_over_days: Annotated[
        int, Spec("The unspent rest of this many earlier days may be spent today in addition", ge=0, le=31)
    ] = 1
