"""Instants that have left the active timeline.

From table version 8 on they are stored in Parquet files (Hudi 1.2.0 `LSMTimeline`), which this module reads. Earlier
versions store them in a log of Avro blocks, which it does not read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from service.lake.instant import Instant, InstantState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.lake.storage import Entry, Storage
    from service.lake.table_config import TableConfig
    from service.lake.timeline import Timeline

_FILE = re.compile(r"(?P<first>\d+)_(?P<last>\d+)_\d+\.parquet")
_COLUMNS = ["instantTime", "completionTime", "action", "metadata"]


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
        if first <= requested_time <= last:
            with storage.open(entry.path) as file:
                if requested_time in pq.read_table(file, columns=["instantTime"]).column(0).to_pylist():
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
        with storage.open(entry.path) as file:
            rows = pq.read_table(file, columns=_COLUMNS, filters=[("instantTime", ">=", since)]).to_pylist()
        for row in rows:
            instant = Instant(row["instantTime"], row["action"], InstantState.COMPLETED, row["completionTime"])
            found[instant.requested_time, instant.action] = Archived(instant, row["metadata"] or b"")
    return tuple(found[key] for key in sorted(found))


def _files(storage: Storage, config: TableConfig) -> Iterator[tuple[str, str, Entry]]:
    """Yields each file of the LSM timeline with the first and the last instant in it."""
    for entry in storage.list(config.history_path):
        match = _FILE.fullmatch(entry.name)
        if match:
            yield match["first"], match["last"], entry
