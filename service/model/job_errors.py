"""Errors of jobs, and of incidents, which prevent jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jobs import errors as errors_of_jobs
from service.model.errors import ConflictError, NotFoundError


class JobNotFoundError(NotFoundError):
    type = "job-not-found"
    title = "No job with this id is known"
    hint = "GET /v1/jobs, or `groundskeeper jobs list`, lists the jobs."
    why = (
        "The id is not the id of a known job. Ended jobs are deleted after GROUNDSKEEPER_HISTORY_DAYS, and all jobs of"
        " a table when it is unregistered."
    )
    example = "There is no job job_4be1c0d2f6a89b37."


class IncidentNotFoundError(NotFoundError):
    type = "incident-not-found"
    title = "No incident with this id is known"
    hint = "GET /v1/incidents, or `groundskeeper incidents list`, lists the incidents."
    why = (
        "The id is not the id of a known incident. Closed incidents are deleted once their commit has left the table's"
        " active timeline."
    )
    example = "There is no incident inc_8c1d0e5f2a7b4963."


class JobConflictError(ConflictError):
    type = "job-conflict"
    title = "This job conflicts with another active job of the table"
    hint = "Wait for that job (`job_id`) to end, or cancel it first."
    why = (
        "A table can have one active job of each kind. In addition, only one active job may replace file groups, as a"
        " compaction, a clustering or an expansion does, because two such jobs would undo each other's work."
    )
    example = "Job job_4be1c0d2f6a89b37 (compaction) is running."
    example_members: ClassVar[Mapping[str, Any]] = {"job_id": "job_4be1c0d2f6a89b37"}


class IncidentOpenError(ConflictError):
    """`extensions["incident_ids"]` are the ids of the incidents that prevent the job."""

    type = "incident-open"
    title = "Rows of the table are misplaced, and this job might delete what their repair needs"
    hint = "Run a `repair` job first, or close the incidents (POST /v1/incidents/{id}/close) if nothing is wrong."
    why = (
        "A commit wrote rows to file groups that had been replaced, where no reader sees these rows. A repair brings"
        " the rows back from the files, and cleaning, archival and some other jobs would delete these files."
    )
    example = "1 incident of this table is open."
    example_members: ClassVar[Mapping[str, Any]] = {"incident_ids": ["inc_8c1d0e5f2a7b4963"]}


class IncidentClosedError(ConflictError):
    type = "incident-already-closed"
    title = "The incident is already closed"
    hint = "GET /v1/incidents shows its state and why it was closed."
    why = "The incident was repaired by a job, or somebody closed it before this call; an incident is closed once."
    example = "inc_8c1d0e5f2a7b4963 is repaired: 20260101120030000 brought its rows over"


class JobNotWaitingError(ConflictError):
    type = "job-not-waiting"
    title = "This job is not waiting for writers to be stopped"
    hint = "GET /v1/jobs/{id} shows its state, and `hand_over` whether it waits."
    why = (
        "Only a job that waits until the writers are stopped accepts a confirmation. This job has continued meanwhile,"
        " has ended, or never needed a confirmation."
    )
    example = "job_4be1c0d2f6a89b37 is running."


class FenceLosesFlinkError(ConflictError):
    type = "fence-loses-flink-batches"
    title = "A Flink job writes this table, and fencing would lose its batch"
    hint = (
        "Leave `on_active_writers` at `wait`: the job waits until the Flink job has been stopped with a savepoint."
        ' If no Flink job writes the table any more, PATCH it with `{"writers": {"engines": [...]}}`.'
    )
    why = (
        "Fencing rolls back the write that is in flight. Spark writes its batch again, but a Flink job has already"
        " completed its checkpoint, so the rows of the batch would be lost."
    )
    example = "flink writes the table."


class JobNotCancellableError(ConflictError):
    type = "job-already-ended"
    title = "The job has already ended"
    hint = "Only queued, leased and running jobs can be cancelled."
    why = "The job succeeded, failed or was cancelled before this call. The commits of the job stay."
    example = "job_4be1c0d2f6a89b37 is succeeded."


class IdempotencyKeyReusedError(ConflictError):
    type = "idempotency-key-reused"
    title = "This Idempotency-Key was used for another job of this table"
    hint = "Use a new key for a new job; repeat the same request to get the first response again (`job_id`)."
    why = (
        "An Idempotency-Key stands for one job of one table. This request has the key of an earlier job, but "
        "another kind or other parameters."
    )
    example = "The key belongs to job_4be1c0d2f6a89b37 (compaction)."
    example_members: ClassVar[Mapping[str, Any]] = {"job_id": "job_4be1c0d2f6a89b37"}


class LeaseLostError(ConflictError, like=errors_of_jobs.LeaseLostError):
    type = "lease-lost"
    title = "This attempt no longer holds the job"
    hint = "Stop and write nothing: another attempt may be running, or the job has ended."
