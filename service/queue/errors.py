"""Errors of jobs."""

from __future__ import annotations

from typing import Final

from jobs.problems.plans import BUCKET_FILES_NOT_MERGEABLE, EXPANSION_FACTOR_WITHOUT_BUCKETS, PLAN_UNUSABLE
from service.model.errors import ConflictError


class JobNotRetriableError(ConflictError):
    type = "job-not-retriable"
    title = "Only a job that failed or was cancelled can be submitted again"
    hint = "Wait for its end. Submit a new job to do the same work once more."
    why = (
        "A retry repeats a job that has failed or was cancelled. This job has succeeded, has not ended yet, or "
        "ended with an unknown outcome, so a repetition might do its work twice."
    )
    example = "Job job_4be1c0d2f6a89b37 is running."


class ExpansionFactorWithoutBucketsError(ConflictError, like=EXPANSION_FACTOR_WITHOUT_BUCKETS):
    pass


class BucketFilesNotMergeableError(ConflictError, like=BUCKET_FILES_NOT_MERGEABLE):
    pass


class PlanUnusableError(ConflictError, like=PLAN_UNUSABLE):
    pass


REFUSALS_OF_CLUSTERING: Final[tuple[type[ConflictError], ...]] = (
    ExpansionFactorWithoutBucketsError,
    BucketFilesNotMergeableError,
    PlanUnusableError,
)
"""Requests that a worker would certainly refuse (`jobs.clustering_refusals`)."""
