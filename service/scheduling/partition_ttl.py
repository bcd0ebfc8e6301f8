"""Policy of partition TTL: whether to run a job that drops the partitions that have expired."""

from __future__ import annotations

from jobs.contract import JobKind
from service.lake.snapshot import TableSnapshot
from service.model.formatting import count
from service.policies.settings import PartitionTtlSettings
from service.scheduling.decision import Proposal, Run, Skip
from service.scheduling.policy_inputs import PolicyInputs
from service.scheduling.trigger_context import TriggerContext, by_calendar, by_time


def propose(inputs: PolicyInputs) -> Proposal:
    return decide(inputs.policy.partition_ttl, inputs.snapshot, inputs.context, must_stop_flink=inputs.must_stop_flink)


def decide(
    settings: PartitionTtlSettings, snapshot: TableSnapshot, context: TriggerContext, *, must_stop_flink: bool = False
) -> Run | Skip:
    """Returns the proposal: by the calendar, or else by the time since the last run. Only a job can find out whether a
    partition has expired. `must_stop_flink` says that Flink writes the table and would have to be stopped for each
    job."""
    if not settings.enabled:
        return Skip("off", "partition TTL is switched off")
    if settings.days_retain is None:
        warning = "Partition TTL is on, but `partition_ttl.days_retain` is not set."
        return Skip("no-days-retain", "the policy does not say for how many days partitions are kept", warning=warning)
    paths = [each.path for each in snapshot.partitions if each.file_groups]
    if not any(paths):
        return Skip("no-partitions", "the table has no partitions with files")
    if must_stop_flink:
        because = "Flink writes the table and would have to be stopped for each job; start the job by hand"
        return Skip("flink", because)
    params = settings.job_params()
    days = count(settings.days_retain, "day")
    kept = f"the table has {count(len(paths), 'partition')}; those older than {days} are dropped"
    if context.is_unfinished:
        return Run(
            JobKind.PARTITION_TTL,
            params,
            f"the last partition TTL has reached its limit and left expired partitions; {kept}",
        )
    if context.calendar:
        return by_calendar(context.calendar).proposal(JobKind.PARTITION_TTL, params, kept)
    if context.last_run_at is None:
        return Run(JobKind.PARTITION_TTL, params, f"no partition TTL yet; {kept}")
    return by_time(settings.seconds, None, context, "partition TTL").proposal(JobKind.PARTITION_TTL, params, kept)
