"""When to bring over the rows of commits that went astray."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from jobs.contract import JobKind
from service.incidents.incident import IncidentKind, astray
from service.model.formatting import count
from service.policies.policy import Mode
from service.queue.hand_over_policy import DEFAULT_SECONDS
from service.scheduling.decision import Run, Skip, Suggest

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from service.incidents.incident import Incident
    from service.policies.policy import RepairSettings
    from service.scheduling.trigger_context import TriggerContext

WAIT_SECONDS = 300
"""The job's own default (`RepairParams`)."""

_MOST_INSTANTS = 1000
_AGAIN_AFTER = timedelta(hours=1)
"""What a job that succeeded has neither repaired nor cleared will most likely not be by the next one."""


def decide(
    settings: RepairSettings,
    incidents: Sequence[Incident],
    context: TriggerContext,
    tried: Collection[str] = (),
) -> Run | Suggest | Skip:
    """As long as an incident stands that a repair puts right. `tried` are the instants that the last successful job was
    given."""
    found = astray(incidents)
    if not found:
        return Skip("nothing-astray", "no commit is known to have gone astray")
    instants = sorted({each.instant for each in found})[:_MOST_INSTANTS]
    told = _describe(found)
    warning = f"{told[0].upper()}{told[1:]}: {', '.join(instants[:3])}{' ...' if len(instants) > 3 else ''}."
    if settings.mode is Mode.OFF:
        return Skip("off", f"repair is switched off, although {told}", warning=warning)
    if context.last_run_at and set(instants) <= set(tried):
        until = context.last_run_at + _AGAIN_AFTER
        if until > context.now:
            because = f"the last repair has looked at them; but {told} still"
            return Skip("just-repaired", because, until, warning)
    params = {"instants": instants, "wait_seconds": WAIT_SECONDS, "hand_over_seconds": DEFAULT_SECONDS}
    if settings.mode is Mode.SUGGEST:
        return Suggest(JobKind.REPAIR, params, told)
    return Run(JobKind.REPAIR, params, told)


def _describe(found: Sequence[Incident]) -> str:
    stale = sum(each.kind is IncidentKind.STALE_WRITE for each in found)
    old = len(found) - stale
    parts = [
        f"{count(stale, 'commit')} wrote to file groups that had been replaced" if stale else "",
        f"{count(old, 'commit')} may have gone by an old number of buckets" if old else "",
    ]
    return " and ".join(filter(None, parts))
