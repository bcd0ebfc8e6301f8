"""Submissions of a scheduler that repeats its tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, cast

from groundskeeper_client.client import Client
from groundskeeper_client.errors import ClientError, JobEndedError, NoAnswerError, UnreachableError
from groundskeeper_client.exchange import ENDED
from groundskeeper_client.generated import calls
from groundskeeper_client.generated.models import JobOut, JobState


def submitted_once(
    client: Client, table_id: str, body: Mapping[str, Any], *, run: Sequence[object], tries: int
) -> JobOut:
    """Returns the job of an earlier try of the same run if that job is still useful. Otherwise submits a job.

    `run` identifies the run: it begins with the scheduler's name, and is the same in all tries. `tries` is the number
    of this try, from 1. No try submits more than one job. Raises the errors of `Client.send`.
    """
    what = [*map(str, run), body["kind"], body.get("params") or {}, bool(body.get("dry_run"))]
    name = sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:40]
    for number in range(1, tries + 1):
        # The service validates the body, because its errors explain better what is wrong.
        call = calls.submit_job(table_id, cast("calls.SubmitJobBody", body), idempotency_key=f"{name}-{number}")
        job = client.send(call)
        if _serves(job):
            break
    return job


def _serves(job: JobOut) -> bool:
    """Returns whether a later try can wait for this job, or use its result. The result of a dry run is not used,
    because the plan may have been refused."""
    if job.state in ENDED:
        return job.state is JobState.SUCCEEDED and not job.dry_run
    return not job.cancel_requested


@contextmanager
def cancelled_with_the_run(cancel: Callable[[], object], warn: Callable[[str], object]) -> Iterator[None]:
    """Calls `cancel` if the block is left before the job has ended. Does not cancel the job if the service is
    unavailable, because then a retry finds the job."""
    try:
        yield
    except (JobEndedError, NoAnswerError, UnreachableError):
        raise
    except BaseException:
        try:
            cancel()
        except ClientError as error:
            warn(f"The job was not cancelled: {error}")
        raise
