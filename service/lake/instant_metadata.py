"""The metadata of instants. It is read from timeline files without a JVM, and the service keeps a part of it.

Only the fields that the service uses are read. Their sizes are limited, because they are stored and sent on. Commits
are JSON in table version 6. All other metadata, and commits from version 8 on, are Avro with the schema in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Annotated, Any, TypeVar

import msgspec

from jobs.format import flink_marks
from jobs.format.stale_writes import is_repair, known_of, operation_of, repaired_of
from service.lake.avro_file import MAGIC, first_record
from service.lake.commit import WRITING_ACTIONS
from service.lake.instant import Instant
from service.lake.storage import MAX_METADATA_BYTES, Storage
from service.lake.table_config import TableConfig
from service.lake.timeline import file_name_of
from service.model.storage_errors import FileDamagedError, StorageError

_MAX_COUNT = 2**53
"""A count of this number or more is damaged: JSON does not carry it exactly (RFC 8259), and no table has as many
bytes."""

_MAX_PARTITIONS = 100_000
_MAX_FILES = 1_000_000
# `HoodieWriteStat.NULL_COMMIT` says that the file group was new.
_NO_COMMIT = (None, "", "null")
_META_PREFIX = "_hoodie_"
_DIGEST_BYTES = 16
_MAX_EVIDENCE = 100
_MOST_KEPT = 64 * 1024

Text = Annotated[str, msgspec.Meta(max_length=4096, pattern=r"^[^\x00]*$")]
Name = Annotated[str, msgspec.Meta(max_length=32, pattern=r"^[^\x00]*$")]
Count = Annotated[int, msgspec.Meta(gt=-_MAX_COUNT, lt=_MAX_COUNT)]

Record = TypeVar("Record", bound=msgspec.Struct)
Item = TypeVar("Item")
ByPartition = Annotated[dict[Text, Item], msgspec.Meta(max_length=_MAX_PARTITIONS)]
Many = Annotated[list[Item], msgspec.Meta(max_length=_MAX_FILES)]


class WriteStat(msgspec.Struct, rename="camel"):
    """Hudi 1.2 `HoodieWriteStat`. Counts that are not known are null or negative."""

    file_id: Text
    path: Text | None = None
    prev_commit: Text | None = None
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


_KINDS: dict[str, type[msgspec.Struct]] = {
    **dict.fromkeys(WRITING_ACTIONS, CommitRecord),
    "clean": CleanRecord,
    "rollback": RollbackRecord,
    "restore": RestoreRecord,
}


class ReplaceRequest(msgspec.Struct, rename="camel"):
    """Hudi 1.2 `HoodieRequestedReplaceMetadata`."""

    clustering_plan: Any = None


class InstantMetadata(msgspec.Struct, frozen=True):
    """The metadata of a completed instant. The counts are those of `service.lake.commit.Commit`.

    `partitions` is None if the metadata does not name the touched partitions.

    Five members have partition paths as keys. `replaced` has file ids. `base_rows` has the rows in each base file that
    the instant wrote, by name. `written` has the rows that the instant inserted, updated or deleted in each file group,
    by file id; `inserted` counts only the inserted ones. `rewritten` has the file groups in which the instant wrote a
    newer version of a base file.

    Three members have requested times of other instants: `rolled_back` of those that this instant undid, `repaired` of
    those whose rows it moved to where they belong, and `known` of those that a replacement by Groundskeeper took into
    account. `schema` is a digest that is equal for equal columns; None without a schema. `is_repair` says whether a
    repair made the instant. `flink_checkpoint` is the checkpoint of the Flink job that made it, if it is named.
    """

    operation: str | None = None
    rows_written: int | None = None
    rows_deleted: int | None = None
    bytes_written: int | None = None
    partitions: tuple[str, ...] | None = ()
    file_groups: int = 0
    replaced: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    base_rows: Mapping[str, Mapping[str, int]] = msgspec.field(default_factory=dict)
    written: Mapping[str, Mapping[str, int]] = msgspec.field(default_factory=dict)
    inserted: Mapping[str, Mapping[str, int]] = msgspec.field(default_factory=dict)
    rewritten: Mapping[str, frozenset[str]] = msgspec.field(default_factory=dict)
    schema: str | None = None
    rolled_back: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    is_repair: bool = False
    known: frozenset[str] | None = None
    flink_checkpoint: str | None = None


def read_metadata(storage: Storage, config: TableConfig, instant: Instant) -> InstantMetadata:
    """Reads the metadata of a completed instant of the active timeline. Raises StorageError, and PathNotFoundError if
    the instant was archived."""
    path = f"{config.timeline_path}/{file_name_of(instant)}"
    return parse_metadata(instant.action, storage.read(path), f"{storage.base_path}/{path}")


def parse_metadata(action: str, content: bytes, where: str) -> InstantMetadata:
    """Parses the content of a timeline file. `action` is the action at completion; `where` names the file in errors.
    Raises StorageError."""
    kind = _KINDS.get(action)
    return InstantMetadata() if kind is None else _metadata(decode(content, kind, where), where)


def metadata_of(action: str, decoded: Any, where: str) -> InstantMetadata:
    """Returns the metadata in a decoded record of the history. `decoded` is None for an action without metadata. Raises
    StorageError for damage."""
    kind = _KINDS.get(action)
    if kind is None or decoded is None:
        return InstantMetadata()
    try:
        return _metadata(msgspec.convert(decoded, kind, strict=False), where)
    except msgspec.ValidationError as error:
        raise FileDamagedError(f"{where} is damaged: {error}") from error


def _metadata(record: msgspec.Struct, where: str) -> InstantMetadata:
    match record:
        case CommitRecord():
            return _of_commit(record, where)
        case CleanRecord(partition_metadata=cleaned):
            return InstantMetadata(partitions=None if cleaned is None else tuple(sorted(cleaned)))
        case RollbackRecord():
            return _of_rollbacks([record])
        case RestoreRecord(hoodie_restore_metadata=undone):
            return _of_rollbacks([each for rollbacks in (undone or {}).values() for each in rollbacks])
    return InstantMetadata()


def decode(content: bytes, kind: type[Record], where: str) -> Record:
    """Decodes the record in a timeline file. An empty file, which some actions leave, gives an empty record. Raises
    StorageError for damage, and for files beyond the bounds."""
    if len(content) > MAX_METADATA_BYTES:
        raise StorageError(f"{where} has more than {MAX_METADATA_BYTES} bytes")
    try:
        if not content:
            return kind()
        if content.startswith(MAGIC):
            return msgspec.convert(first_record(content), kind, strict=False)
        return msgspec.json.decode(content, type=kind, strict=False)
    except Exception as error:  # fastavro raises many types of errors for damaged files.
        raise FileDamagedError(f"{where} is damaged: {type(error).__name__}: {error}") from error


def _of_commit(record: CommitRecord, where: str) -> InstantMetadata:
    replaced = {p: tuple(ids) for p, ids in (record.partition_to_replace_file_ids or {}).items()}
    base_rows: dict[str, dict[str, int]] = {}
    written: dict[str, dict[str, int]] = {}
    inserted: dict[str, dict[str, int]] = {}
    rewritten: dict[str, set[str]] = {}
    rows_written = rows_deleted = bytes_written = 0
    for partition, stats in (record.partition_to_write_stats or {}).items():
        if stats:
            into = written[partition] = {}
            inserts = inserted[partition] = {}
        for stat in stats:
            rows, deleted = _count(stat.num_inserts) + _count(stat.num_update_writes), _count(stat.num_deletes)
            rows_written += rows
            rows_deleted += deleted
            bytes_written += _count(stat.total_write_bytes)
            into[stat.file_id] = into.get(stat.file_id, 0) + rows + deleted
            if stat.num_inserts and stat.num_inserts > 0:
                inserts[stat.file_id] = inserts.get(stat.file_id, 0) + stat.num_inserts
            name = (stat.path or "").rpartition("/")[2]
            if name and name[0] != ".":
                base_rows.setdefault(partition, {})[name] = _count(stat.num_writes)
                if stat.prev_commit not in _NO_COMMIT:
                    rewritten.setdefault(partition, set()).add(stat.file_id)
    replaced_groups = sum(len(set(ids).difference(written.get(p, ()))) for p, ids in replaced.items())
    extra = {name: value for name, value in (record.extra_metadata or {}).items() if value is not None}
    schema = extra.get("schema")
    checkpoint = extra.get(flink_marks.CHECKPOINT)
    return InstantMetadata(
        operation=operation_of(record.operation_type, extra),
        rows_written=_possible(rows_written, where),
        rows_deleted=_possible(rows_deleted, where),
        bytes_written=_possible(bytes_written, where),
        partitions=tuple(sorted(written.keys() | replaced.keys())),
        file_groups=sum(map(len, written.values())) + replaced_groups,
        replaced=replaced,
        base_rows=base_rows,
        written=written,
        inserted=inserted,
        rewritten={partition: frozenset(ids) for partition, ids in rewritten.items()},
        schema=schema_digest(schema) if schema else None,
        repaired=repaired_of(extra),
        is_repair=is_repair(extra),
        known=known_of(extra),
        flink_checkpoint=None if checkpoint is None else checkpoint.replace("\0", "")[:_MAX_EVIDENCE],
    )


def _of_rollbacks(records: Iterable[RollbackRecord]) -> InstantMetadata:
    partitions: set[str] = set()
    undone: list[str] = []
    for record in records:
        partitions.update(record.partition_metadata or {})
        undone.extend(record.commits_rollback or [])
    return InstantMetadata(partitions=tuple(sorted(partitions)), rolled_back=tuple(undone))


def schema_digest(schema: str) -> str | None:
    """Returns a digest that is equal for schemas with the same columns; None if `schema` is not a schema. The digest
    ignores what differs between writers: the names of records, the order of null in a union, and meta columns."""
    return _digest(schema) if len(schema) <= _MOST_KEPT else _digest.__wrapped__(schema)


@lru_cache(maxsize=256)
def _digest(schema: str) -> str | None:
    """Returns the digest of an Avro schema. Results are kept, because all commits of most tables have the same
    schema."""
    try:
        shape = _shape(json.loads(schema))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return blake2b(json.dumps(shape).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _shape(schema: Any) -> Any:
    if isinstance(schema, str):
        return schema
    if isinstance(schema, list):
        return sorted((_shape(branch) for branch in schema), key=str)
    kind = schema["type"]
    match kind:
        case "record":
            fields = [each for each in schema["fields"] if not each["name"].startswith(_META_PREFIX)]
            return [[each["name"], _shape(each["type"])] for each in fields]
        case "array":
            return ["array", _shape(schema["items"])]
        case "map":
            return ["map", _shape(schema["values"])]
    if not isinstance(kind, str):
        return _shape(kind)
    return [kind, *(schema.get(detail) for detail in ("logicalType", "precision", "scale", "size", "symbols"))]


def _possible(total: int, where: str) -> int:
    """Returns the total. Raises StorageError if no table can have as much."""
    if total >= _MAX_COUNT:
        raise FileDamagedError(f"{where} is damaged: its counts sum up to {total}")
    return total


def _count(value: int | None) -> int:
    return value if value and value > 0 else 0
