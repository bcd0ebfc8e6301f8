"""Refusals of a clustering that follow from its parameters and the table's declared bucket index alone.

The service refuses such a job at its submission, so that nobody waits for a worker. The worker refuses the job, too.
"""

from __future__ import annotations

from typing import Final

from jobs.contract import Problem
from jobs.kinds.clustering import ClusteringParams, GivenClusteringParams
from jobs.kinds.parameters import Parameters
from jobs.problems import plans
from jobs.problems.problem_type import ProblemType


def _refused(kind: ProblemType) -> Problem:
    """Returns the refusal. The detail never varies, so the example of the type serves as the detail."""
    return kind.because(kind.example)


PLAN_UNUSABLE: Final = _refused(plans.PLAN_UNUSABLE)
NO_BUCKETS: Final = _refused(plans.EXPANSION_FACTOR_WITHOUT_BUCKETS)
NOTHING_TO_MERGE: Final = _refused(plans.BUCKET_FILES_NOT_MERGEABLE)


def refusal(params: Parameters, *, has_index: bool) -> Problem | None:
    """Returns the refusal of these parameters for a table that is declared with or without a bucket index; None if they
    are allowed."""
    if isinstance(params, GivenClusteringParams):
        return PLAN_UNUSABLE if has_index else None
    if not isinstance(params, ClusteringParams):
        return None
    if params.expansion_factor and not has_index:
        return NO_BUCKETS
    if has_index and not params.expansion_factor and not params.sort_by:
        return NOTHING_TO_MERGE
    return None
