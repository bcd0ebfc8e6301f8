"""Policies under which the number of commits alone says when jobs are due, so that a simulation need not ask them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.contract import JobKind
from service.policies.settings import Trigger

if TYPE_CHECKING:
    from collections.abc import Collection

    from service.policies.policy import Policy

COUNTED = (JobKind.COMPACTION, JobKind.CLEANING)

_STAY_DUE = frozenset({*COUNTED, JobKind.AUDIT, JobKind.ARCHIVAL})


def counts(policy: Policy) -> bool:
    """Returns whether compactions and cleanings become due by the number of commits alone."""
    settings, objective = [getattr(policy, kind.value) for kind in COUNTED], policy.objective
    if objective.is_set or objective.max_gb_hours_per_day is not None or policy.compaction.log_ratio is not None:
        return False
    return all(each.trigger is Trigger.COMMITS and each.cron is None for each in settings)


def stays_due(policy: Policy, kinds: Collection[JobKind]) -> bool:
    """Returns whether jobs of these kinds, once due, stay due until they run, whatever is committed meanwhile."""
    has_calendar = policy.windows or policy.audit.cron or policy.archival.cron
    return counts(policy) and not has_calendar and _STAY_DUE.issuperset(kinds)
