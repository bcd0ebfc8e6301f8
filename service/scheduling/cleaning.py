"""Policy of cleaning: whether to delete old file versions now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.contract import JobKind
from jobs.job_params import CleaningPolicy
from jobs.problems.indexes import EXPRESSION_INDEX
from service.catalog.consumer import Consumer, awaited
from service.incidents.incident import Incident, IncidentKind
from service.lake.snapshot import TableSnapshot
from service.model.formatting import count, size
from service.policies.settings import CleaningSettings
from service.scheduling.by_objective import of_versions, within_budget
from service.scheduling.decision import Proposal, Run, Skip
from service.scheduling.first_freed import FirstFreed
from service.scheduling.policy_inputs import PolicyInputs
from service.scheduling.rollback import NOBODY, Silent, left_to_cleanings
from service.scheduling.trigger_context import Timing, TriggerContext, by_calendar, by_thresholds, commits_to_go
from service.scheduling.writer_hazard import Obstacle


def propose(inputs: PolicyInputs) -> Proposal:
    return decide(
        inputs.policy.cleaning,
        inputs.snapshot,
        inputs.context,
        inputs.incidents,
        inputs.consumers,
        first=inputs.first_freed,
        silent=left_to_cleanings(inputs),
    )


def decide(
    settings: CleaningSettings,
    snapshot: TableSnapshot,
    context: TriggerContext,
    incidents: Sequence[Incident] = (),
    consumers: Sequence[Consumer] = (),
    *,
    first: FirstFreed | None = None,
    silent: Silent = NOBODY,
) -> Run | Skip:
    """Returns the proposal, by the calendar or else by the thresholds; `Skip` when no file could be freed.

    `consumers` only appear in the text, because the job itself keeps the files that they need. Fenced writers may leave
    late files, which must be removed before the timeline is archived past their instants. A cleaning for such files
    waits for neither calendar nor thresholds. `first` is `PolicyInputs.first_freed`. `silent` are the dead writers
    whose writes only a cleaning rolls back.
    """
    late = sum(each.is_unresolved and each.kind is IncidentKind.LATE_FILES for each in incidents)
    finding = f"{count(late, 'fenced write')} may have left late files"
    if not settings.enabled:
        return Skip("off", "cleaning is switched off", warning=f"Cleaning is off, but {finding}." if late else None)
    params = settings.job_params()
    if late:
        return Run(JobKind.CLEANING, params, f"{finding}, which must be removed before the timeline is archived")
    kept, warning = _kept_for(settings, consumers, context)
    files = sum(each.freed_files for each in snapshot.partitions)
    is_other = context.calendar or context.objective.settings.storage_overhead is not None
    to_go = 0 if is_other else commits_to_go(settings, snapshot.since_cleaning)
    if files == 0:
        return Skip("nothing-to-free", "no file is out of use", None, warning, to_go)
    # Under KEEP_LATEST_BY_HOURS files become removable even without new commits.
    if settings.policy is not CleaningPolicy.KEEP_LATEST_BY_HOURS and not context.is_anything_new(snapshot):
        return Skip("nothing-new", "nothing was committed since the last cleaning job", None, warning, to_go)
    timing = within_budget(_timing(settings, snapshot, context), context.objective)
    if not timing.is_due:
        return Skip("not-yet", f"{timing.because}{kept}", timing.until, warning, timing.commits)
    if dead := len(silent.dead):
        kept += f"; {count(dead, 'write')} of dead writers will be rolled back"
    elif found := first and first.kept(settings, context.now):
        why, until = found
        because = f"{timing.because}; but all {count(files, 'file')} out of use are kept: {why}"
        return Skip("all-kept", because, min((at for at in (until, silent.until) if at), default=None), warning)
    freed = size(sum(each.freed_bytes for each in snapshot.partitions))
    because = f"{timing.because}; {count(files, 'file')} out of use, at most {freed} can be freed"
    return Run(JobKind.CLEANING, params, f"{because}{kept}", warning)


def obstacle(profile: Mapping[str, Any]) -> Obstacle | None:
    """Returns the reason for which each cleaning of a table with this profile would be refused."""
    mixed = ", ".join(profile.get("indexes_mixed_by_cleans") or ())
    if not mixed:
        return None
    return Obstacle(
        EXPRESSION_INDEX.type,
        f"the table has an expression index beside an index of its type ({mixed}), and a clean of Hudi 1.2 would stop"
        " all writers: drop the expression index (DROP INDEX), and create it again after a cleaning",
    )


def _timing(settings: CleaningSettings, snapshot: TableSnapshot, context: TriggerContext) -> Timing:
    if context.calendar:
        return by_calendar(context.calendar)
    if context.objective.settings.storage_overhead is not None:
        return of_versions(snapshot, context.objective)
    return by_thresholds(settings, snapshot.since_cleaning, snapshot.first_commit_at, context, "cleaning")


def _kept_for(
    settings: CleaningSettings, consumers: Sequence[Consumer], context: TriggerContext
) -> tuple[str, str | None]:
    """Returns a clause about the consumer that is furthest behind, and a warning about consumers that are silent."""
    found = awaited(consumers, settings.consumer_hours, context.now)
    kept = f"; versions since {found[0].instant} are kept for consumer '{found[0].name}'" if found else ""
    stale = [each.name for each in consumers if each.is_stale(settings.consumer_hours, context.now)]
    if not stale:
        return kept, None
    silent = f"Silent for more than {count(settings.consumer_hours, 'hour')}: {', '.join(stale[:5])}."
    return kept, f"{silent} Nothing is kept for {count(len(stale), 'such consumer')} any more."
