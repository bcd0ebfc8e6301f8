"""Lists the tables of AWS Glue through `boto3` (extra `glue` or `aws`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jobs.format import glue_errors, paging
from jobs.format.server_addresses import glue_endpoint, glue_region
from jobs.storage import aws_session
from jobs.storage.store import LoginError
from service.registration.catalogs import errors
from service.registration.catalogs.catalog import Broken, Entry, Source, qualified, tables_of, true_location

_CONNECT_SECONDS, _SILENCE_SECONDS, _ATTEMPTS = 3, 10, 5


def entries(source: Source) -> Iterator[Entry | Broken | None]:
    """Lists all wanted databases. Yields None after each page. Raises the errors of catalogs."""
    client, account = _client(source)
    try:
        for page in _pages(client, "get_databases", "DatabaseList", **account):
            yield None
            for database in filter(source.wants_database, (str(each["Name"]) for each in page)):
                tables = _pages(client, "get_tables", "TableList", DatabaseName=database, **account)
                yield from tables_of(database, tables, _entry)
    finally:
        client.close()


def _entry(database: str, table: dict[str, Any]) -> Entry:
    storage = table.get("StorageDescriptor") or {}
    return Entry(
        name=qualified(database, str(table["Name"])),
        location=true_location(storage.get("Location"), (storage.get("SerdeInfo") or {}).get("Parameters")),
        owner=table.get("Owner"),
        input_format=storage.get("InputFormat") or "",
        parameters=table.get("Parameters") or {},
    )


def _pages(client: Any, call: str, member: str, **arguments: str) -> Iterator[list[dict[str, Any]]]:
    with _translated():
        pages = client.get_paginator(call).paginate(**arguments)
        said = f"{call}({', '.join(arguments.values())})"
        yield from paging.bounded(
            (page.get(member) or [] for page in pages), lambda why: errors.CatalogError(f"{said}: {why}")
        )


def _client(source: Source) -> tuple[Any, dict[str, str]]:
    try:
        import boto3
        from botocore.config import Config
    except ImportError as error:
        raise errors.CatalogClientError(str(error)) from error
    endpoint, of_account = glue_endpoint(source.address)
    declared = json.loads(source.account) if source.account else {}
    region = glue_region(endpoint) or source.region or declared.get("region") or None
    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_SILENCE_SECONDS,
        # Each attempt waits longer than the one before, with a random part.
        retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
    )
    with _translated():
        keys = aws_session.current(source.account).credentials if source.account else aws_session.Credentials()
        session = boto3.session.Session(
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key,
            aws_session_token=keys.session_token,
            region_name=region,
        )
        client = session.client(
            "glue",
            endpoint_url=endpoint,
            region_name=session.region_name or "us-east-1",
            verify=declared.get("ca_file") or None,
            config=config,
        )
    return client, {"CatalogId": of_account} if of_account else {}


@contextmanager
def _translated() -> Iterator[None]:
    from botocore import exceptions

    try:
        yield
    except exceptions.ClientError as error:
        found = error.response.get("Error") or {}
        code = str(found.get("Code") or "")
        message = str(found.get("Message") or "")
        raise _kind_of(code, message)(f"{code}: {message}"[:600]) from error
    except (exceptions.NoCredentialsError, exceptions.CredentialRetrievalError, LoginError) as error:
        raise errors.CatalogLoginError(str(error)[:600]) from error
    except (exceptions.ConnectionError, exceptions.HTTPClientError) as error:
        raise errors.CatalogUnavailableError(str(error)[:600]) from error
    except exceptions.BotoCoreError as error:
        raise errors.CatalogError(f"{type(error).__name__}: {error}"[:600]) from error
    except OSError as error:
        # STS, from which a role was requested, has refused it or does not answer.
        raise (errors.CatalogDeniedError if "AccessDenied" in str(error) else errors.CatalogUnavailableError)(
            str(error)[:600]
        ) from error


def _kind_of(code: str, message: str) -> type[errors.CatalogError]:
    # If something in front of Glue answers, such as a proxy, the code is only a status, and the text may have the code.
    codes = {code} | (set(re.findall(r"\w+", message)) if code.isdecimal() else set())
    if codes & glue_errors.LOGIN or code == "401":
        return errors.CatalogLoginError
    if codes & glue_errors.DENIED or code == "403":
        return errors.CatalogDeniedError
    if codes & glue_errors.THROTTLED or code == "429":
        return errors.CatalogThrottledError
    return (
        errors.CatalogUnavailableError
        if codes & glue_errors.AWAY or code in ("502", "503", "504")
        else errors.CatalogError
    )
