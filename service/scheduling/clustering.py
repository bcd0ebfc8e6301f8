"""Policy of clustering: whether to sort the rows of a table now, which also merges its small files, or whether only to
merge small files."""

from __future__ import annotations

from jobs.contract import JobKind
from jobs.job_params import ClusteringLayout
from service.lake.snapshot import TableSnapshot
from service.model.formatting import count, size
from service.policies.settings import ClusteringSettings
from service.scheduling.by_objective import of_small_files, within_budget
from service.scheduling.decision import Proposal, Run, Skip
from service.scheduling.pending_plans import plans_of
from service.scheduling.policy_inputs import PolicyInputs
from service.scheduling.trigger_context import Timing, TriggerContext, by_calendar


def propose(inputs: PolicyInputs) -> Proposal:
    return decide(inputs.policy.clustering, inputs.snapshot, inputs.context)


def decide(settings: ClusteringSettings, snapshot: TableSnapshot, context: TriggerContext) -> Run | Skip:
    """Returns the proposal. Pending plans that can be executed are due at once; else the calendar or a threshold
    decides."""
    plans = plans_of(snapshot, JobKind.CLUSTERING, settings.stale_plan_seconds, context)
    warning = plans.warning
    if not settings.enabled:
        return Skip("off", "clustering is switched off", warning=warning)
    if not settings.sort_by and not settings.expansion_factor and snapshot.num_buckets:
        because = "the policy names no columns to sort by, and the files of buckets cannot be merged"
        return Skip("no-sort-columns", because, warning=warning)
    if plans.running:
        return Skip("plan-running", plans.running_text, plans.running_until, warning)
    if plans.waiting and snapshot.num_buckets:
        names = ", ".join(plans.waiting)
        because = f"{names} is a clustering plan by Hudi that would break the bucket index: roll the plan back"
        return Skip("plan-unusable", because, warning=warning)
    if plans.waiting:
        because = f"{count(len(plans.waiting), 'clustering plan')} left on the timeline to be executed"
        return Run(JobKind.CLUSTERING, _params(settings, snapshot), f"{because} ({', '.join(plans.waiting)})", warning)
    if not context.is_anything_new(snapshot):
        return Skip("nothing-new", "nothing was committed since the last clustering job", warning=warning)
    timing = by_calendar(context.calendar) if context.calendar else _timing(settings, snapshot, context)
    return within_budget(timing, context.objective).proposal(
        JobKind.CLUSTERING, _params(settings, snapshot), warning=warning
    )


def _timing(settings: ClusteringSettings, snapshot: TableSnapshot, context: TriggerContext) -> Timing:
    # An objective says nothing about the order of rows.
    if context.objective.settings.weighs_reads and not settings.sort_by and not snapshot.num_buckets:
        return of_small_files(snapshot, context)
    return _by_thresholds(settings, snapshot)


def _by_thresholds(settings: ClusteringSettings, snapshot: TableSnapshot) -> Timing:
    figures: list[str] = []
    # If no order is set, only small files matter.
    prepares = settings.expansion_factor and snapshot.num_buckets
    if settings.unsorted_bytes is not None and (settings.sort_by or prepares):
        unsorted = snapshot.since_clustering.bytes_written
        by_bytes = f"{size(unsorted)} written since the last clustering, threshold {size(settings.unsorted_bytes)}"
        if unsorted >= settings.unsorted_bytes:
            return Timing(True, by_bytes)
        figures.append(by_bytes)
    # Clustering inside buckets cannot merge files, because a bucket is one file group, however small.
    if settings.small_file_share is not None and not snapshot.num_buckets:
        files = sum(each.base_files for each in snapshot.partitions)
        # A file that is alone in its partition cannot be merged with another.
        small = sum(each.small_files for each in snapshot.partitions if each.small_files > 1)
        by_share = (
            f"{small} of {count(files, 'file')} are smaller than {size(snapshot.small_file_bytes)} and could be "
            f"merged, threshold {settings.small_file_share:.0%}"
        )
        if small and small >= settings.small_file_share * files:
            return Timing(True, by_share)
        figures.append(by_share)
    return Timing(False, "; ".join(figures) or "the policy has no threshold for this table")


def _params(settings: ClusteringSettings, snapshot: TableSnapshot) -> dict[str, object]:
    given = settings.job_params()
    if not snapshot.num_buckets:
        # A policy for many tables may have this member, but a job on a table without buckets would be refused because
        # of it.
        given.pop("expansion_factor", None)
    return given if settings.sort_by else {**given, "layout": ClusteringLayout.LINEAR.value}
