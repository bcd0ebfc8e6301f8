"""The objective of a table: the inputs of a decision by objective, other than the state of the table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from service.outcome.read_cost import ReadCost, ReadRates, ReadWork, read_cost
from service.outcome.reads import Reads
from service.policies.objective import ObjectiveSettings

if TYPE_CHECKING:
    from datetime import datetime

    from service.lake.snapshot import TableSnapshot

LEAD_SECONDS = 60.0


@dataclass(frozen=True)
class TableObjective:
    """The settings, and what is known about reads and costs. `lead_seconds` is the time from a decision to the end of
    its job."""

    settings: ObjectiveSettings = field(default_factory=ObjectiveSettings)
    rates: ReadRates = field(default_factory=ReadRates)
    reads: Reads = field(default_factory=Reads)
    oldest_log_at: datetime | None = None  # When the first commit after the last compaction completed.
    gb_hours: float = 0.0  # Cost of the table's jobs in the last 24 hours.
    spent_until: datetime | None = None  # When the first of these jobs no longer counts.
    overspent: str | None = None  # A clause about a spent budget that the table shares; None if no budget is spent.
    lead_seconds: float = LEAD_SECONDS

    def cost_of_reads(self, snapshot: TableSnapshot) -> ReadCost:
        return read_cost(ReadWork.of(snapshot), self.rates)

    def oldest(self, snapshot: TableSnapshot, now: datetime) -> datetime:
        """Returns about when the first log file was written, but not later than `now`, if a clock was set back."""
        return min(self.oldest_log_at or snapshot.since_compaction.at or snapshot.first_commit_at or now, now)
