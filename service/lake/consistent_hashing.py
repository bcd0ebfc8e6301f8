"""The buckets of a partition with consistent hashing: their number and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jobs.format.consistent_hashing import FOLDER, MAX_BYTES, SUFFIX, DamagedMetadataError, HashingMetadata, Versions
from service.lake.history import is_archived
from service.lake.snapshot import PartitionState
from service.lake.storage import Storage
from service.lake.table_config import TableConfig
from service.lake.timeline import Timeline
from service.model.storage_errors import PathNotFoundError

_MAX_FILES = 10_000


def read_metadata(storage: Storage, config: TableConfig, timeline: Timeline, path: str) -> HashingMetadata | None:
    """Returns the partition's committed metadata; None if it is missing or damaged, which an audit reports. Raises
    StorageError."""
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
        return HashingMetadata.from_json(instant, content) if instant else None
    except (DamagedMetadataError, PathNotFoundError):
        return None


def with_ranges(state: PartitionState, found: HashingMetadata | None, sizes: Mapping[str, int]) -> PartitionState:
    """Returns the partition's state with the figures of its hash ranges. `sizes` are the bytes of its file groups by
    file id. A bucket without a file group can neither be split nor merged."""
    if found is None:
        return state
    around = [sizes.get(each) for each in found.file_ids]
    pairs = list(zip(around, around[1:] + around[:1], strict=True)) if len(around) > 1 else []
    return replace(
        state,
        num_buckets=len(around),
        largest_range_bytes=max((each for each in around if each is not None), default=0),
        neighbours_bytes=min((max(a, b) for a, b in pairs if a is not None and b is not None), default=None),
    )
