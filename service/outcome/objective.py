"""The state of an objective: whether it is kept, and how much of its error budget is left."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.contract import JobKind
from service.lake.snapshot import TableSnapshot
from service.model.formatting import duration
from service.outcome.read_share import CostlyTable
from service.outcome.table_objective import TableObjective
from service.policies.objective import FACTOR_BEYOND_JOBS, ObjectiveSettings

WEEK = timedelta(days=7)
"""An objective should be kept for a certain share of this period."""


@dataclass(frozen=True)
class ObjectiveCheck:
    """The result of a check of a table. `overhead` is the cost of a read, divided by its cost after the table services
    that are switched on. `missed` says how the objective is missed, as a sentence without a full stop; None if it is
    kept. `waiting` is None, or the table with its price if it waits for its compaction although its reads cost more
    than allowed (`of_reads`)."""

    overhead: float
    missed: str | None = None
    waiting: CostlyTable | None = None


@dataclass(frozen=True)
class Kept:
    """How long in a period the state of the objective was known, and how long the objective was missed."""

    seconds: float = 0.0
    missed_seconds: float = 0.0

    @property
    def share(self) -> float:
        return 1 - self.missed_seconds / self.seconds if self.seconds else 1.0

    def burn(self, kept_percent: float) -> float:
        """Returns the time for which the objective was missed, divided by the time for which it may be missed. A result
        of 1 means that the error budget is used up at the end of the period."""
        return (1 - self.share) / (1 - kept_percent / 100)


@dataclass(frozen=True)
class ObjectiveState:
    """The last check of a table with an objective, and how well the objective was kept in the last week."""

    looked_at: datetime
    overhead: float
    missed: str | None = None
    missed_since: datetime | None = None
    week: Kept = Kept()

    def text(self, kept_percent: float) -> str:
        """Returns words such as "kept 99.4 % of the last week, 60 % of the error budget used"."""
        used = self.week.burn(kept_percent)
        return f"kept {100 * self.week.share:.1f} % of the last week, {100 * used:.0f} % of the error budget used"


@dataclass(frozen=True)
class ReadLimit:
    """A clause about the cost of a read and the limit that a member sets for it."""

    text: str
    is_exceeded: bool


def read_limits(settings: ObjectiveSettings, now: float, least: float, when: str) -> list[ReadLimit]:
    """Returns a clause for each member that limits the cost of a read. `least` has the seconds that the read would
    take at another time, and `when` says at which: `right after a compaction`."""
    found, overhead = [], now / least if least else 1.0
    if (most := settings.read_overhead) is not None:
        text = f"a read costs {overhead:.2f} times what it would {when}, {most:g} allowed"
        found.append(ReadLimit(text, overhead > most))
    if (seconds := settings.read_seconds) is not None:
        text = f"a read costs {now:.3g} s, {least:.3g} s {when}, {seconds:g} s allowed"
        if settings.is_beyond_jobs(least):
            text += f" (no job can keep that: the next one is due at {FACTOR_BEYOND_JOBS * least:.3g} s)"
        found.append(ReadLimit(text, now > seconds))
    return found


def check(objective: TableObjective, snapshot: TableSnapshot, now: datetime, *, merges_files: bool) -> ObjectiveCheck:
    """Checks a table. Reads of a table that nobody reads cost nothing. `merges_files` says that small files count,
    because clustering is on."""
    settings, cost = objective.settings, objective.cost_of_reads(snapshot)
    are_merged = merges_files and not snapshot.num_buckets
    overhead = cost.overhead(merges_files=are_merged)
    missed = []
    kinds = (JobKind.COMPACTION, JobKind.CLUSTERING) if merges_files else (JobKind.COMPACTION,)
    # The objective is not missed if there are too few reads for a job, or if these reads may cost more.
    is_worth_it = any(objective.is_worth_it(kind, snapshot, now) for kind in kinds)
    waiting = objective.waiting(snapshot, now)
    if is_worth_it and waiting is None and not objective.reads.have_stopped:
        when = "after a compaction and a clustering" if are_merged else "after a compaction"
        limits = read_limits(settings, cost.now, cost.now / overhead, when)
        missed += [each.text for each in limits if each.is_exceeded]
    age = now - objective.oldest(snapshot, now)
    if settings.log_age_seconds is not None and snapshot.log_bytes and age.total_seconds() > settings.log_age_seconds:
        missed.append(f"the oldest log file is {duration(age)} old, {duration(settings.log_age_seconds)} allowed")
    stored = storage_overhead(snapshot)
    if settings.storage_overhead is not None and stored > settings.storage_overhead:
        most = settings.storage_overhead
        missed.append(f"all files have {stored:.2f} times the size of those in use, {most:g} allowed")
    return ObjectiveCheck(overhead, "; ".join(missed) or None, waiting)


def storage_overhead(snapshot: TableSnapshot) -> float:
    """Returns the size of all files divided by the size of the files in use."""
    freed = sum(each.freed_bytes for each in snapshot.partitions)
    return 1 + freed / max(1, snapshot.base_bytes + snapshot.log_bytes)
