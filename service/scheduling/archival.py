"""Policy of archival: whether to move the oldest instants of the timeline to the history."""

from __future__ import annotations

from jobs.contract import JobKind
from service.lake.snapshot import TableSnapshot
from service.model.formatting import count
from service.policies.settings import ArchivalSettings
from service.scheduling.decision import Proposal, Run, Skip
from service.scheduling.policy_inputs import PolicyInputs
from service.scheduling.trigger_context import TriggerContext, by_calendar


def propose(inputs: PolicyInputs) -> Proposal:
    return decide(inputs.policy.archival, inputs.snapshot, inputs.context)


def decide(settings: ArchivalSettings, snapshot: TableSnapshot, context: TriggerContext) -> Run | Skip:
    """Returns the proposal. An archival is due when the active timeline has more completed commits than allowed."""
    active = snapshot.timeline_commits
    because = f"{count(active, 'commit')} on the active timeline, threshold {settings.commits}"
    if not settings.enabled:
        return Skip("off", "archival is switched off")
    if active <= settings.retain:
        return Skip(
            "nothing-to-archive", f"{count(active, 'commit')} on the active timeline, where {settings.retain} are kept"
        )
    if not context.is_anything_new(snapshot):
        return Skip("nothing-new", "nothing was committed since the last archival job")
    params = settings.job_params()
    if context.calendar:
        return by_calendar(context.calendar).proposal(JobKind.ARCHIVAL, params, because)
    if active <= settings.commits:
        return Skip("not-yet", because)
    return Run(JobKind.ARCHIVAL, params, because)
