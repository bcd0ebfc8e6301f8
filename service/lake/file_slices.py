"""The latest file slice of each file group."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hudi import HudiTable

from jobs.format.file_names import bucket_of, parse_base_file_name, parse_log_file_name
from service.lake.table import TableType
from service.lake.table_config import META_FOLDER
from service.lake.timeline import COMPACTION_ACTIONS
from service.model.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.lake.storage import Entry, Storage
    from service.lake.table_config import TableConfig
    from service.lake.timeline import Timeline


@dataclass(frozen=True)
class FileSlice:
    """A base file and its log files; sizes in bytes. A log-only slice has no base file.

    `partition_path` is relative to the table, empty for a table without partitions. `base_file` and `logs` are names.
    """

    partition_path: str
    file_id: str
    base_file: str | None
    base_bytes: int
    logs: tuple[str, ...] = ()
    log_bytes: int = 0

    @property
    def bucket(self) -> int | None:
        return bucket_of(self.file_id)

    @property
    def base_path(self) -> str | None:
        """The path of the base file, relative to the table."""
        return None if self.base_file is None else _join(self.partition_path, self.base_file)


def read_snapshot(storage: Storage, config: TableConfig, timeline: Timeline) -> tuple[FileSlice, ...]:
    """Returns the slices as of the last completed instant, in the order of partition and file id.

    hudi-rs (0.5) handles replaced file groups and uncommitted files, but omits file groups that have no base file yet;
    those come from a listing. Raises StorageError.
    """
    if not any(instant.is_completed for instant in timeline.instants):
        return ()
    try:
        table = HudiTable(storage.base_path, options=dict(storage.hudi_options))
        found = table.get_file_slices()
        replaced = _replaced(table) if config.table_type is TableType.MERGE_ON_READ else set()
    except Exception as error:  # hudi-rs raises one type for everything
        raise StorageError(f"{storage.base_path}: the snapshot cannot be read: {error}") from error
    slices = [
        FileSlice(
            partition_path=s.partition_path,
            file_id=s.file_id,
            base_file=s.base_file_name or None,
            base_bytes=s.base_file_size,
            logs=tuple(s.log_file_names),
            log_bytes=sum(s.log_file_sizes),
        )
        for s in found
    ]
    if config.table_type is TableType.MERGE_ON_READ:
        slices.extend(_log_only(storage, timeline, replaced | {(s.partition_path, s.file_id) for s in slices}))
    return tuple(sorted(slices, key=lambda s: (s.partition_path, s.file_id)))


def _replaced(table: HudiTable) -> set[tuple[str, str]]:
    """Returns the file groups that completed replacecommits of the active timeline replaced."""
    timeline = table.get_timeline()
    groups: set[tuple[str, str]] = set()
    for instant in timeline.get_completed_replacecommits():
        metadata = json.loads(timeline.get_instant_metadata_in_json(instant))
        for partition, file_ids in (metadata.get("partitionToReplaceFileIds") or {}).items():
            groups.update((partition, file_id) for file_id in file_ids)
    return groups


def _log_only(storage: Storage, timeline: Timeline, elsewhere: set[tuple[str, str]]) -> Iterator[FileSlice]:
    """Yields the file groups that consist of log files only, as Flink writes them before the first compaction.

    A pending compaction begins a new slice under its own instant, and the log files of that slice are committed; those
    of any other pending instant are not. The base files that a pending compaction has written so far are not committed
    either.
    """
    pending = {i.requested_time for i in timeline.pending()}
    uncommitted = {i.requested_time for i in timeline.pending() if i.action not in COMPACTION_ACTIONS}
    with_base: set[tuple[str, str]] = set()
    logs: dict[tuple[str, str], list[Entry]] = {}
    for entry in data_files(storage):
        partition = entry.path.rpartition("/")[0]
        log = parse_log_file_name(entry.name)
        if log is not None:
            if log.instant not in uncommitted:
                logs.setdefault((partition, log.file_id), []).append(entry)
        elif (base := parse_base_file_name(entry.name)) is not None and base.instant not in pending:
            with_base.add((partition, base.file_id))
    for (partition, file_id), entries in logs.items():
        if (partition, file_id) not in elsewhere and (partition, file_id) not in with_base:
            names = tuple(sorted(entry.name for entry in entries))
            yield FileSlice(partition, file_id, None, 0, names, sum(entry.size for entry in entries))


def data_files(storage: Storage) -> Iterator[Entry]:
    """Yields all files of the table outside `.hoodie`, committed or not."""
    for entry in storage.list():
        if not entry.is_folder:
            yield entry
        elif entry.name != META_FOLDER:
            yield from (below for below in storage.list(entry.path, recursive=True) if not below.is_folder)


def _join(partition_path: str, name: str) -> str:
    return f"{partition_path}/{name}" if partition_path else name
