"""Errors of jobs."""

from __future__ import annotations

from service.model.errors import ConflictError


class JobNotRetriableError(ConflictError):
    type = "job-not-retriable"
    title = "Only a job that failed or was cancelled can be submitted again"
    hint = "Wait for its end. Submit a new job to do the same work once more."
