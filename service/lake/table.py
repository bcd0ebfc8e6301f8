"""The profile of a Hudi table, from an examination."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class TableType(StrEnum):
    """Hudi's `HoodieTableType`."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class BucketIndexKind(StrEnum):
    """`UNKNOWN`: there are no file groups yet, or they do not fit any kind."""

    SIMPLE = "simple"
    CONSISTENT_HASHING = "consistent_hashing"
    NONE = "none"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class BucketLayout:
    """The bucket index that the file groups indicate.

    `highest_bucket` is the highest bucket id of a file group, None without one. `keys_checked` counts the sampled
    record keys that were found in the bucket that the registered index computes for them (0: there was nothing to
    check, or there is no index). `fixed_file_ids`: the file ids are those of non-blocking concurrency control, the same
    in each partition. `hashing_config` is the instant of the hashing config in force: the config, not the writers'
    options, sets each partition's number of buckets.
    """

    kind: BucketIndexKind
    file_groups: int = 0
    highest_bucket: int | None = None
    keys_checked: int = 0
    fixed_file_ids: bool = False
    hashing_config: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "kind": self.kind.value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> BucketLayout:
        return cls(**{**_known(cls, data), "kind": BucketIndexKind(data["kind"])})


@dataclass(frozen=True)
class Column:
    """A column that is not one of Hudi's meta columns; `type` as Arrow spells it."""

    name: str
    type: str


@dataclass(frozen=True)
class TableProfile:
    """The result of the last examination: `hoodie.properties`, the timeline and a few base files.

    `timeline_path` is relative to the base path. `ordering_fields` are called precombine field up to table version 6.
    `columns` is empty until the table has data. `pending_instants` counts requested and inflight ones. `warnings` are
    sentences for the owner.
    """

    table_type: TableType
    table_version: int
    timeline_layout: int
    timeline_path: str
    bucket_layout: BucketLayout
    partition_fields: tuple[str, ...] = ()
    record_key_fields: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    key_generator: str | None = None
    metadata_partitions: tuple[str, ...] = ()
    base_file_format: str = "PARQUET"
    populates_meta_fields: bool = True
    drops_partition_columns: bool = False
    hive_style_partitioning: bool = False
    url_encoded_partitions: bool = False
    columns: tuple[Column, ...] = field(default=())
    pending_instants: int = 0
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        data = {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in ((f.name, getattr(self, f.name)) for f in dataclasses.fields(self))
        }
        data["table_type"] = self.table_type.value
        data["bucket_layout"] = self.bucket_layout.to_json()
        data["columns"] = [dataclasses.asdict(column) for column in self.columns]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TableProfile:
        known: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in _known(cls, data).items()
        }
        known["table_type"] = TableType(data["table_type"])
        known["bucket_layout"] = BucketLayout.from_json(data["bucket_layout"])
        known["columns"] = tuple(Column(**_known(Column, column)) for column in data.get("columns", ()))
        return cls(**known)


def _known(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    names = {f.name for f in dataclasses.fields(cls)}
    return {key: value for key, value in data.items() if key in names}
