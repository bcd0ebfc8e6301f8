"""Reads the rows of stale writes with Hudi itself, although their file groups were replaced. Hudi's readers ignore
replaced file groups. So the files are copied to a temporary table next to the real one, with the timeline except for
the replacing instants. There Hudi merges base file and logs as usual, for any payload, merge mode and format of blocks.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import FilesGoneError, HudiError
from jobs.format.file_names import parse_base_file_name
from jobs.format.meta_columns import FILE_NAME, RECORD_KEY
from jobs.format.stale_writes import Group, StaleWrite, dated
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi import base_files
from jobs.hudi.deleting_rows import deleting_rows
from jobs.hudi.jvm import translated
from jobs.hudi.merging import history_of
from jobs.hudi.records import Commit
from jobs.hudi.rows import readable_by, with_times
from jobs.hudi.stored_values import with_stored_values
from jobs.hudi.table import HudiTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

_HISTORY_OF_SCHEMA = ".hoodie/.schema"  # `HoodieTableMetaClient.SCHEMA_FOLDER_NAME`, below the metadata folder.
_LOG = ".log."
# `HoodieWriteStat.NULL_COMMIT`: the file group was new.
NOTHING_BEFORE = "null"


@dataclass(frozen=True)
class DeletedKey:
    """A key that a stale write deleted.

    `ordering` is the ordering value of the delete as text; None if it has none, so that it applies to every row.
    """

    partition: str
    key: str
    instant: str
    ordering: str | None = None
    file_id: str = ""  # The file group whose log has the delete.
    record: Any = field(default=None, compare=False, repr=False)  # Hudi's `DeleteRecord`, if it is in a log.


class Unread(NamedTuple):
    """Deletes of a commit in one file group, whose files are gone."""

    instant: str
    group: Group


@contextmanager
def copied(table: HudiTable, stale: Sequence[StaleWrite], commits: Sequence[Commit], name: str) -> Iterator[DataFrame]:
    """Yields the rows of the stale file slices with meta columns, from temporary tables that are removed at the end.

    `name` makes their folders unique beside the table's. Raises `FilesGoneError` when a stale write's files were
    removed.
    """
    target = f"{table.base_path.rstrip('/')}.{name}"
    has_history = bool(history_of(table).versions)
    copiers = {_Copier(table, f"{target}-{number}"): part for number, part in enumerate(_apart(stale, commits))}
    try:
        missing: list[str] = []
        with translated("copying the stale file slices"):
            for copier, part in copiers.items():
                groups = {group for write in part for group in write.groups}
                copier.copy(".hoodie/hoodie.properties")
                copier.copy_timeline(groups, commits)
                if has_history:
                    copier.copy(_HISTORY_OF_SCHEMA)
                for partition in sorted({partition for partition, _ in groups}):
                    copier.copy_groups(partition, {file_id for path, file_id in groups if path == partition})
                missing += copier.missing(part, commits)
        if missing:
            raise FilesGoneError(", ".join(missing[:5]))
        # The metadata table is off, so that no statistics make Spark skip files. Only schema on read finds the values
        # of files that are older than a change of the columns.
        options = {"hoodie.metadata.enable": "false", "hoodie.schema.on.read.enable": str(has_history).lower()}
        reader = readable_by(table, table.jvm.spark.newSession()).read.format("hudi").options(**options)
        loaded = [with_stored_values(table, reader.load(copier.target)) for copier in copiers]
        frames = [with_times(table, frame) for frame in loaded]
        yield reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
    finally:
        with translated("removing the copied file slices"):
            for copier in copiers:
                copier.remove()


def _apart(stale: Sequence[StaleWrite], commits: Sequence[Commit]) -> list[Sequence[StaleWrite]]:
    """Returns the stale writes in parts, for each of which one temporary table is enough. The timeline of such a table
    lacks the instants that replaced its file groups, so readers do not see the logs on base files that these instants
    wrote. If an instant both replaced and wrote stale file groups, there is a part for each replacing instant."""
    groups = {group for write in stale for group in write.groups}
    if not any(each.write.replaced & groups and each.write.written & groups for each in commits):
        return [stale]
    parts: dict[str, list[StaleWrite]] = {}
    for write in stale:
        for instant in dict.fromkeys(write.groups.values()):
            replaced_at = {group: by for group, by in write.groups.items() if by == instant}
            parts.setdefault(instant, []).append(replace(write, groups=replaced_at))
    return list(parts.values())


def deleted_in_logs(table: HudiTable, stale: Sequence[StaleWrite], commits: Sequence[Commit]) -> list[DeletedKey]:
    """Returns the keys that these writes' logs in the stale file groups delete: in delete blocks (`HoodieDeleteBlock`),
    or by rows if the table records the change of each row. The deletes of a log that was compacted and cleaned are
    unknown; they are left out."""
    files = {commit.write.instant: commit.files for commit in commits}
    found: list[DeletedKey] = []
    of_rows = deleting_rows(table.jvm) if stale and table.records_operations else None
    with translated("reading the deletes of stale writes"):
        for write in stale:
            for group in write.groups:
                for path in files[write.instant].get(group[0], {}).get(group[1], []):
                    if _LOG in path.rpartition("/")[2]:
                        found += _deletes(table, path, group, write.instant, of_rows)
    return found


def deleted_from_base_files(
    table: HudiTable, stale: Sequence[StaleWrite], commits: Sequence[Commit], rows: DataFrame
) -> list[DeletedKey]:
    """Returns, for copy-on-write, the keys that the stale write's base file lacks and the base file before it has.

    `rows` are those of `copied`. If the replaced base file was already gone, the stale write has created a file group
    without a previous base file; `lost_deletes` handles that.
    """
    found: list[DeletedKey] = []
    files = {commit.write.instant: commit.files for commit in commits}
    previous = {commit.write.instant: commit.previous for commit in commits}
    deleted = {commit.write.instant: commit.deleted for commit in commits}
    seen: set[Group] = set()
    for write in stale:
        for group in write.groups:
            paths = files[write.instant].get(group[0], {}).get(group[1], [])
            instant = previous[write.instant].get(group, NOTHING_BEFORE)
            # A base file before a write that deleted nothing may have been cleaned, and is not needed.
            if group in seen or instant == NOTHING_BEFORE or not deleted[write.instant].get(group):
                continue
            if not any(path.endswith(".parquet") for path in paths):
                continue
            seen.add(group)
            before = _base_file(table, group, instant)
            with translated("comparing base files"):
                old = base_files.read(table, [before]).select(RECORD_KEY)
                now = rows.where(F.col(FILE_NAME).startswith(group[1])).select(RECORD_KEY)
                found += [DeletedKey(group[0], row[0], write.instant) for row in old.subtract(now).collect()]
    return found


def deleted_keys(table: HudiTable, commit: Commit) -> list[DeletedKey]:
    """Returns the keys that a commit deleted in file groups that existed: the keys in the delete blocks of its logs, or
    the keys that the previous base file has and the new one lacks. Keys in files that were cleaned are left out. The
    deletes of a repair have the time of the deletes that it repairs. Raises HudiError if a file that is there cannot be
    read."""
    groups = [group for group, count in commit.deleted.items() if count]
    write = StaleWrite(commit.write.instant, commit.write.operation, dict.fromkeys(groups, ""))
    found = deleted_in_logs(table, [write], [commit])
    for group in groups:
        before = commit.previous.get(group, NOTHING_BEFORE)
        written = [path for path in commit.files[group[0]][group[1]] if path.endswith(".parquet")]
        if not written or before == NOTHING_BEFORE:
            continue
        try:
            old = _base_file(table, group, before)
            with translated("comparing base files"):
                before_and_now = [old, f"{table.base_path}/{written[-1]}"]
                old_keys, new_keys = (base_files.read(table, [path]).select(RECORD_KEY) for path in before_and_now)
                keys = [row[0] for row in old_keys.subtract(new_keys).collect()]
        except (FilesGoneError, HudiError) as error:
            if _has_files(commit, group, table.files_in(group[0])):
                raise  # Deletes that cannot be read for another reason must not count as none.
            logger.warning("the deletes of %s in %s are unknown: %s", write.instant, "/".join(group), error)
            continue
        found += [DeletedKey(group[0], key, write.instant, file_id=group[1]) for key in keys]
    since = dated(write.instant, commit.extra)
    return found if since == write.instant else [replace(each, instant=since) for each in found]


def unread_deletes(table: HudiTable, commit: Commit) -> list[Unread]:
    """Returns the deletes of this commit that `deleted_keys` cannot read any more. Call this function after
    `deleted_keys`, because a clean may remove files in between, and a removed file never comes back."""
    groups = [group for group, count in commit.deleted.items() if count]
    existing = {partition: table.files_in(partition) for partition in {path for path, _ in groups}}
    return [Unread(commit.write.instant, each) for each in groups if not _has_files(commit, each, existing[each[0]])]


def _has_files(commit: Commit, group: Group, there: Collection[str]) -> bool:
    """Returns whether the files that this commit wrote into the file group, and the base file before, are `there`."""
    names = {path.rpartition("/")[2] for path in commit.files[group[0]][group[1]]}
    before = commit.previous.get(group, NOTHING_BEFORE)
    if before == NOTHING_BEFORE or not any(name.endswith(".parquet") for name in names):
        return names <= {*there}
    bases = {(base.file_id, base.instant) for name in there if (base := parse_base_file_name(name))}
    return names <= {*there} and (group[1], before) in bases


def lost_deletes(stale: Sequence[StaleWrite], commits: Sequence[Commit]) -> dict[str, int]:
    """Returns the copy-on-write instants whose deleted keys cannot be determined any more, with the number of these
    deletes. For such a write Hudi did not find the replaced base file, and wrote a new one without the rows to delete.
    """
    known = {commit.write.instant: commit for commit in commits}
    found: dict[str, int] = {}
    for write in stale:
        commit = known[write.instant]
        for group in write.groups:
            is_base_file = any(path.endswith(".parquet") for path in commit.files.get(group[0], {}).get(group[1], []))
            if is_base_file and commit.previous.get(group) == NOTHING_BEFORE and commit.deleted.get(group):
                found[write.instant] = found.get(write.instant, 0) + commit.deleted[group]
    return found


def _base_file(table: HudiTable, group: Group, instant: str) -> str:
    partition, file_id = group
    with translated("listing a partition"):
        paths = table.jvm.hudi.storage.StoragePath
        folder = paths(f"{table.base_path}/{partition}" if partition else table.base_path)
        for entry in table.storage.listDirectEntries(folder):
            name = str(entry.getPath().getName())
            if name.startswith(file_id) and name.endswith(f"_{instant}.parquet"):
                return str(entry.getPath().toString())
    raise FilesGoneError(f"{partition}/{file_id} of {instant}")


def _deletes(table: HudiTable, path: str, group: Group, instant: str, of_rows: Any) -> list[DeletedKey]:
    log = table.jvm.hudi.common.table.log
    storage_path = table.jvm.hudi.storage.StoragePath(f"{table.base_path}/{path}")
    if not table.storage.exists(storage_path):
        logger.warning("the deletes in %s are unknown, because it was cleaned", path)
        return []
    reader = log.HoodieLogFormat.newReader(table.storage, table.jvm.hudi.common.model.HoodieLogFile(storage_path), None)
    header = log.block.HoodieLogBlock.HeaderMetadataType.valueOf("INSTANT_TIME")
    found: list[DeletedKey] = []
    try:
        while reader.hasNext():
            block = reader.next()
            kind = str(block.getBlockType().name())
            if block.getLogBlockHeader().get(header) != instant or not (kind == "DELETE_BLOCK" or of_rows):
                continue
            for record in _records_of(table, block, kind, group[0], of_rows):
                value = record.getOrderingValue()
                # A delete with 0 or null applies to every row, whatever its ordering value
                # (`OrderingValues.getDefault`).
                ordering = None if value is None or str(value) == "0" else str(value)
                found.append(DeletedKey(group[0], str(record.getRecordKey()), instant, ordering, group[1], record))
    finally:
        reader.close()
    return found


def _records_of(table: HudiTable, block: Any, kind: str, partition: str, of_rows: Any) -> Any:
    """Returns Hudi's `DeleteRecord`s for the deletes in a block of a log."""
    if kind == "DELETE_BLOCK":
        return block.getRecordsToDelete()
    return of_rows.of(block, partition, ",".join(table.ordering_fields)) if kind.endswith("_DATA_BLOCK") else ()


def _below(meta: Any, path: Any) -> str:
    """Returns the path relative to the base path."""
    return str(path.toString()).removeprefix(str(meta.getBasePath().toString())).strip("/")


def _has_rows_of(base: str, commit: Commit, path: str) -> bool:
    """Returns whether a base file of the instant `base` has the rows of a file that this commit wrote into its file
    group. A compaction merges only the logs that had completed at its instant."""
    is_before = commit.write.instant < base
    if _LOG not in path.rpartition("/")[2]:
        return is_before
    return is_before and commit.write.is_ordered and "" < commit.completed <= base


class _Copier:
    """Copies files from a table's folder to another one, through Hadoop's file system."""

    def __init__(self, table: HudiTable, target: str) -> None:
        self._table = table
        self._base = table.base_path.rstrip("/")
        self.target = target
        self._hadoop = table.jvm.java.org.apache.hadoop.fs
        self._conf = table.jvm.hadoop_conf
        self._system: Any = self._hadoop.Path(target).getFileSystem(self._conf)
        self._copied: set[str] = set()

    def copy(self, name: str) -> None:
        """Copies one file, or a folder; `name` is relative to the table's folder."""
        source = self._hadoop.Path(f"{self._base}/{name}")
        target = self._hadoop.Path(f"{self.target}/{name}")
        self._hadoop.FileUtil.copy(self._system, source, self._system, target, False, self._conf)
        self._copied.add(name)

    def copy_timeline(self, groups: set[Group], commits: Sequence[Commit]) -> None:
        """Copies the completed instants under their own file names, except for those that replaced these groups."""
        without = {commit.write.instant for commit in commits if commit.write.replaced & groups}
        of_commits = {commit.write.instant for commit in commits} - without
        meta = self._table.meta
        folder = _below(meta, meta.getTimelinePath())
        timeline = meta.reloadActiveTimeline().getWriteTimeline().filterCompletedInstants()
        if self._table.version >= WITH_COMPLETION_TIMES and any(commit.write.is_archived for commit in commits):
            # Readers find the file slice of a log by the completion time of its commit.
            self.copy(_below(meta, meta.getArchivePath()))
        names = meta.getInstantFileNameGenerator()
        for item in self._table.jvm.items(timeline.getInstantsAsStream()):
            if str(item.requestedTime()) in of_commits:
                self.copy(f"{folder}/{names.getFileName(item)}")

    def copy_groups(self, partition: str, file_ids: set[str]) -> None:
        prefix = f"{partition}/" if partition else ""
        folder = self._hadoop.Path(f"{self._base}/{partition}" if partition else self._base)
        for status in self._system.listStatus(folder):
            name = str(status.getPath().getName())
            if any(name.lstrip(".").startswith(file_id) for file_id in file_ids):
                self.copy(prefix + name)
        # A listing finds no partition, and thus no rows, without the partition's metadata file. The file of the table
        # itself may be a Parquet file, or gone, which no reader of the metadata table notices.
        hudi, table = self._table.jvm.hudi, self._table
        base = hudi.storage.StoragePath(self.target)
        path = hudi.storage.StoragePath(base, partition) if partition else base
        hudi.common.model.HoodiePartitionMetadata(table.storage, "0", base, path, table.jvm.nothing()).trySave()

    def missing(self, stale: Sequence[StaleWrite], commits: Sequence[Commit]) -> list[str]:
        """Returns the files that the stale writes wrote into these groups and that no longer exist. A file is left out
        if a later base file of a completed commit has its rows; the files of dead writers prove nothing."""
        known = {commit.write.instant: commit for commit in commits}
        paths = {path for each in commits for groups in each.files.values() for of in groups.values() for path in of}
        latest: dict[str, str] = {}
        for path in self._copied & paths:
            if base := parse_base_file_name(path.rpartition("/")[2]):
                latest[base.file_id] = max(base.instant, latest.get(base.file_id, ""))
        return [
            path
            for write in stale
            for partition, file_id in write.groups
            for path in known[write.instant].files.get(partition, {}).get(file_id, [])
            if path not in self._copied and not _has_rows_of(latest.get(file_id, ""), known[write.instant], path)
        ]

    def remove(self) -> None:
        self._system.delete(self._hadoop.Path(self.target), True)
