"""Instants that have left the active timeline.

Table version 8 and later store them in Parquet files (Hudi 1.2.0 `LSMTimeline`), which this module reads. Earlier
versions store them in a log of Avro blocks, which it does not read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from service.lake.instant import Instant, InstantState
from service.lake.instant_metadata import Name
from service.lake.parquet_file import opened
from service.model.storage_errors import FileDamagedError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.lake.storage import Entry, Storage
    from service.lake.table_config import TableConfig
    from service.lake.timeline import Timeline

_FILE = re.compile(r"(?P<first>\d+)_(?P<last>\d+)_\d+\.parquet")
_MAX_ROWS = 1_000_000
_BATCH = 1000


class _Row(msgspec.Struct, rename="camel"):
    instant_time: Name
    completion_time: Name | None = None
    action: Name = ""
    metadata: bytes | None = None


@dataclass(frozen=True)
class Archived:
    """A completed instant with the metadata from its timeline file."""

    instant: Instant
    metadata: bytes


def is_archived(storage: Storage, config: TableConfig, timeline: Timeline, requested_time: str) -> bool:
    """Returns whether an instant completed and left the active timeline.

    Before table version 8, any instant older than the active timeline counts as archived.
    """
    if config.timeline_layout < 2:
        return bool(timeline.instants) and requested_time < timeline.instants[0].requested_time
    for first, last, entry in _files(storage, config):
        if first <= requested_time <= last and requested_time in _instants(storage, entry):
            return True
    return False


def has_history(storage: Storage, config: TableConfig) -> bool:
    """Returns whether any instant was ever archived. Only for tables before version 8."""
    return any(not entry.is_folder for entry in storage.list(config.archive_path))


def archived_since(storage: Storage, config: TableConfig, since: str) -> tuple[Archived, ...]:
    """Returns the archived instants that were requested at `since` or later. Only from table version 8 on.

    Reads only files that contain such instants. A compaction of the history keeps its inputs for a while, so several
    files may contain the same instant.
    """
    found: dict[tuple[str, str], Archived] = {}
    for _, last, entry in _files(storage, config):
        if last < since:
            continue
        for row in _rows(storage, entry, ["instantTime", "completionTime", "action", "metadata"]):
            if row.instant_time >= since:
                instant = Instant(row.instant_time, row.action, InstantState.COMPLETED, row.completion_time)
                found[instant.requested_time, instant.action] = Archived(instant, row.metadata or b"")
    return tuple(found[key] for key in sorted(found))


def _instants(storage: Storage, entry: Entry) -> set[str]:
    return {row.instant_time for row in _rows(storage, entry, ["instantTime"])}


def _rows(storage: Storage, entry: Entry, columns: list[str]) -> Iterator[_Row]:
    with opened(storage, entry.path) as file:
        if file.metadata.num_rows > _MAX_ROWS:
            raise StorageError(f"{storage.base_path}/{entry.path} has more than {_MAX_ROWS} rows")
        for batch in file.iter_batches(_BATCH, columns=columns, use_threads=False):
            yield from (_row(row, entry.path) for row in batch.to_pylist())


def _row(row: dict[str, Any], path: str) -> _Row:
    try:
        return msgspec.convert(row, _Row)
    except msgspec.ValidationError as error:
        raise FileDamagedError(f"{path} is damaged: {error}") from error


def _files(storage: Storage, config: TableConfig) -> Iterator[tuple[str, str, Entry]]:
    """Yields each file of the LSM timeline with the first and the last instant in it."""
    for entry in storage.list(config.history_path):
        match = _FILE.fullmatch(entry.name)
        if match:
            yield match["first"], match["last"], entry
