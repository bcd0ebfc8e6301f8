"""The resource: a client from Dagster's configuration."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from dagster import ConfigurableResource, get_dagster_logger

from groundskeeper_client import Client, ClientError, JobEndedError, calls
from groundskeeper_client.generated.models import JobDetail
from groundskeeper_client.questions import id_of


class GroundskeeperResource(ConfigurableResource):
    """A client of the service. `url` is the service's address, `token` a token with the role operator; the role reader
    is enough for sensors."""

    url: str
    token: str = ""

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Yields a client for as long as the block lasts."""
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
        idempotency_key: str | None = None,
        timeout_seconds: float | None = None,
        poll_seconds: float = 2.0,
    ) -> JobDetail:
        """Submits a job and waits for its end. If the run is ended meanwhile, or `timeout_seconds` are over, it cancels
        the job.

        Raises JobEndedError if it did not succeed, WaitedTooLongError, or another ClientError.
        """
        log = get_dagster_logger()
        body = cast("calls.SubmitJobBody", {"kind": kind, "params": dict(params or {}), "dry_run": dry_run})
        with self.client() as client:
            table_id = id_of(client, table)
            job = client.send(calls.submit_job(table_id, body, idempotency_key=idempotency_key))
            log.info(f"Submitted {kind} of {table} as {job.id}")
            with _cancelled_with_the_run(lambda: client.send(calls.cancel_job(job.id))):
                return client.wait_for(job, seconds=timeout_seconds, poll_seconds=poll_seconds)


@contextmanager
def _cancelled_with_the_run(cancel: Callable[[], object]) -> Iterator[None]:
    """Calls `cancel` if the block is left before the job has ended."""
    try:
        yield
    except JobEndedError:
        raise
    except BaseException:
        try:
            cancel()
        except ClientError as error:
            get_dagster_logger().warning(f"The job was not cancelled: {error}")
        raise
