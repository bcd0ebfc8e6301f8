"""The latest file slices of a table or a partition, computed from listings and the active timeline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from jobs.format.file_names import bucket_of, parse_base_file_name, parse_log_file_name
from service.lake.instant_metadata import read_metadata
from service.lake.storage import Entry, Storage
from service.lake.table_config import META_FOLDER, TableConfig
from service.lake.timeline import COMPACTION_ACTIONS, Timeline
from service.model.storage_errors import PathNotFoundError


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
        return self.base_file and f"{self.partition_path}/{self.base_file}".removeprefix("/")


@dataclass(frozen=True)
class Visibility:
    """Decides which files count, by the instants in their names.

    The rule is Hudi's (`HoodieTimeline.containsOrBeforeTimelineStarts`, 1.2). Files of completed instants count. Files
    that are older than the first completed instant count too, because their instants have been archived. An instant
    that only a savepoint keeps on the timeline is not considered the first one. Files of pending instants never count.
    `completions` maps requested times to completion times if the timeline records these.
    """

    completions: Mapping[str, str | None]
    pending: frozenset[str]
    compacting: frozenset[str]
    starts_at: str | None
    logs_carry_own_instant: bool

    @classmethod
    def of(cls, timeline: Timeline, layout: int) -> Visibility:
        return cls(
            completions=timeline.writes,
            pending=frozenset(i.requested_time for i in timeline.pending()),
            compacting=frozenset(i.requested_time for i in timeline.pending() if i.action in COMPACTION_ACTIONS),
            starts_at=timeline.starts_at,
            logs_carry_own_instant=layout >= 2,
        )

    def is_committed(self, instant: str) -> bool:
        if instant in self.completions:
            return True
        return self.starts_at is not None and instant < self.starts_at and instant not in self.pending

    def is_log_committed(self, instant: str) -> bool:
        """Returns whether a log file counts. Before table version 8 its name has the instant of its slice, which may be
        a pending compaction."""
        return self.is_committed(instant) or (not self.logs_carry_own_instant and instant in self.compacting)

    def belongs_to(self, log_instant: str, base_instant: str) -> bool:
        """Returns whether a log file belongs to the slice that begins at `base_instant`, or to a later one.

        Since table version 8 the completion time of the log file's commit decides, because rows that were written while
        the compaction ran are not in its base file. If the commit is archived, only its requested time is known here,
        so this time decides.
        """
        known = self.completions.get(log_instant) if self.logs_carry_own_instant else None
        return (known or log_instant) >= base_instant


@dataclass
class _Group:
    bases: list[tuple[str, Entry]] = field(default_factory=list)
    logs: list[tuple[str, Entry]] = field(default_factory=list)


@dataclass(frozen=True)
class Listed:
    """The files of a partition. `freed_*` are about committed files that are in no latest slice. `freed_since` is the
    first instant that took one of them out of use; it is empty if this is not known. `groups` are all file ids that
    have committed files."""

    slices: tuple[FileSlice, ...] = ()
    freed_files: int = 0
    freed_bytes: int = 0
    freed_since: str = ""
    groups: frozenset[str] = frozenset()


def latest_slices(path: str, files: Iterable[Entry], visibility: Visibility, replaced: Mapping[str, str]) -> Listed:
    """Sorts the files of the partition `path` into latest slices and freed files.

    `replaced` maps each file id that a completed replacecommit replaced to the instant of this replacecommit, or to an
    empty text if that is not known. Only the metadata of replacecommits names the replaced file ids. The replacecommits
    of the active timeline and the remembered ones are enough, because Hudi archives a replacecommit only after the
    cleaner has removed the replaced files.
    """
    groups = _committed(files, visibility)
    slices: list[FileSlice] = []
    freed: list[Entry] = []
    freed_since: list[str] = []
    for file_id, group in groups.items():
        every = [*group.bases, *group.logs]
        if file_id in replaced:
            freed += [entry for _, entry in every]
            freed_since.append(replaced[file_id])
            continue
        # If two files have the same instant, two tasks have written them, and the one with the greater name counts.
        instant, base = max(group.bases, key=lambda each: (each[0], each[1].name), default=("", None))
        logs = [entry for log, entry in group.logs if visibility.belongs_to(log, instant)]
        latest = {entry.path for entry in logs} | ({base.path} if base else set())
        if len(latest) < len(every):
            freed += [entry for _, entry in every if entry.path not in latest]
            freed_since.append(_second_version(group, visibility))
        slices.append(
            FileSlice(
                partition_path=path,
                file_id=file_id,
                base_file=base.name if base else None,
                base_bytes=base.size if base else 0,
                logs=tuple(sorted(entry.name for entry in logs)),
                log_bytes=sum(entry.size for entry in logs),
            )
        )
    slices.sort(key=lambda each: each.file_id)
    size = sum(entry.size for entry in freed)
    return Listed(tuple(slices), len(freed), size, min(freed_since, default=""), frozenset(groups))


def _second_version(group: _Group, visibility: Visibility) -> str:
    """Returns the instant of the second slice of a file group that has more than one."""
    instants = sorted(instant for instant, _ in group.bases)
    has_logs_before = any(not visibility.belongs_to(log, instants[0]) for log, _ in group.logs)
    return instants[0] if has_logs_before else instants[1]


def _committed(files: Iterable[Entry], visibility: Visibility) -> dict[str, _Group]:
    groups: dict[str, _Group] = defaultdict(_Group)
    for entry in files:
        if entry.is_folder:
            continue
        name = entry.name
        if (log := parse_log_file_name(name)) is not None:
            if visibility.is_log_committed(log.instant):
                groups[log.file_id].logs.append((log.instant, entry))
        elif (base := parse_base_file_name(name)) is not None and visibility.is_committed(base.instant):
            groups[base.file_id].bases.append((base.instant, entry))
    return groups


def read_snapshot(storage: Storage, config: TableConfig, timeline: Timeline) -> tuple[FileSlice, ...]:
    """Returns the slices of all partitions as of this timeline, in the order of partition and file id.

    Raises StorageError.
    """
    visibility = Visibility.of(timeline, config.timeline_layout)
    # Replaced file ids are read before the files are listed. If a replacecommit is archived in between, its replaced
    # files are no longer there to be listed.
    replaced = _replaced(storage, config, timeline)
    files = files_by_partition(storage)
    return tuple(
        each
        for path in sorted(files)
        for each in latest_slices(path, files[path], visibility, replaced.get(path, {})).slices
    )


def _replaced(storage: Storage, config: TableConfig, timeline: Timeline) -> dict[str, dict[str, str]]:
    """Returns, by partition, the file ids that the completed replacecommits of this timeline replaced, each with the
    instant of its replacecommit."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for instant in timeline.instants:
        if instant.is_completed and instant.action == "replacecommit":
            try:
                metadata = read_metadata(storage, config, instant)
            except PathNotFoundError:  # The instant was archived meanwhile.
                continue
            for path, file_ids in metadata.replaced.items():
                found[path].update(dict.fromkeys(file_ids, instant.requested_time))
    return found


def files_by_partition(storage: Storage) -> dict[str, list[Entry]]:
    """Returns all files of the table outside `.hoodie`, committed or not, by the folder that they are in."""
    found: dict[str, list[Entry]] = defaultdict(list)
    for entry in data_files(storage):
        found[entry.path.rpartition("/")[0]].append(entry)
    return found


def data_files(storage: Storage) -> Iterator[Entry]:
    """Yields all files of the table outside `.hoodie`, committed or not."""
    for entry in storage.list():
        if not entry.is_folder:
            yield entry
        elif entry.name != META_FOLDER:
            yield from (below for below in storage.list(entry.path, recursive=True) if not below.is_folder)
