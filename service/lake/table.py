"""The profile of a Hudi table, from an examination."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from jobs.contract import JsonMapped


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
class BucketLayout(JsonMapped):
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


@dataclass(frozen=True)
class Column:
    """A column that is not one of Hudi's meta columns; `type` as Arrow spells it."""

    name: str
    type: str


@dataclass(frozen=True)
class TableProfile(JsonMapped):
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
