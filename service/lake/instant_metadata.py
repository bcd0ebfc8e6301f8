"""The metadata of a completed instant, read without a JVM.

Commits are JSON in table version 6. All other metadata, and commits from version 8 on, is Avro with its schema in the
file.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import fastavro

from jobs.format.stale_writes import known_of, repaired_of
from service.lake.commit import WRITING_ACTIONS
from service.lake.timeline import file_name_of
from service.model.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from service.lake.instant import Instant
    from service.lake.storage import Storage
    from service.lake.table_config import TableConfig

FLINK_CHECKPOINT = "flink_checkpoint_id"
"""Key in the extra metadata of Flink's commits, if the job has `write.extra.metadata.enabled` (`StreamerUtil`, 1.2)."""

_AVRO = b"Obj\x01"
_META_PREFIX = "_hoodie_"
_DIGEST_BYTES = 16
_ROW_COUNTS = ("numInserts", "numUpdateWrites", "numDeletes")


@dataclass(frozen=True)
class InstantMetadata:
    """The counts are those of `service.lake.commit.Commit`.

    `partitions` is None if the metadata does not name the touched partitions. By partition path: `replaced` holds file
    ids, `base_rows` the rows in each base file that the instant wrote (by name), `written` the rows that it inserted,
    updated or deleted in each file group (by file id). `schema` is a digest that is equal for equal columns, None
    without a schema. `rolled_back` are the requested times of the instants that it undid, `repaired` those whose rows
    it moved to where they belong, `known` those that a replacement by Groundskeeper took into account.
    `flink_checkpoint` is the checkpoint of the Flink job that made it, if the metadata names it.
    """

    operation: str | None = None
    rows_written: int | None = None
    rows_deleted: int | None = None
    bytes_written: int | None = None
    partitions: tuple[str, ...] | None = ()
    file_groups: int = 0
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    base_rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    written: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    schema: str | None = None
    rolled_back: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    known: frozenset[str] | None = None
    flink_checkpoint: str | None = None


def decode(content: bytes, where: str) -> dict[str, Any]:
    """Decodes the record in a timeline file; empty for an empty file, which some actions leave. Raises StorageError."""
    if not content:
        return {}
    try:
        record = next(fastavro.reader(io.BytesIO(content))) if content.startswith(_AVRO) else json.loads(content)
    except Exception as error:  # fastavro raises many types on damaged files
        raise StorageError(f"{where} is damaged: {type(error).__name__}: {error}") from error
    if not isinstance(record, dict):
        raise StorageError(f"{where} is damaged: it contains no record")
    return record


def read_metadata(storage: Storage, config: TableConfig, instant: Instant) -> InstantMetadata:
    """Reads a completed instant of the active timeline. Raises PathNotFoundError if it is archived, StorageError."""
    path = f"{config.timeline_path}/{file_name_of(instant)}"
    return parse_metadata(instant.action, storage.read(path), f"{storage.base_path}/{path}")


def parse_metadata(action: str, content: bytes, where: str) -> InstantMetadata:
    """Parses the content of a timeline file. `action` is the action at completion; `where` names the file in errors.
    Raises StorageError."""
    record = decode(content, where)
    try:
        if action in WRITING_ACTIONS:
            return _of_commit(record)
        if action == "clean":
            return InstantMetadata(partitions=_keys(record.get("partitionMetadata")))
        if action == "rollback":
            return _of_rollbacks([record])
        if action == "restore":
            undone = (record.get("hoodieRestoreMetadata") or {}).values()
            return _of_rollbacks([each for rollbacks in undone for each in rollbacks])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StorageError(f"{where} is damaged: {type(error).__name__}: {error}") from error
    return InstantMetadata()


def _of_commit(record: Mapping[str, Any]) -> InstantMetadata:
    """Parses Hudi 1.2 `HoodieCommitMetadata`, `HoodieReplaceCommitMetadata` and their `HoodieWriteStat`s."""
    stats = [
        (partition, stat) for partition, each in (record.get("partitionToWriteStats") or {}).items() for stat in each
    ]
    replaced = {p: tuple(ids) for p, ids in (record.get("partitionToReplaceFileIds") or {}).items()}
    groups = {(partition, stat["fileId"]) for partition, stat in stats}
    groups.update((partition, file_id) for partition, file_ids in replaced.items() for file_id in file_ids)
    base_rows: dict[str, dict[str, int]] = {}
    written: dict[str, dict[str, int]] = {}
    for partition, stat in stats:
        into = written.setdefault(partition, {})
        into[stat["fileId"]] = into.get(stat["fileId"], 0) + sum(_count(stat, name) for name in _ROW_COUNTS)
        name = (stat.get("path") or "").rpartition("/")[2]
        if name and not name.startswith("."):
            base_rows.setdefault(partition, {})[name] = int(stat.get("numWrites") or 0)
    extra = record.get("extraMetadata") or {}
    schema = extra.get("schema")
    return InstantMetadata(
        operation=record.get("operationType"),
        rows_written=_sum(stats, "numInserts") + _sum(stats, "numUpdateWrites"),
        rows_deleted=_sum(stats, "numDeletes"),
        bytes_written=_sum(stats, "totalWriteBytes"),
        partitions=tuple(sorted({partition for partition, _ in groups} | set(replaced))),
        file_groups=len(groups),
        replaced=replaced,
        base_rows=base_rows,
        written=written,
        schema=schema_digest(schema) if schema else None,
        repaired=repaired_of(extra),
        known=known_of(extra),
        flink_checkpoint=extra.get(FLINK_CHECKPOINT),
    )


def _of_rollbacks(records: Iterable[Mapping[str, Any]]) -> InstantMetadata:
    partitions: set[str] = set()
    undone: list[str] = []
    for record in records:
        partitions.update(record.get("partitionMetadata") or {})
        undone.extend(record.get("commitsRollback") or [])
    return InstantMetadata(partitions=tuple(sorted(partitions)), rolled_back=tuple(undone))


def schema_digest(schema: str) -> str | None:
    """Returns a digest that is equal for schemas of the same columns, None if `schema` is not a schema.

    Ignores what differs between writers: the names of records, the order of null in a union, and meta columns.
    """
    try:
        shape = _shape(json.loads(schema))
    except (ValueError, KeyError, TypeError, AttributeError):
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


def _keys(found: Mapping[str, Any] | None) -> tuple[str, ...] | None:
    return None if found is None else tuple(sorted(found))


def _sum(stats: list[tuple[str, Mapping[str, Any]]], name: str) -> int:
    return sum(_count(stat, name) for _, stat in stats)


def _count(stat: Mapping[str, Any], name: str) -> int:
    return max(int(stat.get(name) or 0), 0)
