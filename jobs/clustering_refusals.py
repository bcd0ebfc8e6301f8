"""Refusals of a clustering that follow from its parameters and the table's declared bucket index alone.

The worker refuses such a job; so does the service when the job is submitted, and nobody waits for a worker to say no.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jobs.contract import Problem
from jobs.kinds.clustering import ClusteringParams, GivenClusteringParams

if TYPE_CHECKING:
    from jobs.kinds.parameters import Parameters

PLAN_UNUSABLE: Final = Problem(
    "plan-unusable",
    "Hudi's own clustering would break the table's bucket index",
    "The table has a bucket index, and Hudi 1.2 gives clustered files ids without the number of their bucket.",
    "Roll the plan back, and switch clustering off in the writers (`hoodie.clustering.inline` and"
    " `hoodie.clustering.schedule.inline`). A clustering job with `sort_by` sorts inside each bucket.",
)
NO_BUCKETS: Final = Problem(
    "expansion-factor-without-buckets",
    "Only a table with a bucket index can be prepared for an expansion",
    "`expansion_factor` keeps rows apart that will be in different buckets.",
    "Leave it out; or, if the table does have a bucket index, declare it in its registration.",
)
NOTHING_TO_MERGE: Final = Problem(
    "bucket-files-not-mergeable",
    "The files of a table with a bucket index cannot be merged",
    "Each bucket of a partition is one file group, however small, and clustering without `sort_by` only merges files.",
    "Give `sort_by` to order the rows inside each bucket, or `expansion_factor` to prepare them for an expansion."
    " Compaction merges the logs.",
)


def refusal(params: Parameters, *, has_index: bool) -> Problem | None:
    """Returns why these parameters can never be carried out on a table that is declared with or without a bucket
    index; None if nothing in them says so."""
    if isinstance(params, GivenClusteringParams):
        return PLAN_UNUSABLE if has_index else None
    if not isinstance(params, ClusteringParams):
        return None
    if params.expansion_factor and not has_index:
        return NO_BUCKETS
    if has_index and not params.expansion_factor and not params.sort_by:
        return NOTHING_TO_MERGE
    return None
