"""The profile of a Hudi table, from an examination."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from jobs.contract import JsonMapped
from jobs.spec import Spec


class TableType(StrEnum):
    """Hudi's `HoodieTableType`."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class BucketIndexKind(StrEnum):
    """Kinds of bucket indexes. `UNKNOWN`: there are no file groups yet, or they do not fit any kind."""

    SIMPLE = "simple"
    CONSISTENT_HASHING = "consistent_hashing"
    NONE = "none"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class BucketLayout(JsonMapped):
    """The bucket index that the file groups indicate.

    `keys_checked` is 0 if there was nothing to check, or there is no index. `fixed_file_ids` says that the file ids are
    the same in each partition. If there is a `hashing_config`, it sets each partition's number of buckets, and the
    writers' options do not.
    """

    kind: Annotated[BucketIndexKind, Spec("What the names of the files indicate", examples=("simple",))]
    file_groups: int = 0
    highest_bucket: Annotated[int | None, Spec("Highest number of a bucket; null without files", examples=(3,))] = None
    keys_checked: Annotated[int, Spec("Sampled record keys that were found in their buckets", examples=(40,))] = 0
    fixed_file_ids: Annotated[bool, Spec("Whether the file ids are those of non-blocking concurrency control")] = False
    hashing_config: Annotated[str | None, Spec("Instant of the hashing config in force; null without one")] = None


@dataclass(frozen=True)
class Column:
    """A column that is not one of Hudi's meta columns."""

    name: Annotated[str, Spec("Name of the column", examples=("id",))]
    type: Annotated[str, Spec("Type of the column, as Arrow spells it", examples=("int64",))]


@dataclass(frozen=True)
class TableProfile(JsonMapped):
    """The result of the last examination: `hoodie.properties`, the timeline and a few base files.

    `ordering_fields` are called precombine field up to table version 6. `pending_instants` counts requested and
    inflight instants.
    """

    table_type: Annotated[TableType, Spec("Type of the table", examples=("MERGE_ON_READ",))]
    table_version: Annotated[int, Spec("Version of the table", examples=(9,))]
    timeline_layout: Annotated[int, Spec("1, or 2 from table version 8 on", examples=(2,))]
    timeline_path: Annotated[str, Spec("Folder of the timeline below the base path", examples=(".hoodie/timeline",))]
    bucket_layout: Annotated[BucketLayout, Spec("The bucket index that the file groups indicate")]
    partition_fields: Annotated[tuple[str, ...], Spec("Fields of the partition path", examples=(["region"],))] = ()
    record_key_fields: Annotated[tuple[str, ...], Spec("Fields of the record key", examples=(["id"],))] = ()
    ordering_fields: Annotated[tuple[str, ...], Spec("Fields that order rows of a key", examples=(["ts"],))] = ()
    key_generator: Annotated[str | None, Spec("Class or type of the key generator; null if not stored")] = None
    metadata_partitions: Annotated[tuple[str, ...], Spec("Parts of the metadata table", examples=(["files"],))] = ()
    index_options: Annotated[
        Mapping[str, str],
        Spec(
            "Options without which a Spark writer deletes the table's indexes",
            examples=({"hoodie.metadata.record.index.enable": "true"},),
        ),
    ] = field(default_factory=dict)
    indexes_mixed_by_cleans: Annotated[
        tuple[str, ...],
        Spec("Expression indexes, each with the index of its type: no cleaning runs beside them", examples=([],)),
    ] = ()
    base_file_format: Annotated[str, Spec("Format of the base files", examples=("PARQUET",))] = "PARQUET"
    populates_meta_fields: Annotated[bool, Spec("Whether rows have Hudi's meta columns")] = True
    drops_partition_columns: Annotated[bool, Spec("Whether files lack the partition columns")] = False
    hive_style_partitioning: Annotated[bool, Spec("Whether paths are like `region=eu`", examples=(True,))] = False
    url_encoded_partitions: Annotated[bool, Spec("Whether paths are URL-encoded")] = False
    columns: Annotated[tuple[Column, ...], Spec("Columns besides Hudi's; empty until the table has data")] = ()
    pending_instants: Annotated[int, Spec("Instants that had not completed", examples=(0,))] = 0
    warnings: Annotated[tuple[str, ...], Spec("Sentences for the owner", examples=([],))] = ()
