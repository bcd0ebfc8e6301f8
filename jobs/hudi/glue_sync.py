"""AWS Glue's tables of one Hudi table.

The entries are those of Hudi's `AwsGlueCatalogSyncTool` (1.2.0), whose classes are not in Hudi's bundle for Spark; the
calls are made by `boto3`.

- Glue takes 100 partitions in a request that creates or changes them, and 25 in one that deletes them.
- An update of a table replaces its whole entry. So each one keeps what others have set, and names the version that it
  has read: an update by somebody else in between makes it fail instead of being lost.
- Each partition has columns of its own, which Hudi's tool leaves as they were at its creation; Athena refuses a
  partition whose types differ. So a change of columns is written to the partitions first, and then to the table: if it
  is interrupted, the next sync finds the difference again.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from jobs.errors import MetastoreError, MetastoreUnavailableError
from jobs.format.partition_values import values_of
from jobs.format.server_addresses import GLUE, glue_endpoint
from jobs.hudi.hadoop import storage_of
from jobs.hudi.metastore_table import LAST_SYNCED, Definition, MetastoreTable
from jobs.job_params import SyncStrategy
from jobs.storage import s3
from jobs.storage_errors import StorageDeniedError, StorageLoginError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from jobs.errors import JobError
    from jobs.format.partition_values import PartitionChanges
    from jobs.hudi.metastore_table import Target
    from jobs.hudi.table import HudiTable

CONNECT_SECONDS = 3
SILENCE_SECONDS = 20
_ATTEMPTS = 5
_CREATED_AT_ONCE, _DELETED_AT_ONCE = 100, 25
_LISTS_FILES = "hudi.metadata-listing-enabled"
_REGION = re.compile(r"(?:^|\.)glue(?:-fips)?\.([a-z0-9-]+)\.(?:api\.aws|amazonaws\.com(?:\.cn)?)$")
_LOGIN = {
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "UnrecognizedClientException",
}
_DENIED = {"AccessDeniedException", "GlueEncryptionException"}
_BUSY = {
    "ConcurrentModificationException",
    "InternalServiceException",
    "OperationTimeoutException",
    "ServiceUnavailable",
    "ThrottlingException",
    "VersionMismatchException",
}


@dataclass(frozen=True)
class _Wanted:
    """One table of the catalog: its name, and whether it merges logs and is read-optimized (`HiveSyncTool.doSync`)."""

    name: str
    merges_logs: bool
    is_read_optimized: bool


class Glue:
    """The catalog of one account and region, for one sync of one table. Not thread-safe."""

    def __init__(self, table: HudiTable, target: Target, timeline: Any) -> None:
        """Connects to nothing yet. Raises MetastoreError without `boto3`."""
        self._table, self.target = table, target
        self._definition = Definition(table, target, timeline)
        self._client, self._account = _client(table, target.uris)

    def close(self) -> None:
        self._client.close()

    # -- reading

    def has_database(self) -> bool:
        return self._unless_missing(lambda: self._call("get_database", Name=self._database)) is not None

    def tables(self, names: Sequence[str]) -> dict[str, MetastoreTable | None]:
        """Returns these tables with all of their partitions; None for one that does not exist."""
        return {name: self._read(name) for name in names}

    def _read(self, name: str) -> MetastoreTable | None:
        found = self._entry(name)
        if found is None:
            return None
        storage = found.get("StorageDescriptor") or {}
        keys = _types(found.get("PartitionKeys") or [])
        listed = self._partitions(name) if keys else ()
        return MetastoreTable(
            # A view has no location.
            location=storage.get("Location") or "",
            is_hudi="hoodie" in (storage.get("InputFormat") or "").lower(),
            columns=_types(storage.get("Columns") or []),
            partition_columns=keys,
            partitions=dict(listed),
            synced=(found.get("Parameters") or {}).get(LAST_SYNCED),
        )

    def columns(self) -> tuple[dict[str, str], dict[str, str]]:
        """Returns the columns that the catalog's tables should have, and their partition columns."""
        return self._wanted_columns

    def refuses(self, before: Mapping[str, str], after: Mapping[str, str]) -> bool:  # noqa: ARG002 - as of Hive
        """Returns False: Glue accepts each change of columns."""
        return False

    # -- writing

    def sync(self) -> None:
        """Creates the database and the tables, or brings their columns and properties up to the table."""
        if self.target.create_database and not self.has_database():
            self._call("create_database", DatabaseInput={"Name": self._database})
        for wanted in self._tables():
            found = self._entry(wanted.name)
            if found is None:
                self._call("create_table", DatabaseName=self._database, TableInput=self._new(wanted))
            else:
                self._update(wanted, found)

    def complete(self, names: Sequence[str]) -> None:
        """Records the synced commit, after the partitions are as they should be."""
        synced = self._definition.synced()
        for name in names:
            found = self._entry(name)
            if found is not None and not synced.items() <= (found.get("Parameters") or {}).items():
                self._replace(found, Parameters={**(found.get("Parameters") or {}), **synced})

    def change(self, name: str, changes: PartitionChanges) -> None:
        """Adds, moves and drops partitions, without touching their files."""
        of_table = {"DatabaseName": self._database, "TableName": name}
        for some in _batches(changes.dropped, _DELETED_AT_ONCE):
            dropped = [{"Values": list(values)} for values in some]
            self._call_many("batch_delete_partition", "EntityNotFoundException", **of_table, PartitionsToDelete=dropped)
        if not (changes.added or changes.moved):
            return
        storage = (self._entry(name) or {}).get("StorageDescriptor") or {}
        for paths in _batches(changes.added, _CREATED_AT_ONCE):
            added = [self._partition(path, storage) for path in paths]
            self._call_many("batch_create_partition", "AlreadyExistsException", **of_table, PartitionInputList=added)
        moved = {self._values(path): self._partition(path, storage) for path in changes.moved}
        self._change_partitions(name, moved)

    def _update(self, wanted: _Wanted, found: Mapping[str, Any]) -> None:
        storage, columns = dict(found["StorageDescriptor"]), self._wanted_columns[0]
        there = _types(storage.get("Columns") or [])
        changes: dict[str, Any] = {}
        if any(there.get(name) != kind for name, kind in columns.items()):
            storage["Columns"] = self._described(columns, storage.get("Columns") or [])
            if found.get("PartitionKeys"):
                self._cascade(wanted.name, storage)
            changes["StorageDescriptor"] = storage
        new = self._new(wanted)
        parameters = {**(found.get("Parameters") or {}), **new["Parameters"]}
        if parameters != found.get("Parameters"):
            changes["Parameters"] = parameters
        if changes:
            self._replace(found, **changes)

    def _cascade(self, name: str, storage: Mapping[str, Any]) -> None:
        """Gives the columns of the table to all of its partitions."""
        self._change_partitions(
            name,
            {
                values: {"Values": list(values), "StorageDescriptor": {**storage, "Location": location}}
                for values, location in self._partitions(name)
            },
        )

    def _change_partitions(self, name: str, changed: Mapping[tuple[str, ...], Mapping[str, Any]]) -> None:
        for some in _batches(changed.items(), _CREATED_AT_ONCE):
            entries = [{"PartitionValueList": list(values), "PartitionInput": new} for values, new in some]
            of_table = {"DatabaseName": self._database, "TableName": name}
            self._call_many("batch_update_partition", "EntityNotFoundException", **of_table, Entries=entries)

    def _replace(self, found: Mapping[str, Any], **changes: Any) -> None:
        kept = {name: value for name, value in found.items() if name in self._members}
        self._call(
            "update_table",
            DatabaseName=self._database,
            TableInput={**kept, **changes},
            # A version for each sync would soon reach Glue's limit of versions.
            SkipArchive=True,
            **({"VersionId": found["VersionId"]} if found.get("VersionId") else {}),
        )

    def _new(self, wanted: _Wanted) -> dict[str, Any]:
        formats = self._definition.formats(merges_logs=wanted.merges_logs, is_read_optimized=wanted.is_read_optimized)
        columns, keys = self._wanted_columns
        lists_files = str("files" in self._table.metadata_partitions).upper()
        return {
            "Name": wanted.name,
            "TableType": "EXTERNAL_TABLE",
            "Parameters": {"EXTERNAL": "TRUE", _LISTS_FILES: lists_files, **formats.table_properties},
            "PartitionKeys": self._described(keys, []),
            "StorageDescriptor": {
                "Columns": self._described(columns, []),
                "Location": _as_s3(self._table.base_path),
                "InputFormat": formats.input_format,
                "OutputFormat": formats.output_format,
                "SerdeInfo": {
                    "SerializationLibrary": formats.serde,
                    "Parameters": {**formats.serde_properties, "serialization.format": "1"},
                },
            },
        }

    def _tables(self) -> list[_Wanted]:
        name, strategy = self.target.table, self.target.strategy
        if not self._table.is_merge_on_read:
            return [_Wanted(name, merges_logs=False, is_read_optimized=False)]
        if strategy != SyncStrategy.ALL:
            is_optimized = strategy == SyncStrategy.RO
            return [_Wanted(name, merges_logs=not is_optimized, is_read_optimized=is_optimized)]
        optimized = _Wanted(f"{name}_ro", merges_logs=False, is_read_optimized=True)
        return [optimized, *(_Wanted(each, merges_logs=True, is_read_optimized=False) for each in (f"{name}_rt", name))]

    def _described(self, types: Mapping[str, str], before: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
        """Returns columns with the comments that the table's schema documents, or that they had `before`."""
        comments = {each["Name"].lower(): each["Comment"] for each in before if each.get("Comment")} | self._comments
        described = [
            {"Name": name, "Type": kind, "Comment": comments.get(name, "")[:255]} for name, kind in types.items()
        ]
        return [{name: value for name, value in each.items() if value} for each in described]

    def _partition(self, path: str, storage: Mapping[str, Any]) -> dict[str, Any]:
        location = _as_s3(f"{self._table.base_path.rstrip('/')}/{path}")
        return {"Values": list(self._values(path)), "StorageDescriptor": {**storage, "Location": location}}

    def _values(self, path: str) -> tuple[str, ...]:
        return values_of(self.target.extractor, path)

    @cached_property
    def _wanted_columns(self) -> tuple[dict[str, str], dict[str, str]]:
        columns, keys = self._definition.columns()
        # Glue's tables have the partition columns apart, as Hive's do.
        return {name: kind for name, kind in columns.items() if name not in keys}, keys

    @cached_property
    def _comments(self) -> dict[str, str]:
        return self._definition.comments()

    @cached_property
    def _members(self) -> frozenset[str]:
        return frozenset(self._client.meta.service_model.shape_for("TableInput").members)

    # -- calls

    @property
    def _database(self) -> str:
        return self.target.database.lower()

    def _entry(self, name: str) -> dict[str, Any] | None:
        found = self._unless_missing(lambda: self._call("get_table", DatabaseName=self._database, Name=name.lower()))
        return None if found is None else found["Table"]

    def _partitions(self, name: str) -> Iterator[tuple[tuple[str, ...], str]]:
        with _translated():
            pages = self._client.get_paginator("get_partitions").paginate(
                DatabaseName=self._database, TableName=name, ExcludeColumnSchema=True, **self._account
            )
            for page in pages:
                for each in page["Partitions"]:
                    yield tuple(each["Values"]), (each.get("StorageDescriptor") or {}).get("Location") or ""

    def _call(self, name: str, **arguments: Any) -> dict[str, Any]:
        with _translated():
            answer: dict[str, Any] = getattr(self._client, name)(**arguments, **self._account)
            return answer

    def _call_many(self, name: str, harmless: str, **arguments: Any) -> None:
        """Makes a call for several partitions; each may fail for itself. `harmless` is an error that the comparison
        after the call takes care of."""
        for each in self._call(name, **arguments).get("Errors") or []:
            error = each.get("ErrorDetail") or {}
            if error.get("ErrorCode") != harmless:
                values = "/".join(each.get("PartitionValues") or each.get("PartitionValueList") or [])
                raise _error(error.get("ErrorCode") or "", f"{values}: {error.get('ErrorMessage') or ''}")

    def _unless_missing(self, call: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
        try:
            return call()
        except _MissingError:
            return None


class _MissingError(MetastoreError):
    """Glue has no such database or table."""


def _client(table: HudiTable, uri: str) -> tuple[Any, dict[str, str]]:
    """Returns the client, and the arguments of each call that name the account."""
    try:
        import boto3
        from botocore.config import Config
    except ImportError as error:
        hint = "Install Groundskeeper's extra `glue` on the worker: pip install 'groundskeeper[glue]'."
        raise MetastoreError(f"The worker has no client of {GLUE}: {error}.", hint=hint) from error
    endpoint, account = glue_endpoint(uri)
    match = _REGION.search(endpoint.partition("://")[2].partition(":")[0])
    keys, region = _of_storage(table)
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=SILENCE_SECONDS,
        retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
    )
    session = boto3.session.Session(
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
        aws_session_token=keys.session_token,
        region_name=match[1] if match else region,
    )
    region_name = session.region_name or "us-east-1"
    client = session.client("glue", endpoint_url=endpoint, region_name=region_name, config=config)
    return client, {"CatalogId": account} if account else {}


def _of_storage(table: HudiTable) -> tuple[s3.Credentials, str | None]:
    """Returns the keys and the region in the storage options of the table, if it is on S3 and has any. Without keys,
    the usual sources of Amazon's SDK apply: environment, profile, web identity, container, instance."""
    store = storage_of(table).store
    return (store.credentials(), store.region) if isinstance(store, s3.S3) else (s3.Credentials(), None)


def _types(columns: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {each["Name"].lower(): str(each.get("Type") or "").lower() for each in columns}


def _as_s3(path: str) -> str:
    """Returns the location as Glue's readers know it (`S3Utils.s3aToS3`)."""
    return re.sub(r"^s3[an]://", "s3://", path)


def _batches(items: Iterable[Any], most: int) -> Iterator[list[Any]]:
    source = iter(items)
    while some := list(islice(source, most)):
        yield some


@contextmanager
def _translated() -> Iterator[None]:
    from botocore import exceptions

    try:
        yield
    except exceptions.ClientError as error:
        found = error.response.get("Error") or {}
        raise _error(str(found.get("Code") or ""), str(found.get("Message") or "")) from error
    except exceptions.NoCredentialsError as error:
        raise StorageLoginError(f"{GLUE}: {error}") from error
    except (exceptions.ConnectionError, exceptions.HTTPClientError) as error:
        raise MetastoreUnavailableError(f"{error}"[:300]) from error
    except exceptions.BotoCoreError as error:
        raise MetastoreError(f"{type(error).__name__}: {error}"[:300]) from error


def _error(code: str, message: str) -> JobError:
    detail = f"{GLUE}: {code}: {message}"[:300]
    if code == "EntityNotFoundException":
        return _MissingError(detail)
    if code in _LOGIN:
        return StorageLoginError(detail)
    if code in _DENIED:
        hint = "Let the role of the workers read and change the databases, tables and partitions of the Glue catalog."
        return StorageDeniedError(detail, hint=hint)
    return MetastoreUnavailableError(detail) if code in _BUSY else MetastoreError(detail)
