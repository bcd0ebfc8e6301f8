"""Policy of the audit: whether to audit the table now."""

from __future__ import annotations

from jobs.contract import JobKind
from service.lake.snapshot import TableSnapshot
from service.policies.settings import AuditSettings
from service.scheduling.decision import Proposal, Run, Skip
from service.scheduling.policy_inputs import PolicyInputs
from service.scheduling.trigger_context import TriggerContext, by_calendar, by_time


def propose(inputs: PolicyInputs) -> Proposal:
    return decide(inputs.policy.audit, inputs.snapshot, inputs.context)


def decide(settings: AuditSettings, snapshot: TableSnapshot, context: TriggerContext) -> Run | Skip:
    """Returns the proposal, by the calendar or else by the time since the last run (since the first commit if there was
    none)."""
    if not settings.enabled:
        return Skip("off", "the audit is switched off")
    timing = (
        by_calendar(context.calendar)
        if context.calendar
        else by_time(settings.seconds, snapshot.first_commit_at, context, "audit")
    )
    return timing.proposal(JobKind.AUDIT, settings.job_params())
