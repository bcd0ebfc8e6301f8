"""The resource, which makes a client from Dagster's configuration."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from dagster import AssetExecutionContext, ConfigurableResource, OpExecutionContext, get_dagster_logger

from groundskeeper_client import Client, calls
from groundskeeper_client.generated.models import JobDetail
from groundskeeper_client.patience import PatientClient
from groundskeeper_client.questions import id_of
from groundskeeper_client.submission import cancelled_with_the_run, submitted_once


class GroundskeeperResource(ConfigurableResource):
    """A client of the service. `url` is the service's address, `token` a token with the role operator; the role reader
    is enough for sensors."""

    url: str
    token: str = ""

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Yields a client, which is closed at the end of the block."""
        with Client(self.url, self.token or None) as client:
            yield client

    def table_id(self, table: str) -> str:
        """Returns the id of the table with this id, name or base path. Raises TableUnknownError."""
        with self.client() as client:
            return id_of(client, table)

    def run_job(
        self,
        table: str,
        kind: str,
        params: Mapping[str, Any] | None = None,
        *,
        dry_run: bool = False,
        context: OpExecutionContext | AssetExecutionContext | None = None,
        idempotency_key: str | None = None,
        timeout_seconds: float | None = None,
        poll_seconds: float = 2.0,
    ) -> JobDetail:
        """Submits a job and waits for its end. The job is cancelled if the run is ended meanwhile, or if
        `timeout_seconds` are over. A retry of the step to which `context` belongs waits for the job of an earlier try,
        unless that job has failed or was cancelled. An outage of the service of up to ten minutes only delays the
        calls.

        Raises JobEndedError if the job did not succeed, WaitedTooLongError, or another ClientError.
        """
        log = get_dagster_logger()
        body = {"kind": kind, "params": dict(params or {}), "dry_run": dry_run}
        with PatientClient(self.url, self.token or None) as client:
            table_id = id_of(client, table)
            if context is None:
                call = calls.submit_job(table_id, cast("calls.SubmitJobBody", body), idempotency_key=idempotency_key)
                job = client.send(call)
            else:
                run = ("dagster", context.run_id, context.get_step_execution_context().step.key)
                job = submitted_once(client, table_id, body, run=run, tries=context.retry_number + 1)
            log.info(f"Submitted {kind} of {table} as {job.id}")
            with cancelled_with_the_run(lambda: client.send(calls.cancel_job(job.id)), log.warning):
                return client.wait_for(job, seconds=timeout_seconds, poll_seconds=poll_seconds)
