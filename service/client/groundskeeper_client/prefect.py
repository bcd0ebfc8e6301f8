"""The parts for Prefect: a block with the address and the token, and a task that runs a job."""

import json
from collections.abc import Mapping
from threading import Lock
from typing import Any

from prefect import get_run_logger, task
from prefect.blocks.core import Block
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext, TaskRunContext
from pydantic import SecretStr

from groundskeeper_client import Client, calls
from groundskeeper_client.generated.models import JobDetail
from groundskeeper_client.patience import PatientClient
from groundskeeper_client.questions import id_of
from groundskeeper_client.submission import cancelled_with_the_run, submitted_once


class GroundskeeperCredentials(Block):
    """A client of the service. `url` is the service's address, `token` a token with the role operator."""

    _block_type_name = "Groundskeeper"

    url: str
    token: SecretStr = SecretStr("")

    def client(self, *, patient: bool = False) -> Client:
        """Returns a client, which the caller closes. The calls of a patient client wait for the end of an outage."""
        return (PatientClient if patient else Client)(self.url, self.token.get_secret_value() or None)


# The result is not cached, because a cached result would belong to another job.
@task(name="groundskeeper-job", cache_policy=NO_CACHE, persist_result=False)
def run_job(
    credentials: GroundskeeperCredentials,
    table: str,
    kind: str,
    params: Mapping[str, Any] | None = None,
    *,
    dry_run: bool = False,
    timeout_seconds: float | None = None,
    poll_seconds: float = 2.0,
) -> JobDetail:
    """Submits a job on the table (id, name or base path) and waits for its end. The job is cancelled if the process of
    the flow run is ended meanwhile, or if `timeout_seconds` are over. A retry of the task run or of the flow run takes
    the job of an earlier try, unless that job has failed or was cancelled. An outage of the service of up to ten
    minutes only delays the task.

    Raises JobEndedError if the job did not succeed, WaitedTooLongError, or another ClientError.
    """
    log, body = get_run_logger(), {"kind": kind, "params": dict(params or {}), "dry_run": dry_run}
    with credentials.client(patient=True) as client:
        table_id = id_of(client, table)
        run, tries = _run_and_tries(json.dumps([table_id, body], sort_keys=True, default=str))
        job = submitted_once(client, table_id, body, run=run, tries=tries)
        log.info("Submitted %s of %s as %s", kind, table, job.id)
        with cancelled_with_the_run(lambda: client.send(calls.cancel_job(job.id)), log.warning):
            return client.wait_for(job, seconds=timeout_seconds, poll_seconds=poll_seconds)


_LOCK = Lock()


def _run_and_tries(arguments: str) -> tuple[tuple[object, ...], int]:
    """Returns a name for this call that is the same in all tries, and the number of this try, from 1.

    A retry of the flow run makes new task runs (Prefect 3.9.1). A call in such a retry is recognized by its order among
    the calls with the same arguments. Other machines do not know that order, so there only the task run names a call.
    """
    context, flow = TaskRunContext.get(), FlowRunContext.get()
    assert context is not None, "a task has a context"
    run, tries = context.task_run, max(1, context.task_run.run_count)
    if flow is None or flow.flow_run is None or flow.detached:
        return ("prefect", run.id), tries
    # Prefect makes a new context for each try of the flow run.
    counts, mine = flow.task_run_dynamic_keys, f"{run.id} {arguments}"
    with _LOCK:
        if mine not in counts:
            counts[mine] = counts[arguments] = int(counts.get(arguments, 0)) + 1
    earlier_tries = max(0, flow.flow_run.run_count - 1) * (context.task.retries + 1)
    return ("prefect", flow.flow_run.id, counts[mine]), earlier_tries + tries
