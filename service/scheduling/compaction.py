"""Policy of compaction: whether to compact a merge-on-read table now."""

from __future__ import annotations

from jobs.contract import JobKind
from jobs.job_params import CompactionEngine
from service.lake.snapshot import TableSnapshot
from service.lake.table import TableType
from service.model.formatting import count, size
from service.policies.settings import CompactionSettings
from service.scheduling.by_objective import of_logs, within_budget
from service.scheduling.decision import Proposal, Run, Skip
from service.scheduling.pending_plans import plans_of
from service.scheduling.policy_inputs import PolicyInputs
from service.scheduling.trigger_context import Timing, TriggerContext, by_calendar, by_thresholds, commits_to_go


def propose(inputs: PolicyInputs) -> Proposal:
    return decide(inputs.policy.compaction, inputs.snapshot, inputs.context)


def decide(settings: CompactionSettings, snapshot: TableSnapshot, context: TriggerContext) -> Run | Skip:
    """Returns the proposal. Pending plans are due at once; else the calendar or the thresholds decide."""
    if snapshot.table_type is not TableType.MERGE_ON_READ:
        return Skip("not-merge-on-read", "only merge-on-read tables have log files to compact")
    plans = plans_of(snapshot, JobKind.COMPACTION, settings.stale_plan_seconds, context)
    warning = plans.warning
    if not settings.enabled:
        return Skip("off", "compaction is switched off", warning=warning)
    if plans.running:
        return Skip("plan-running", plans.running_text, plans.running_until, warning)
    if plans.waiting:
        names = ", ".join(plans.waiting)
        because = f"{count(len(plans.waiting), 'compaction plan')} left on the timeline to be executed ({names})"
        return Run(JobKind.COMPACTION, _params(settings), because, warning)
    to_go = 0 if _is_other(settings, context) else commits_to_go(settings, snapshot.since_compaction)
    if snapshot.log_bytes == 0:
        return Skip("no-logs", "there are no log files to compact", None, warning, to_go)
    if context.is_unfinished:
        because = "the last compaction has reached its limit and left work for the next one"
        return Run(JobKind.COMPACTION, _params(settings), because, warning)
    if not context.is_anything_new(snapshot):
        return Skip("nothing-new", "nothing was committed since the last compaction job", None, warning, to_go)
    timing = within_budget(_timing(settings, snapshot, context), context.objective)
    return timing.proposal(JobKind.COMPACTION, _params(settings), warning=warning)


def _params(settings: CompactionSettings) -> dict[str, object]:
    given = settings.job_params()
    # `auto` is the job's default.
    return {name: value for name, value in given.items() if value != CompactionEngine.AUTO}


def _is_other(settings: CompactionSettings, context: TriggerContext) -> bool:
    """Returns whether something other than the thresholds may make a job due."""
    return bool(context.calendar or context.objective.settings.concerns_reads or settings.log_ratio is not None)


def _timing(settings: CompactionSettings, snapshot: TableSnapshot, context: TriggerContext) -> Timing:
    if context.calendar:
        return by_calendar(context.calendar)
    if context.objective.settings.concerns_reads:
        return of_logs(snapshot, context)
    timing = by_thresholds(settings, snapshot.since_compaction, snapshot.first_commit_at, context, "compaction")
    if timing.is_due or settings.log_ratio is None:
        return timing
    logs, base = snapshot.log_bytes, snapshot.base_bytes
    if base == 0:
        by_ratio = f"there are {size(logs)} of logs and no base files"
    else:
        by_ratio = f"{size(logs)} of logs are {logs / base:.2f} of the base files' {size(base)}"
    by_ratio += f", threshold {settings.log_ratio:g}"
    is_due = logs >= settings.log_ratio * base
    return Timing(is_due, by_ratio if is_due else f"{timing.because}; {by_ratio}", timing.until)
