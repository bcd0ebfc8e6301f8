"""The timing of jobs by the objective of a table: a job is due just before the objective would be missed."""

from __future__ import annotations

from datetime import datetime, timedelta

from jobs.contract import JobKind
from service.lake.snapshot import TableSnapshot
from service.model.formatting import duration
from service.outcome.objective import read_limits, storage_overhead
from service.outcome.table_objective import UNREAD_FOR, TableObjective
from service.scheduling.trigger_context import Timing, TriggerContext


def of_logs(snapshot: TableSnapshot, context: TriggerContext) -> Timing:
    """Returns whether logs should be compacted. At least one member of the objective concerns reads."""
    found = [each for each in (_by_reads(snapshot, context), _by_age(snapshot, context)) if each]
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
    cost = context.objective.cost_of_reads(snapshot)
    because = _read_costs(context, cost.compacted, cost.merged, "with small files merged")
    most = context.objective.settings.most_overhead(cost.merged) or 1.0
    is_due = cost.of_small_files > most and not context.objective.reads.have_stopped
    timing = Timing(is_due, f"{because}; {context.objective.reads.text}")
    return _if_worth_it(timing, JobKind.CLUSTERING, snapshot, context)


def of_versions(snapshot: TableSnapshot, objective: TableObjective) -> Timing:
    """Returns whether old versions of files should be deleted."""
    most = objective.settings.storage_overhead or 1.0
    overhead = storage_overhead(snapshot)
    return Timing(overhead > most, f"all files have {overhead:.2f} times the size of those in use, {most:g} allowed")


def within_budget(timing: Timing, objective: TableObjective) -> Timing:
    """Returns the timing, but with no job due once the objective's limit of GB-hours or a budget is spent."""
    most = objective.settings.max_gb_hours_per_day
    if timing.is_due and objective.overspent is not None:
        return Timing(False, f"{timing.because}; but {objective.overspent}", objective.spent_until)
    if not timing.is_due or most is None or objective.gb_hours < most:
        return timing
    spent = f"the table's jobs have taken {objective.gb_hours:.2g} GB-hours in 24 hours, {most:g} allowed"
    return Timing(False, f"{timing.because}; but {spent}", objective.spent_until)


def _by_reads(snapshot: TableSnapshot, context: TriggerContext) -> Timing | None:
    if not context.objective.settings.weighs_reads:
        return None
    cost = context.objective.cost_of_reads(snapshot)
    because = _read_costs(context, cost.now, cost.compacted, "right after a compaction")
    timing = Timing(context.objective.reaches_limit(snapshot), f"{because}; {context.objective.reads.text}")
    return _unless_few_read(_if_worth_it(timing, JobKind.COMPACTION, snapshot, context), snapshot, context)


def _unless_few_read(timing: Timing, snapshot: TableSnapshot, context: TriggerContext) -> Timing:
    """Returns the timing, but with no job due while the reads of the table are among the few that may cost more."""
    objective, now = context.objective, context.now
    if not timing.is_due or objective.share is None:
        return timing
    share, least = objective.share_of_waiting(snapshot, now), objective.settings.of_reads or 1.0
    because = (
        f"{timing.because}; this table and those that need more work per read have {100 * share:.3g} % of all reads of"
        f" {objective.share.level}, {100 * (1 - least):.3g} % may cost more"
    )
    if objective.waiting(snapshot, now) is None:
        return Timing(True, because)
    return Timing(False, because, _oldest(snapshot, context) + UNREAD_FOR)


def _read_costs(context: TriggerContext, now: float, least: float, when: str) -> str:
    limits = read_limits(context.objective.settings, now, least, when)
    if not limits:
        return f"a read costs {now / least if least else 1.0:.2f} times what it would {when}"
    return "; ".join(each.text for each in limits)


def _if_worth_it(timing: Timing, kind: JobKind, snapshot: TableSnapshot, context: TriggerContext) -> Timing:
    """Returns the timing, but with no job due before readers have paid enough for its work (`least_worth`)."""
    objective, least = context.objective, context.objective.settings.least_worth
    if least is None or not timing.is_due:
        return timing
    worth, age = objective.worth(kind, snapshot, context.now), objective.age(kind, snapshot, context.now)
    paid = f"readers have paid {worth:.2g} s for each second of its work"
    if objective.is_worth_it(kind, snapshot, context.now):
        return Timing(True, f"{timing.because}; {paid}")
    # In each further second readers pay at least as much as in each second before.
    left = UNREAD_FOR.total_seconds() - age
    if worth > 0:
        left = min(left, max(age, 1.0) * (least / worth - 1))
    return Timing(False, f"{timing.because}; but {paid}, {least:g} s wanted", context.now + timedelta(seconds=left))


def _by_age(snapshot: TableSnapshot, context: TriggerContext) -> Timing | None:
    most = context.objective.settings.log_age_seconds
    if most is None:
        return None
    oldest = _oldest(snapshot, context)
    # The job begins early, because it takes time itself. But it does not begin before half of the limit, so that logs
    # are not compacted all the time.
    due_at = oldest + timedelta(seconds=max(most - context.objective.lead_seconds, most / 2))
    because = f"the oldest log file is about {duration(context.now - oldest)} old, {duration(most)} allowed"
    return Timing(context.now >= due_at, because, None if context.now >= due_at else due_at)


def _oldest(snapshot: TableSnapshot, context: TriggerContext) -> datetime:
    """Returns about when the first log file was written. Logs that the last job has left count as written when it ran,
    so that they do not make the next job due at once."""
    oldest = context.objective.oldest(snapshot, context.now)
    return min(max(oldest, context.last_run_at or oldest), context.now)
