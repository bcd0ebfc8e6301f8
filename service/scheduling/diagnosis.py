"""Policy of diagnosis: whether to look for damages of a table now."""

from __future__ import annotations

from jobs.contract import JobKind
from service.policies.settings import DiagnosisSettings
from service.scheduling.decision import Proposal, Run, Skip
from service.scheduling.policy_inputs import PolicyInputs
from service.scheduling.trigger_context import TriggerContext, by_calendar, by_time


def propose(inputs: PolicyInputs) -> Proposal:
    return decide(inputs.policy.diagnosis, inputs.context)


def decide(settings: DiagnosisSettings, context: TriggerContext) -> Run | Skip:
    """Returns the proposal, by the calendar or else by the time since the last run. Commits do not matter, because
    damages occur without them."""
    if not settings.enabled:
        return Skip("off", "diagnosis is switched off")
    params = settings.job_params()
    if not context.calendar and context.last_run_at is None:
        return Run(JobKind.DIAGNOSIS, params, "no diagnosis yet")
    timing = (
        by_calendar(context.calendar) if context.calendar else by_time(settings.seconds, None, context, "diagnosis")
    )
    return timing.proposal(JobKind.DIAGNOSIS, params)
