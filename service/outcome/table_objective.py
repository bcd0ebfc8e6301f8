"""The objective of a table: the inputs of a decision by objective, other than the state of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jobs.contract import JobKind
from service.lake.snapshot import TableSnapshot
from service.outcome.gain import Gain, gain_of
from service.outcome.read_cost import ReadCost, ReadRates, ReadWork, read_cost
from service.outcome.reads import Reads
from service.policies.objective import ObjectiveSettings

LEAD_SECONDS = 60.0

UNREAD_FOR = timedelta(days=1)
"""How long logs wait on a table that hardly anybody seems to read. The wait has an end, because reads may be
unknown."""


@dataclass(frozen=True)
class TableObjective:
    """The settings, and what is known about reads and costs. `lead_seconds` is the time from a decision to the end of
    its job. `work_seconds` has the expected time of a job of each kind that makes reads cheaper."""

    settings: ObjectiveSettings = field(default_factory=ObjectiveSettings)
    rates: ReadRates = field(default_factory=ReadRates)
    reads: Reads = field(default_factory=Reads)
    oldest_log_at: datetime | None = None  # When the first commit after the last compaction completed.
    gb_hours: float = 0.0  # Cost of the table's jobs in the last 24 hours.
    spent_until: datetime | None = None  # When the first of these jobs no longer counts.
    overspent: str | None = None  # A clause about a spent budget that the table shares; None if no budget is spent.
    lead_seconds: float = LEAD_SECONDS
    work_seconds: Mapping[JobKind, float] = field(default_factory=dict)

    def cost_of_reads(self, snapshot: TableSnapshot) -> ReadCost:
        return read_cost(ReadWork.of(snapshot), self.rates)

    def oldest(self, snapshot: TableSnapshot, now: datetime) -> datetime:
        """Returns about when the first log file was written, but not later than `now`, if a clock was set back."""
        return min(self.oldest_log_at or snapshot.since_compaction.at or snapshot.first_commit_at or now, now)

    def gain(self, kind: JobKind, snapshot: TableSnapshot) -> Gain | None:
        """Returns the expected gain of a job; None for kinds that do not make reads cheaper."""
        return gain_of(kind, self.cost_of_reads(snapshot), self.reads)

    def age(self, kind: JobKind, snapshot: TableSnapshot, now: datetime) -> float:
        """Returns the seconds since which reads become dearer: since the first log file, or the last clustering."""
        if kind is JobKind.COMPACTION:
            since = self.oldest(snapshot, now)
        else:
            since = snapshot.since_clustering.at or snapshot.first_commit_at or now
        return (now - since).total_seconds()

    def worth(self, kind: JobKind, snapshot: TableSnapshot, now: datetime) -> float:
        """Returns what readers have paid since then, for each second of the job's work."""
        gain = self.gain(kind, snapshot)
        work = self.work_seconds.get(kind, self.lead_seconds)
        return gain.paid_per_second(self.age(kind, snapshot, now), work) if gain else 0.0

    def is_worth_it(self, kind: JobKind, snapshot: TableSnapshot, now: datetime) -> bool:
        """Returns whether the job is worth its work by `least_worth`. After a day each job is that saves anything."""
        least, gain = self.settings.least_worth, self.gain(kind, snapshot)
        if least is None or gain is None or gain.seconds_per_read <= 0:
            return least is None
        is_old = self.age(kind, snapshot, now) >= UNREAD_FOR.total_seconds()
        return is_old or self.worth(kind, snapshot, now) >= least
