"""The kinds of jobs that are simulated, and the policies that a simulation need not ask, because the number of commits
alone says when jobs are due."""

from __future__ import annotations

from collections.abc import Collection

from jobs.contract import JobKind
from service.policies.policy import Policy
from service.policies.settings import Trigger
from service.scheduling.decision import DECIDED, Proposal, Skip, Suggest

COUNTED = (JobKind.COMPACTION, JobKind.CLEANING)

NOT_SIMULATED = frozenset(
    {JobKind.REPAIR, JobKind.ROLLBACK, JobKind.BUCKET_CONTRACTION, JobKind.BUCKET_RESIZE, JobKind.PARTITION_TTL}
)
"""Kinds whose jobs depend on damages, dead writers, single buckets or values of partitions: no commit shows these."""

SIMULATED = tuple(kind for kind in DECIDED if kind not in NOT_SIMULATED)

_FOREVER = frozenset({"off", "not-merge-on-read", "no-bucket-index", "no-sort-columns", "no-metastore"})
"""Codes of proposals that stay while policy and table stay."""

_STAY_DUE = frozenset({*COUNTED, JobKind.AUDIT, JobKind.ARCHIVAL})


def counts(policy: Policy) -> bool:
    """Returns whether compactions and cleanings become due by the number of commits alone."""
    settings, objective = [getattr(policy, kind.value) for kind in COUNTED], policy.objective
    if objective.is_any or policy.compaction.log_ratio is not None:
        return False
    return all(each.trigger is Trigger.COMMITS and each.cron is None for each in settings)


def stays_due(policy: Policy, kinds: Collection[JobKind]) -> bool:
    """Returns whether jobs of these kinds, once due, stay due until they run, whatever is committed meanwhile."""
    has_calendar = policy.windows or policy.audit.cron or policy.archival.cron
    return counts(policy) and not has_calendar and _STAY_DUE.issuperset(kinds)


def stays_proposed(proposal: Proposal) -> bool:
    """Returns whether a proposal stays while policy and table stay."""
    return isinstance(proposal, Suggest) or (isinstance(proposal, Skip) and proposal.code in _FOREVER)
