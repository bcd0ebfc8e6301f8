"""The records in timeline files, as far as the service reads them, and within bounds: what they contain is stored and
sent on.

Commits are JSON in table version 6. All other metadata, and commits from version 8 on, is Avro with its schema in the
file.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from service.lake.avro_file import MAGIC, first_record
from service.lake.storage import MAX_METADATA_BYTES
from service.model.errors import StorageError

MAX_COUNT = 2**53
"""The first number that JSON does not carry exactly (RFC 8259). No table has as many bytes."""

_MAX_PARTITIONS = 100_000
_MAX_FILES = 1_000_000

Text = Annotated[str, msgspec.Meta(max_length=4096, pattern=r"^[^\x00]*$")]
Name = Annotated[str, msgspec.Meta(max_length=32, pattern=r"^[^\x00]*$")]
Count = Annotated[int, msgspec.Meta(gt=-MAX_COUNT, lt=MAX_COUNT)]

Item = TypeVar("Item")
ByPartition = Annotated[dict[Text, Item], msgspec.Meta(max_length=_MAX_PARTITIONS)]
Many = Annotated[list[Item], msgspec.Meta(max_length=_MAX_FILES)]


class WriteStat(msgspec.Struct, rename="camel"):
    """Hudi 1.2 `HoodieWriteStat`. Counts that are not known are null or negative."""

    file_id: Text
    path: Text | None = None
    num_writes: Count | None = None
    num_inserts: Count | None = None
    num_update_writes: Count | None = None
    num_deletes: Count | None = None
    total_write_bytes: Count | None = None


class CommitRecord(msgspec.Struct, rename="camel"):
    """Hudi 1.2 `HoodieCommitMetadata` and `HoodieReplaceCommitMetadata`."""

    partition_to_write_stats: ByPartition[Many[WriteStat]] | None = None
    partition_to_replace_file_ids: ByPartition[Many[Text]] | None = None
    operation_type: Name | None = None
    extra_metadata: dict[str, str | None] | None = None


class CleanRecord(msgspec.Struct, rename="camel"):
    """Hudi 1.2 `HoodieCleanMetadata`."""

    partition_metadata: ByPartition[Any] | None = None


class RollbackRecord(msgspec.Struct, rename="camel"):
    """Hudi 1.2 `HoodieRollbackMetadata`."""

    partition_metadata: ByPartition[Any] | None = None
    commits_rollback: Many[Text] | None = None


class RestoreRecord(msgspec.Struct, rename="camel"):
    """Hudi 1.2 `HoodieRestoreMetadata`."""

    hoodie_restore_metadata: dict[str, Many[RollbackRecord]] | None = None


class ReplaceRequest(msgspec.Struct, rename="camel"):
    """Hudi 1.2 `HoodieRequestedReplaceMetadata`."""

    clustering_plan: Any = None


Record = TypeVar("Record", bound=msgspec.Struct)


def decode(content: bytes, kind: type[Record], where: str) -> Record:
    """Decodes the record in a timeline file; an empty one for an empty file, which some actions leave.

    Raises StorageError for damage, and for what exceeds the bounds.
    """
    if len(content) > MAX_METADATA_BYTES:
        raise StorageError(f"{where} has more than {MAX_METADATA_BYTES} bytes")
    try:
        if not content:
            return kind()
        if content.startswith(MAGIC):
            return msgspec.convert(first_record(content), kind, strict=False)
        return msgspec.json.decode(content, type=kind, strict=False)
    except Exception as error:  # fastavro raises many types on damaged files
        raise StorageError(f"{where} is damaged: {type(error).__name__}: {error}") from error
