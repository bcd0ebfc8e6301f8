"""Policy of the sync to a Hive metastore: whether something was committed since the last one."""

from __future__ import annotations

from jobs.contract import JobKind
from service.lake.snapshot import TableSnapshot
from service.policies.settings import SyncSettings
from service.scheduling.decision import Proposal, Run, Skip
from service.scheduling.policy_inputs import PolicyInputs
from service.scheduling.trigger_context import TriggerContext, by_calendar


def propose(inputs: PolicyInputs) -> Proposal:
    return decide(inputs.policy.sync, inputs.snapshot, inputs.context)


def decide(settings: SyncSettings, snapshot: TableSnapshot, context: TriggerContext) -> Run | Skip:
    """Returns the proposal. A sync is due when the table has a commit that the last sync has not seen."""
    if not settings.enabled:
        return Skip("off", "the sync to a metastore is switched off")
    if settings.metastore_uris is None:
        return Skip("no-metastore", "the policy names no metastore")
    last, seen = snapshot.last_commit, context.seen_instant
    if last is None:
        return Skip("nothing-new", "nothing was committed yet")
    # Comparing times alone would miss a commit of a writer whose clock is behind the clock of this service.
    if not (context.is_anything_new(snapshot) or (seen is not None and last > seen)):
        return Skip("nothing-new", f"nothing was committed since the last sync, which saw {seen or 'everything'}")
    params = settings.job_params()
    because = f"{last} was committed since the last sync" if context.last_run_at else f"{last} was never synced"
    if context.calendar:
        return by_calendar(context.calendar).proposal(JobKind.SYNC, params, because)
    return Run(JobKind.SYNC, params, because)
