"""The kinds of jobs that are simulated; and cases in which a simulation need not ask a policy again, for example
because only the number of commits determines when jobs are due."""

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
"""Kinds that are not simulated. Their jobs depend on damage, dead writers, single buckets or values of partitions,
which commits do not show."""

SIMULATED = tuple(kind for kind in DECIDED if kind not in NOT_SIMULATED)

_FOREVER = frozenset({"off", "not-merge-on-read", "no-bucket-index", "no-sort-columns", "no-metastore"})
"""Codes of proposals that stay the same while the policy and the table's properties stay the same."""

_STAY_DUE = frozenset({*COUNTED, JobKind.AUDIT, JobKind.ARCHIVAL})


def counts(policy: Policy) -> bool:
    """Returns whether only the number of commits makes compactions and cleanings due."""
    settings, objective = [getattr(policy, kind.value) for kind in COUNTED], policy.objective
    if objective.is_any or policy.compaction.log_ratio is not None:
        return False
    return all(each.trigger is Trigger.COMMITS and each.cron is None for each in settings)


def stays_due(policy: Policy, kinds: Collection[JobKind]) -> bool:
    """Returns whether a job of these kinds that is due stays due until it runs, whatever is committed meanwhile."""
    has_calendar = policy.windows or policy.audit.cron or policy.archival.cron
    return counts(policy) and not has_calendar and _STAY_DUE.issuperset(kinds)


def stays_proposed(proposal: Proposal) -> bool:
    """Returns whether a proposal stays the same while the policy and the table's properties stay the same."""
    return isinstance(proposal, Suggest) or (isinstance(proposal, Skip) and proposal.code in _FOREVER)
