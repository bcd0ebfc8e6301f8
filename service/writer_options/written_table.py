"""The properties of a table on which the options of its writers depend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jobs.contract import BucketIndex
from jobs.format.index_definitions import ENABLE_RECORDS
from service.catalog.registration import Registration
from service.lake.table import BucketIndexKind, TableType
from service.writer_options.known_options import LATEST


@dataclass(frozen=True)
class Callback:
    """The address to which a writer reports its commits, with a key or headers. They are credentials, if the service
    requires credentials."""

    url: str
    key: str | None = None
    headers: str | None = None


@dataclass(frozen=True)
class Target:
    """The table of the writer, which need not exist yet. Options that depend on unknown fields are left out."""

    base_path: str
    name: str | None = None
    table_type: TableType | None = None
    table_version: int | None = None  # None if the version is not known.
    record_key_fields: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    partition_fields: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()  # Names and Arrow's types; empty if the columns are not known.
    index: BucketIndex | None = None  # The index of the registration.
    num_buckets: int = 0  # The current number; 0 without an index.
    lock_provider: str = "filesystem"
    lock_options: Mapping[str, str] = field(default_factory=dict)  # Secrets are masked.
    index_options: Mapping[str, str] = field(default_factory=dict)  # Without these Spark deletes the table's indexes.
    is_non_blocking: bool = False  # Whether file groups have the fixed ids of NBCC.
    has_consistent_hashing: bool = False
    has_flink: bool = False  # Whether Flink writes the table, too.
    hudi_version: str = LATEST  # The writer's version.
    exists: bool = True

    @property
    def has_record_index(self) -> bool:
        return not self.index_options.keys().isdisjoint(ENABLE_RECORDS.values())

    @classmethod
    def of(
        cls,
        table: Registration,
        *,
        lock_options: Mapping[str, str],
        num_buckets: int,
        has_flink: bool = False,
        hudi_version: str | None = None,
    ) -> Target:
        """Describes a registered table. The default of `hudi_version` is the declared version of its writers."""
        profile, layout = table.profile, table.profile.get("bucket_layout") or {}
        table_type = profile.get("table_type")
        return cls(
            base_path=table.base_path,
            name=table.name,
            table_type=TableType(table_type) if table_type else None,
            table_version=profile.get("table_version"),
            record_key_fields=tuple(profile.get("record_key_fields") or ()),
            ordering_fields=tuple(profile.get("ordering_fields") or ()),
            partition_fields=tuple(profile.get("partition_fields") or ()),
            columns=tuple((each["name"], each["type"]) for each in profile.get("columns") or ()),
            index=table.index,
            num_buckets=num_buckets,
            lock_provider=table.lock.provider,
            lock_options=lock_options,
            index_options=profile.get("index_options") or {},
            is_non_blocking=bool(layout.get("fixed_file_ids")),
            has_consistent_hashing=layout.get("kind") == BucketIndexKind.CONSISTENT_HASHING.value,
            has_flink=has_flink,
            hudi_version=hudi_version or table.writers.hudi_version or LATEST,
        )
