"""The objective of a table, with the other inputs of a decision by objective besides the state of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jobs.contract import JobKind
from service.lake.snapshot import TableSnapshot
from service.outcome.gain import Gain, gain_of
from service.outcome.read_cost import ReadCost, ReadRates, ReadWork, read_cost
from service.outcome.read_share import CostlyTable, ReadShare
from service.outcome.reads import Reads
from service.policies.objective import ObjectiveSettings

LEAD_SECONDS = 60.0

UNREAD_FOR = timedelta(days=1)
"""Logs of a table that hardly anybody seems to read wait for at most this time. The wait has an end, because some reads
may be unknown."""


@dataclass(frozen=True)
class TableObjective:
    """The settings, and what is known about reads and costs. `lead_seconds` is the time from a decision to the end of
    the job. `work_seconds` has the expected time of a job, for each kind that makes reads cheaper. `share` has the
    waiting tables and all reads of the level that sets `of_reads`; None if every read of the table has to be cheap."""

    settings: ObjectiveSettings = field(default_factory=ObjectiveSettings)
    rates: ReadRates = field(default_factory=ReadRates)
    reads: Reads = field(default_factory=Reads)
    oldest_log_at: datetime | None = None  # When the first commit after the last compaction completed.
    gb_hours: float = 0.0  # Cost of the table's jobs in the last 24 hours.
    spent_until: datetime | None = None  # When the first of these jobs no longer counts.
    overspent: str | None = None  # A clause about a spent budget that the table shares; None if no budget is spent.
    lead_seconds: float = LEAD_SECONDS
    work_seconds: Mapping[JobKind, float] = field(default_factory=dict)
    share: ReadShare | None = None

    def cost_of_reads(self, snapshot: TableSnapshot) -> ReadCost:
        return read_cost(ReadWork.of(snapshot), self.rates)

    def oldest(self, snapshot: TableSnapshot, now: datetime) -> datetime:
        """Returns about when the first log file was written. The result is at most `now`, even if a clock was set
        back."""
        return min(self.oldest_log_at or snapshot.since_compaction.at or snapshot.first_commit_at or now, now)

    def gain(self, kind: JobKind, snapshot: TableSnapshot) -> Gain | None:
        """Returns the expected gain of a job; None for kinds that do not make reads cheaper."""
        return gain_of(kind, self.cost_of_reads(snapshot), self.reads)

    def age(self, kind: JobKind, snapshot: TableSnapshot, now: datetime) -> float:
        """Returns for how many seconds reads have become more expensive: since the first log file, or since the last
        clustering."""
        if kind is JobKind.COMPACTION:
            since = self.oldest(snapshot, now)
        else:
            since = snapshot.since_clustering.at or snapshot.first_commit_at or now
        return (now - since).total_seconds()

    def worth(self, kind: JobKind, snapshot: TableSnapshot, now: datetime) -> float:
        """Returns the seconds that readers have paid during the time `age`, for each second of the job's work."""
        gain = self.gain(kind, snapshot)
        work = self.work_seconds.get(kind, self.lead_seconds)
        return gain.paid_per_second(self.age(kind, snapshot, now), work) if gain else 0.0

    def is_worth_it(self, kind: JobKind, snapshot: TableSnapshot, now: datetime) -> bool:
        """Returns whether the job is worth its work by `least_worth`. After a day, any gain is enough."""
        least, gain = self.settings.least_worth, self.gain(kind, snapshot)
        if least is None or gain is None or gain.seconds_per_read <= 0:
            return least is None
        is_old = self.age(kind, snapshot, now) >= UNREAD_FOR.total_seconds()
        return is_old or self.worth(kind, snapshot, now) >= least

    def reaches_limit(self, snapshot: TableSnapshot) -> bool:
        """Returns whether the next commit would make reads cost more than allowed because of logs. If only the worth
        of jobs counts, returns whether reads would cost more than without logs."""
        cost = self.cost_of_reads(snapshot)
        overhead, most = cost.of_logs, self.settings.most_overhead(cost.compacted) or 1.0
        return overhead + (overhead - 1) / max(1, snapshot.since_compaction.commits) > most

    def waiting(self, snapshot: TableSnapshot, now: datetime) -> CostlyTable | None:
        """Returns the table with its price if its logs may wait, else None. The logs may wait if the table and the
        waiting tables with a higher price have few enough reads (`of_reads`). After a day no table waits any more."""
        is_shared = self.share is not None and self.settings.limits_reads
        if not is_shared or not self.reaches_limit(snapshot):
            return None
        if self.age(JobKind.COMPACTION, snapshot, now) >= UNREAD_FOR.total_seconds():
            return None
        found = self._rank(snapshot, now)
        return found if self._share_with_costlier(found) <= 1 - (self.settings.of_reads or 1.0) else None

    def share_of_waiting(self, snapshot: TableSnapshot, now: datetime) -> float:
        """Returns the share of all reads that go to this table and to the waiting tables with a higher price."""
        return self._share_with_costlier(self._rank(snapshot, now))

    def _share_with_costlier(self, table: CostlyTable) -> float:
        return self.share.with_costlier(table) if self.share else 1.0

    def _rank(self, snapshot: TableSnapshot, now: datetime) -> CostlyTable:
        """Returns the table with its price. The price assumes that a compaction runs whenever the limit is reached, and
        that writers commit as often as since the last compaction."""
        since, cost = snapshot.since_compaction, self.cost_of_reads(snapshot)
        overhead, most = cost.of_logs, self.settings.most_overhead(cost.compacted) or 1.0
        commits = max(1, since.commits)
        begin = since.at or snapshot.first_commit_at or now
        seconds_per_commit = max(1.0, (now - begin).total_seconds()) / commits
        by_commit = max((overhead - 1) / commits, 1e-9)
        reads = self.reads.per_day / 86_400 * seconds_per_commit * max(1.0, (most - 1) / by_commit)
        work = self.work_seconds.get(JobKind.COMPACTION, self.lead_seconds)
        return CostlyTable(snapshot.table_id, self.reads.per_day, work / max(reads, 1e-9))
