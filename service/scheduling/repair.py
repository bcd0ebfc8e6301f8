"""Policy of repair: whether to recover the rows of stale writes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from jobs.contract import JobKind
from service.incidents.incident import Incident, IncidentKind, with_misplaced_rows
from service.model.formatting import count, first_of
from service.policies.settings import Mode, RepairSettings
from service.scheduling.decision import Proposal, Run, Skip, Suggest
from service.scheduling.policy_inputs import PolicyInputs
from service.scheduling.trigger_context import TriggerContext

_MOST_INSTANTS = 1000
_AGAIN_AFTER = timedelta(hours=1)
"""Pause after a successful job that left incidents open. A repair that followed at once would hardly repair more."""


def propose(inputs: PolicyInputs) -> Proposal:
    return decide(inputs.policy.repair, inputs.incidents, inputs.context, inputs.tried)


def decide(
    settings: RepairSettings,
    incidents: Sequence[Incident],
    context: TriggerContext,
    tried: Collection[str] = (),
) -> Run | Suggest | Skip:
    """Returns the proposal. A repair is due while an open incident needs one. `tried` are the instants in the
    parameters of the last successful job.

    Doubtful instants are repaired only if a person submits the job.
    """
    unresolved = with_misplaced_rows(incidents)
    if not unresolved:
        return Skip("nothing-astray", "no rows are known to be misplaced")
    doubtful = {each.instant for each in unresolved if each.doubt is not None}
    proved = [each for each in unresolved if each.instant not in doubtful]
    found = proved or unresolved
    instants = sorted({each.instant for each in found})[:_MOST_INSTANTS]
    finding = _describe(found)
    warning = f"{finding[0].upper()}{finding[1:]}: {first_of(instants, 3)}."
    if settings.mode is Mode.OFF:
        return Skip("off", f"repair is switched off, although {finding}", warning=warning)
    if context.last_run_at and set(instants) <= set(tried):
        until = context.last_run_at + _AGAIN_AFTER
        if until > context.now:
            because = f"the last repair has checked them, but the incidents are still open: {finding}"
            return Skip("just-repaired", because, until, warning)
    params = settings.job_params(instants=instants)
    if not proved:
        finding += "; nothing proves that their rows were not removed on purpose or carried over to the new file groups"
    if settings.mode is Mode.SUGGEST or not proved:
        return Suggest(JobKind.REPAIR, params, finding)
    return Run(JobKind.REPAIR, params, finding)


def _describe(found: Sequence[Incident]) -> str:
    stale = sum(each.kind is IncidentKind.STALE_WRITE for each in found)
    old = len(found) - stale
    parts = [
        f"{count(stale, 'commit')} wrote to file groups that had been replaced" if stale else "",
        f"{count(old, 'commit')} may have used an old number of buckets" if old else "",
    ]
    return " and ".join(filter(None, parts))
