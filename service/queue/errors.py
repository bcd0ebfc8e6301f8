"""Errors of jobs."""

from __future__ import annotations

from typing import Final

from jobs.clustering_refusals import NO_BUCKETS, NOTHING_TO_MERGE, PLAN_UNUSABLE
from service.model.errors import ConflictError


class JobNotRetriableError(ConflictError):
    type = "job-not-retriable"
    title = "Only a job that failed or was cancelled can be submitted again"
    hint = "Wait for its end. Submit a new job to do the same work once more."


class ExpansionFactorWithoutBucketsError(ConflictError):
    type = NO_BUCKETS.type
    title = NO_BUCKETS.title
    hint = NO_BUCKETS.hint


class BucketFilesNotMergeableError(ConflictError):
    type = NOTHING_TO_MERGE.type
    title = NOTHING_TO_MERGE.title
    hint = NOTHING_TO_MERGE.hint


class PlanUnusableError(ConflictError):
    type = PLAN_UNUSABLE.type
    title = PLAN_UNUSABLE.title
    hint = PLAN_UNUSABLE.hint


REFUSALS_OF_CLUSTERING: Final[tuple[type[ConflictError], ...]] = (
    ExpansionFactorWithoutBucketsError,
    BucketFilesNotMergeableError,
    PlanUnusableError,
)
"""What a worker would refuse for certain (`jobs.clustering_refusals`)."""
