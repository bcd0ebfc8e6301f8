"""Policy of the metadata table: whether to compact it now."""

from __future__ import annotations

from jobs.contract import JobKind
from service.lake.metadata_table import MetadataTableState
from service.model.formatting import count
from service.policies.settings import MetadataTableSettings
from service.scheduling.decision import Proposal, Run, Skip
from service.scheduling.policy_inputs import PolicyInputs
from service.scheduling.trigger_context import TriggerContext, by_calendar


def propose(inputs: PolicyInputs) -> Proposal:
    return decide(inputs.policy.metadata_table, inputs.snapshot.metadata_table, inputs.context)


def decide(settings: MetadataTableSettings, found: MetadataTableState | None, context: TriggerContext) -> Run | Skip:
    """Returns the proposal. A compaction is due when enough deltacommits have followed the last one."""
    if not settings.enabled:
        return Skip("off", "compaction of the metadata table is switched off")
    if found is None:
        return Skip("no-metadata-table", "the table has no metadata table, or it has not been read yet")
    params = settings.job_params(action="compact")
    because = f"{count(found.commits, 'deltacommit')} since its last compaction, threshold {settings.commits}"
    if not found.commits:
        return Skip("nothing-new", "its last compaction is its newest commit")
    if context.calendar:
        return by_calendar(context.calendar).proposal(JobKind.METADATA_TABLE, params, because)
    if found.commits < settings.commits:
        return Skip("not-yet", because)
    return Run(JobKind.METADATA_TABLE, params, because)
