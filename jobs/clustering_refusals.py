"""Refusals of a clustering that follow from its parameters and the table's declared bucket index alone.

The worker refuses such a job; so does the service when the job is submitted, and nobody waits for a worker to say no.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jobs.problems import plans

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobs.contract import Problem
    from jobs.problems.problem_type import ProblemType


def _refused(kind: ProblemType) -> Problem:
    """Returns the refusal. Every case is alike, so the example is the detail."""
    return kind.because(kind.example)


PLAN_UNUSABLE: Final = _refused(plans.PLAN_UNUSABLE)
NO_BUCKETS: Final = _refused(plans.EXPANSION_FACTOR_WITHOUT_BUCKETS)
NOTHING_TO_MERGE: Final = _refused(plans.BUCKET_FILES_NOT_MERGEABLE)


def refusal(params: Mapping[str, Any], *, has_index: bool) -> Problem | None:
    """Returns why these parameters can never be carried out on a table that is declared with or without a bucket
    index; None if nothing in them says so."""
    if params.get("plans"):
        return PLAN_UNUSABLE if has_index else None
    prepares = int(params.get("expansion_factor") or 1) > 1
    if prepares and not has_index:
        return NO_BUCKETS
    if has_index and not prepares and not params.get("sort_by"):
        return NOTHING_TO_MERGE
    return None
