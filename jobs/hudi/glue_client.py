"""A client of AWS Glue's catalog, by `boto3`. Its errors are ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jobs.errors import JobError, MetastoreError, MetastoreUnavailableError
from jobs.format import glue_errors, paging
from jobs.format.server_addresses import GLUE, glue_endpoint, glue_region
from jobs.storage.aws_session import Credentials
from jobs.storage_errors import StorageDeniedError, StorageLoginError

CONNECT_SECONDS = 3
SILENCE_SECONDS = 20
ATTEMPTS = 5
_BUSY = glue_errors.THROTTLED | glue_errors.AWAY | glue_errors.CHANGED_MEANWHILE


class GlueMissingError(MetastoreError):
    """Glue has no such database, table or partition."""


class GlueClient:
    """Calls of the catalog of one account and region. Not thread-safe."""

    def __init__(self, uri: str, keys: Credentials, region: str | None) -> None:
        """Connects to nothing yet. Without `keys`, the usual sources of Amazon's SDK apply: environment, profile, web
        identity, container, instance. `region` counts if the endpoint names none. Raises MetastoreError without
        `boto3`."""
        try:
            import boto3
            from botocore.config import Config
        except ImportError as error:
            hint = "Install Groundskeeper's extra `glue` on the worker: pip install 'groundskeeper[glue]'."
            raise MetastoreError(f"The worker has no client of {GLUE}: {error}.", hint=hint) from error
        endpoint, account = glue_endpoint(uri)
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=SILENCE_SECONDS,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        )
        with _translated():
            session = boto3.session.Session(
                aws_access_key_id=keys.access_key,
                aws_secret_access_key=keys.secret_key,
                aws_session_token=keys.session_token,
                region_name=glue_region(endpoint) or region,
            )
            region_name = session.region_name or "us-east-1"
            self._client = session.client("glue", endpoint_url=endpoint, region_name=region_name, config=config)
        self._account = {"CatalogId": account} if account else {}

    def close(self) -> None:
        self._client.close()

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Raises GlueMissingError, MetastoreError, MetastoreUnavailableError, StorageLoginError and
        StorageDeniedError."""
        with _translated():
            answer: dict[str, Any] = getattr(self._client, name)(**arguments, **self._account)
            return answer

    def find(self, name: str, **arguments: Any) -> dict[str, Any] | None:
        """Makes a call, and returns None if what it names does not exist."""
        try:
            return self.call(name, **arguments)
        except GlueMissingError:
            return None

    def call_for_many(self, name: str, harmless: str, **arguments: Any) -> None:
        """Makes a call for several partitions, each of which may fail on its own. The error code `harmless` is
        ignored."""
        for each in self.call(name, **arguments).get("Errors") or []:
            error = each.get("ErrorDetail") or {}
            if error.get("ErrorCode") != harmless:
                values = "/".join(each.get("PartitionValues") or each.get("PartitionValueList") or [])
                raise error_of(error.get("ErrorCode") or "", f"{values}: {error.get('ErrorMessage') or ''}")

    def pages(self, name: str, member: str, **arguments: Any) -> Iterator[list[dict[str, Any]]]:
        """Yields the lists `member` of all answers. Raises MetastoreError if the list does not end."""
        with _translated():
            pages = self._client.get_paginator(name).paginate(**arguments, **self._account)
            yield from paging.bounded(
                (page.get(member) or [] for page in pages), lambda why: MetastoreError(f"{GLUE}: {name}: {why}")
            )

    def members(self, shape: str) -> frozenset[str]:
        """Returns the names of the members of a type in requests."""
        return frozenset(self._client.meta.service_model.shape_for(shape).members)


@contextmanager
def _translated() -> Iterator[None]:
    from botocore import exceptions

    try:
        yield
    except exceptions.ClientError as error:
        found = error.response.get("Error") or {}
        raise error_of(str(found.get("Code") or ""), str(found.get("Message") or "")) from error
    except exceptions.NoCredentialsError as error:
        raise StorageLoginError(f"{GLUE}: {error}") from error
    except (exceptions.ConnectionError, exceptions.HTTPClientError) as error:
        raise MetastoreUnavailableError(f"{error}"[:300]) from error
    except exceptions.BotoCoreError as error:
        raise MetastoreError(f"{type(error).__name__}: {error}"[:300]) from error


def error_of(code: str, message: str) -> JobError:
    detail = f"{GLUE}: {code}: {message}"[:300]
    if code == glue_errors.GONE:
        return GlueMissingError(detail)
    if code in glue_errors.LOGIN:
        return StorageLoginError(detail)
    if code in glue_errors.DENIED:
        hint = "Let the role of the workers read and change the databases, tables and partitions of the Glue catalog."
        return StorageDeniedError(detail, hint=hint)
    return MetastoreUnavailableError(detail) if code in _BUSY else MetastoreError(detail)
