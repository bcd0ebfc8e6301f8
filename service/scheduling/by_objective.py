"""The timing of jobs by the objective of a table: a job is due just before the objective would be missed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from service.model.formatting import duration
from service.outcome.objective import storage_overhead
from service.scheduling.trigger_context import Timing

if TYPE_CHECKING:
    from datetime import datetime

    from service.lake.snapshot import TableSnapshot
    from service.outcome.table_objective import TableObjective
    from service.scheduling.trigger_context import TriggerContext

UNREAD_FOR = timedelta(days=1)
"""How long logs wait on a table that nobody seems to read. The wait has an end, because reads may be unknown."""


def of_logs(snapshot: TableSnapshot, context: TriggerContext) -> Timing:
    """Returns whether logs should be compacted. At least one member of the objective concerns reads."""
    found = [each for each in (_by_overhead(snapshot, context), _by_age(snapshot, context)) if each]
    timing = next((each for each in found if each.is_due), None) or Timing(
        False,
        "; ".join(each.because for each in found),
        min((each.until for each in found if each.until), default=None),
    )
    reads = context.objective.reads
    unread_until = _oldest(snapshot, context) + UNREAD_FOR
    if timing.is_due and reads.have_stopped and context.now < unread_until:
        because = f"{timing.because}; but nobody reads the table: {reads.text}"
        return Timing(False, because, unread_until)
    return timing


def of_small_files(snapshot: TableSnapshot, context: TriggerContext) -> Timing:
    """Returns whether small files should be merged."""
    most = context.objective.settings.read_overhead or 1.0
    cost = context.objective.cost_of_reads(snapshot)
    because = f"for its small files a read costs {cost.of_small_files:.2f} times as much, at most {most:g}"
    is_due = cost.of_small_files > most and not context.objective.reads.have_stopped
    return Timing(is_due, f"{because}; {context.objective.reads.text}")


def of_versions(snapshot: TableSnapshot, objective: TableObjective) -> Timing:
    """Returns whether old versions of files should be deleted."""
    most = objective.settings.storage_overhead or 1.0
    overhead = storage_overhead(snapshot)
    return Timing(overhead > most, f"all files have {overhead:.2f} times the size of those in use, at most {most:g}")


def within_budget(timing: Timing, objective: TableObjective) -> Timing:
    """Returns the timing; a job is due only if the objective and the budget leave something to spend."""
    most = objective.settings.max_gb_hours_per_day
    if timing.is_due and objective.overspent is not None:
        return Timing(False, f"{timing.because}; but {objective.overspent}", objective.spent_until)
    if not timing.is_due or most is None or objective.gb_hours < most:
        return timing
    spent = f"the table's jobs have taken {objective.gb_hours:.2g} GB-hours in 24 hours, at most {most:g}"
    return Timing(False, f"{timing.because}; but {spent}", objective.spent_until)


def _by_overhead(snapshot: TableSnapshot, context: TriggerContext) -> Timing | None:
    most = context.objective.settings.read_overhead
    if most is None:
        return None
    overhead = context.objective.cost_of_reads(snapshot).of_logs
    # A job is due if the next commit would exceed the limit.
    next_one = (overhead - 1) / max(1, snapshot.since_compaction.commits)
    because = f"for its logs a read costs {overhead:.2f} times as much, at most {most:g}"
    return Timing(overhead + next_one > most, f"{because}; {context.objective.reads.text}")


def _by_age(snapshot: TableSnapshot, context: TriggerContext) -> Timing | None:
    most = context.objective.settings.log_age_seconds
    if most is None:
        return None
    oldest = _oldest(snapshot, context)
    # The job begins early, because it takes time itself, but not before half of the limit, so that logs are not
    # compacted all the time.
    due_at = oldest + timedelta(seconds=max(most - context.objective.lead_seconds, most / 2))
    because = f"the oldest log file is about {duration(context.now - oldest)} old, at most {duration(most)}"
    return Timing(context.now >= due_at, because, None if context.now >= due_at else due_at)


def _oldest(snapshot: TableSnapshot, context: TriggerContext) -> datetime:
    """Returns about when the first log file was written; logs that the last job has left count from that job on, so
    that they do not make the next job due at once."""
    oldest = context.objective.oldest(snapshot, context.now)
    return min(max(oldest, context.last_run_at or oldest), context.now)
