"""Instants, file slices and commits of a Hudi table, as plain Python values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.format.file_names import is_change_log, parse_base_file_name, parse_log_file_name
from jobs.format.stale_writes import CompletedWrite, Group, known_of, operation_of, repaired_of
from jobs.hudi.boundaries import relative

# Instants of these actions do not change the latest rows and files.
HOUSEKEEPING = frozenset({"clean", "savepoint", "indexing"})
# Actions of writes whose rollback costs their writer only the unfinished batch.
INGESTION = frozenset({"commit", "deltacommit"})
# Actions of completed instants that changed rows or files.
WRITES = frozenset({"commit", "deltacommit", "replacecommit"})
# Operations of writers that replace file groups (`WriteOperationType` of Hudi 1.2).
OVERWRITES = frozenset({"INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION"})
COMPACTION, LOG_COMPACTION, CLUSTERING = "compaction", "logcompaction", "clustering"
REPLACE, CLEAN = "replacecommit", "clean"
COMPLETED_AS = {COMPACTION: "commit", LOG_COMPACTION: "deltacommit", CLUSTERING: REPLACE}
"""The action of a completed instant, by the action of its plan."""

Buckets = dict[str, set[int]]
"""Partition path -> ids of buckets."""


@dataclass(frozen=True)
class Touched:
    """The targets of a write, according to its instant.

    `groups` has the number of rows by partition path and file id. `inserts` has by partition path the number of rows
    whose file groups an inflight instant does not name, because they may not exist yet. `groups` and `inserts` are
    empty for a writer that records nothing (Flink's inflight instants are empty files).
    """

    groups: dict[str, dict[str, int]]
    inserts: dict[str, int]

    @property
    def is_empty(self) -> bool:
        return not any(self.groups.values()) and not any(self.inserts.values())

    @property
    def keys(self) -> set[Group]:
        return {(partition, file_id) for partition, groups in self.groups.items() for file_id in groups}

    def buckets(self) -> Buckets:
        return {
            partition: {int(file_id[:8]) for file_id in groups if file_id[:8].isdigit()}
            for partition, groups in self.groups.items()
        }


@dataclass(frozen=True)
class Instant:
    """One entry of the active timeline. `state` is REQUESTED, INFLIGHT or COMPLETED; `completed` is the completion
    time, before table version 8 by the time of the file."""

    requested: str
    action: str
    state: str
    completed: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.requested} ({self.action})"


@dataclass(frozen=True)
class FileSlice:
    """The latest slice of a file group: a base file (absent in a slice of logs only) and its log files, without
    those of changes (CDC), which no reader of the rows needs. Sizes in bytes.

    Two equal slices have the same rows, because files of a Hudi table are never changed in place. Before table version
    8 a slice includes the logs of pending writes; `late_writes` are those that have completed while the table was open.
    """

    partition: str
    file_id: str
    base_file: str | None
    base_bytes: int = field(compare=False)
    log_files: tuple[str, ...]
    log_bytes: int = field(compare=False)
    late_writes: frozenset[str] = frozenset()

    @property
    def key(self) -> tuple[str, str]:
        return self.partition, self.file_id

    @property
    def base_name(self) -> str:
        """The name of the base file; empty without one."""
        return (self.base_file or "").rpartition("/")[2]

    @property
    def bucket(self) -> int:
        """The first eight digits of a file id, in tables with a bucket index (`BucketIdentifier`)."""
        return int(self.file_id[:8])

    @property
    def bytes(self) -> int:
        return self.base_bytes + self.log_bytes

    @property
    def number_of_files(self) -> int:
        return bool(self.base_file) + len(self.log_files)


def has_logs(slices: Iterable[FileSlice]) -> bool:
    return any(item.log_files for item in slices)


@dataclass(frozen=True)
class Commit:
    """A completed instant that wrote or replaced files. `completed` is its completion time.

    `files` has the paths of written files, relative to the base path, by partition path and file id. `previous` maps
    file groups to the instants of the base files that the commit replaced, if recorded. `deleted` and `inserted` map
    file groups to numbers of rows, `rows` maps file paths to numbers of written rows, and `sizes` to the bytes of base
    files and to those that were appended to logs, all as the commit counts them. `rows` and `sizes` lack the base files
    that Flink wrote in several batches (`_is_of_batches`). `extra` is the writer's extra metadata. `emptied` are the
    partitions whose file groups the commit replaced, also those that had none.
    """

    write: CompletedWrite
    completed: str
    files: dict[str, dict[str, list[str]]]
    previous: dict[Group, str]
    deleted: dict[Group, int]
    extra: dict[str, str]
    rows: dict[str, int] = field(default_factory=dict)
    inserted: dict[Group, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    emptied: frozenset[str] = frozenset()

    @property
    def file_names(self) -> set[str]:
        groups = [paths for by_group in self.files.values() for paths in by_group.values()]
        return {path.rpartition("/")[2] for paths in groups for path in paths}


@dataclass(frozen=True)
class CleanSummary:
    """The result of a clean: its instant, the number of files deleted, and the number of files it failed to delete."""

    instant: str
    deleted_files: int
    failed_deletes: int


def deletes_in_logs(item: FileSlice, commits: Sequence[Commit], *, may_be_rows: bool) -> int | None:
    """Returns the maximum number of rows of the slice that these commits delete, including commits after it was listed.
    Returns None if the commit of one of its logs is not among them, or if deletes `may_be_rows` of logs
    (`OpenedTable.records_operations`), which commits do not count."""
    if may_be_rows:
        return None
    missing = set(item.log_files)
    since = (item.base_file or "").rpartition("_")[2].partition(".")[0]
    deletes = 0
    for commit in commits:
        names = {path.rpartition("/")[2] for path in commit.files.get(item.partition, {}).get(item.file_id, ())}
        if names & set(item.log_files) or (names and commit.write.instant > since):
            missing -= names
            deletes += commit.deleted.get(item.key, 0)
    return None if missing else deletes


def file_slice_of(item: dict[str, Any]) -> FileSlice:
    """Converts Hudi's `FileSliceDTO`."""
    base = item["baseFile"] or {"fullPath": None, "fileLen": 0}
    logs = sorted((log["path"].rpartition("/")[2], log["len"]) for log in item["logFiles"])
    logs = [(name, size) for name, size in logs if not is_change_log(name)]
    return FileSlice(
        partition=item["partition"],
        file_id=item["fileId"],
        base_file=base["fullPath"],
        base_bytes=base["fileLen"],
        log_files=tuple(name for name, _ in logs),
        log_bytes=sum(max(size, 0) for _, size in logs),
    )


def touched_of(record: dict[str, Any]) -> Touched:
    """Returns the targets of a write from the JSON form of Hudi's `HoodieCommitMetadata`.

    Raises PathOutsideTableError if the record has a path that is not relative to the table or leads out of it.
    """
    groups: dict[str, dict[str, int]] = {}
    inserts: dict[str, int] = {}
    for partition, stats in _written(record).items():
        for stat in stats:
            rows = sum(max(stat.get(name) or 0, 0) for name in ("numInserts", "numUpdateWrites", "numDeletes"))
            if stat.get("fileId"):
                of_partition = groups.setdefault(partition, {})
                of_partition[stat["fileId"]] = of_partition.get(stat["fileId"], 0) + rows
            else:
                inserts[partition] = inserts.get(partition, 0) + rows
    return Touched(groups, inserts)


def _written(record: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Returns the write statistics by partition path."""
    written: dict[str, list[dict[str, Any]]] = record.get("partitionToWriteStats") or {}
    for partition, stats in written.items():
        relative(partition, "a partition in a commit's metadata")
        for stat in stats:
            relative(stat.get("path") or "", "a file in a commit's metadata")
    return written


def _is_of_batches(requested: str, stat: dict[str, Any]) -> bool:
    """Returns whether these are the statistics of a base file that Flink wrote in several batches of one checkpoint.
    Each batch writes all rows of the batch before again, and deletes its file. The statistics add up the rows and bytes
    of all batches. They also name a previous file that is of the commit itself (Hudi 0.15 to 1.2, `WriteStatMerger` and
    `FlinkMergeAndReplaceHandle`, since 1.1 `FlinkIncrementalMergeHandle`)."""
    return stat.get("prevCommit") == requested and parse_base_file_name(_name(stat)) is not None


def _written_bytes(stat: dict[str, Any]) -> int:
    """Returns the size of a base file, or the bytes that were appended to a log. The member `fileSizeInBytes` is a
    log's size for most writers, but for Flink it is the sum of the sizes after each batch."""
    is_log = parse_log_file_name(_name(stat)) is not None
    return int(stat.get("totalWriteBytes" if is_log else "fileSizeInBytes") or 0)


def _name(stat: dict[str, Any]) -> str:
    return str(stat["path"]).rpartition("/")[2]


def commit_of(requested: str, completed: str, record: dict[str, Any]) -> Commit:
    """Converts Hudi's `HoodieCommitMetadata` from its JSON form. Raises PathOutsideTableError like `touched_of`."""
    files: dict[str, dict[str, list[str]]] = {}
    previous: dict[Group, str] = {}
    deleted: dict[Group, int] = {}
    inserted: dict[Group, int] = {}
    rows: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for partition, stats in _written(record).items():
        for stat in stats:
            if (file_id := stat.get("fileId")) and (path := stat.get("path")):
                group = (partition, file_id)
                files.setdefault(partition, {}).setdefault(file_id, []).append(path)
                deleted[group] = deleted.get(group, 0) + int(stat.get("numDeletes") or 0)
                inserted[group] = inserted.get(group, 0) + int(stat.get("numInserts") or 0)
                if _is_of_batches(requested, stat):
                    before = parse_base_file_name(stat.get("prevBaseFile") or "")
                    previous[group] = before.instant if before else "null"
                else:
                    previous[group] = str(stat.get("prevCommit"))
                    rows[path] = int(stat.get("numWrites") or 0)
                    sizes[path] = max(sizes.get(path, 0), _written_bytes(stat))
    replaced = (record.get("partitionToReplaceFileIds") or {}).items()
    for partition, _ in replaced:
        relative(partition, "a partition in a commit's metadata")
    extra = {str(key): str(value) for key, value in (record.get("extraMetadata") or {}).items()}
    write = CompletedWrite(
        requested,
        operation_of(record.get("operationType"), extra),
        written=frozenset(touched_of(record).keys),
        replaced=frozenset((partition, file_id) for partition, ids in replaced for file_id in ids),
        repaired=repaired_of(extra),
        known=known_of(extra),
    )
    emptied = frozenset(partition for partition, _ in replaced)
    return Commit(write, completed, files, previous, deleted, extra, rows, inserted, sizes, emptied)
