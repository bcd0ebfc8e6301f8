"""The number of buckets of a partition with consistent hashing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.format.consistent_hashing import FOLDER, MAX_BYTES, SUFFIX, DamagedMetadataError, HashingMetadata, Versions
from service.lake.history import is_archived
from service.model.storage_errors import PathNotFoundError

if TYPE_CHECKING:
    from service.lake.storage import Storage
    from service.lake.table_config import TableConfig
    from service.lake.timeline import Timeline

_MAX_FILES = 10_000


def read_num_buckets(storage: Storage, config: TableConfig, timeline: Timeline, path: str) -> int:
    """Returns the number of buckets by the partition's committed metadata; 0 if these are missing or damaged, which an
    audit reports. Raises StorageError."""
    folder = f"{FOLDER}/{path}".rstrip("/")
    names = [entry.name for entry in storage.list(folder, most=_MAX_FILES)]
    pending = {each.requested_time for each in timeline.pending()}

    def has_completed(instant: str) -> bool:
        if instant in pending:
            return False
        return bool(timeline.completed(instant)) or is_archived(storage, config, timeline, instant)

    instant = Versions.of(names, has_completed).in_force
    try:
        content = storage.read(f"{folder}/{instant}{SUFFIX}", most=MAX_BYTES) if instant else b""
        return len(HashingMetadata.from_json(instant, content).ends) if instant else 0
    except (DamagedMetadataError, PathNotFoundError):
        return 0
