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


class ExpansionFactorWithoutBucketsError(ConflictError):
    type = EXPANSION_FACTOR_WITHOUT_BUCKETS.type
    title = EXPANSION_FACTOR_WITHOUT_BUCKETS.title
    hint = EXPANSION_FACTOR_WITHOUT_BUCKETS.hint
    why = EXPANSION_FACTOR_WITHOUT_BUCKETS.why
    example = EXPANSION_FACTOR_WITHOUT_BUCKETS.example


class BucketFilesNotMergeableError(ConflictError):
    type = BUCKET_FILES_NOT_MERGEABLE.type
    title = BUCKET_FILES_NOT_MERGEABLE.title
    hint = BUCKET_FILES_NOT_MERGEABLE.hint
    why = BUCKET_FILES_NOT_MERGEABLE.why
    example = BUCKET_FILES_NOT_MERGEABLE.example


class PlanUnusableError(ConflictError):
    type = PLAN_UNUSABLE.type
    title = PLAN_UNUSABLE.title
    hint = PLAN_UNUSABLE.hint
    why = PLAN_UNUSABLE.why
    example = PLAN_UNUSABLE.example


REFUSALS_OF_CLUSTERING: Final[tuple[type[ConflictError], ...]] = (
    ExpansionFactorWithoutBucketsError,
    BucketFilesNotMergeableError,
    PlanUnusableError,
)
"""Requests that a worker would certainly refuse (`jobs.clustering_refusals`)."""
