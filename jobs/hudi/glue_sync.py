"""AWS Glue's tables of one Hudi table.

The entries are those of Hudi's `AwsGlueCatalogSyncTool` (1.2.0), whose classes are not in Hudi's bundle for Spark; the
calls are made by `boto3`.

- Glue takes 100 partitions in a request that creates or changes them, and 25 in one that deletes them.
- An update of a table replaces its whole entry. So each update keeps what others have set, and names the version of the
entry that it has read. If somebody else has updated the entry in between, the call fails, and their update is not lost.
- Each partition has a list of columns, which Hudi's tool leaves as it was when the partition was created; Athena
refuses a partition whose types differ. So a change of columns is written to the partitions first, and then to the
table: if it is interrupted, the next sync finds the difference again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from jobs.format.partition_values import PartitionChanges, values_of
from jobs.hudi.glue_client import GlueClient
from jobs.hudi.hadoop import storage_of
from jobs.hudi.metastore_table import LAST_SYNCED, Definition, MetastoreTable, Target
from jobs.hudi.table import HudiTable
from jobs.job_params import SyncStrategy
from jobs.storage import s3
from jobs.storage.aws_session import Credentials

_CREATED_AT_ONCE, _DELETED_AT_ONCE = 100, 25
_LISTS_FILES = "hudi.metadata-listing-enabled"


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
        self._client = GlueClient(target.uris, *_keys_and_region(table))

    def close(self) -> None:
        self._client.close()

    # -- reading

    def has_database(self) -> bool:
        return self._client.find("get_database", Name=self._database) is not None

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
            partitions={tuple(each["Values"]): _location(each) for each in listed},
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
            self._client.call("create_database", DatabaseInput={"Name": self._database})
        for wanted in self._tables():
            found = self._entry(wanted.name)
            if found is None:
                self._client.call("create_table", DatabaseName=self._database, TableInput=self._new(wanted))
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
        of_table = self._of_table(name)
        for batch in _batches(changes.dropped, _DELETED_AT_ONCE):
            dropped = [{"Values": list(values)} for values in batch]
            self._client.call_for_many(
                "batch_delete_partition", "EntityNotFoundException", **of_table, PartitionsToDelete=dropped
            )
        if not (changes.added or changes.moved):
            return
        storage = (self._entry(name) or {}).get("StorageDescriptor") or {}
        for paths in _batches(changes.added, _CREATED_AT_ONCE):
            added = [self._partition(path, storage) for path in paths]
            self._client.call_for_many(
                "batch_create_partition", "AlreadyExistsException", **of_table, PartitionInputList=added
            )
        moved = {self._values(path): self._partition(path, storage) for path in changes.moved}
        self._change_partitions(name, moved)

    def _update(self, wanted: _Wanted, found: Mapping[str, Any]) -> None:
        storage, columns = dict(found["StorageDescriptor"]), self._wanted_columns[0]
        present = _types(storage.get("Columns") or [])
        changes: dict[str, Any] = {}
        if any(present.get(name) != kind for name, kind in columns.items()):
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
        """Gives the columns of the table to all of its partitions, which keep what others have noted at them."""
        self._change_partitions(
            name,
            {
                tuple(each["Values"]): {
                    "Values": each["Values"],
                    "StorageDescriptor": {**storage, "Location": _location(each)},
                    "Parameters": each.get("Parameters") or {},
                }
                for each in self._partitions(name)
            },
        )

    def _change_partitions(self, name: str, changed: Mapping[tuple[str, ...], Mapping[str, Any]]) -> None:
        for batch in _batches(changed.items(), _CREATED_AT_ONCE):
            entries = [{"PartitionValueList": list(values), "PartitionInput": new} for values, new in batch]
            self._client.call_for_many(
                "batch_update_partition", "EntityNotFoundException", **self._of_table(name), Entries=entries
            )

    def _replace(self, found: Mapping[str, Any], **changes: Any) -> None:
        kept = {name: value for name, value in found.items() if name in self._members}
        self._client.call(
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
            "Name": wanted.name.lower(),
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
        return self._client.members("TableInput")

    @property
    def _database(self) -> str:
        return self.target.database.lower()

    def _of_table(self, name: str) -> dict[str, str]:
        """Returns the arguments that name a table. Glue keeps all names in lower case."""
        return {"DatabaseName": self._database, "TableName": name.lower()}

    def _entry(self, name: str) -> dict[str, Any] | None:
        found = self._client.find("get_table", DatabaseName=self._database, Name=name.lower())
        return None if found is None else found["Table"]

    def _partitions(self, name: str) -> Iterator[dict[str, Any]]:
        for page in self._client.pages(
            "get_partitions", "Partitions", **self._of_table(name), ExcludeColumnSchema=True
        ):
            yield from page


def _keys_and_region(table: HudiTable) -> tuple[Credentials, str | None]:
    """Returns the keys and the region in the storage options of the table, if the table is on S3 and has any."""
    store = storage_of(table).store
    return (store.credentials(), store.region) if isinstance(store, s3.S3) else (Credentials(), None)


def _location(partition: Mapping[str, Any]) -> str:
    return str((partition.get("StorageDescriptor") or {}).get("Location") or "")


def _types(columns: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {each["Name"].lower(): str(each.get("Type") or "").lower() for each in columns}


def _as_s3(path: str) -> str:
    """Returns the location as Glue's readers know it (`S3Utils.s3aToS3`)."""
    return re.sub(r"^s3[an]://", "s3://", path)


def _batches(items: Iterable[Any], most: int) -> Iterator[list[Any]]:
    source = iter(items)
    while batch := list(islice(source, most)):
        yield batch
