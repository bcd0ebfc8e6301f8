"""A note, in the table's storage, of the indexes that a table had when a rebuild of its metadata table began. If a
worker dies during the rebuild, the table no longer knows its indexes: the properties name only those that are built
already, and definitions are missing (`jobs.hudi.metadata_table`). The note stays until all indexes are built."""

from __future__ import annotations

import re

from jobs.format.index_definitions import METADATA_FOLDER, Indexes
from jobs.hudi import file_listing
from jobs.hudi.indexes import indexes_of
from jobs.hudi.jvm import translated
from jobs.hudi.small_file import read_object, write_object
from jobs.hudi.table import HudiTable

_NOTE, _WHAT = ".hoodie/.aux/groundskeeper.indexes", "the note of the table's indexes"
# `HoodieTableMetadataUtil.getFileIDForFileGroup`: the number of the file group ends the file id.
_FILE_GROUP = re.compile(r"-(\d{4,9})-0_")
_MOST_FILE_GROUPS = 10_000  # `hoodie.metadata.record.index.max.filegroup.count`
_MOST_BYTES = 16 << 20  # A definition of statistics names each of its columns.


def keep(table: HudiTable) -> Indexes:
    """Writes a note of the table's indexes and the indexes in an earlier note, and returns all of them. If both define
    an index, the table's definition is taken. The lock must be held."""
    now, left = indexes_of(table), _read(table)
    file_groups = {**left.file_groups, **_file_groups(table)}
    merged = Indexes(now.partitions | left.partitions, {**left.stored, **now.stored}, file_groups)
    if merged != left:
        content = {
            "partitions": sorted(merged.partitions),
            "indexDefinitions": merged.stored,
            "fileGroups": merged.file_groups,
        }
        write_object(table.jvm, table.storage, _path(table), content, _WHAT)
    return merged


def unbuilt(table: HudiTable) -> Indexes | None:
    """Returns the indexes in the note that the table does not have, as of its last reload."""
    left = _read(table)
    missing = left.partitions - table.metadata_partitions
    return Indexes(missing, left.stored, left.file_groups) if missing else None


def forget(table: HudiTable) -> None:
    """Deletes the note. The lock must be held."""
    with translated(f"deleting {_WHAT}"):
        table.storage.deleteFile(table.jvm.hudi.storage.StoragePath(_path(table)))


def _read(table: HudiTable) -> Indexes:
    found = read_object(table.jvm, table.storage, _path(table), _WHAT, _MOST_BYTES)
    partitions, stored = found.get("partitions"), found.get("indexDefinitions")
    if not isinstance(partitions, list) or not isinstance(stored, dict):
        return Indexes(frozenset(), {})
    numbers = found.get("fileGroups")
    file_groups = {
        name: number
        for name, number in (numbers.items() if isinstance(numbers, dict) else ())
        if isinstance(number, int) and 0 < number <= _MOST_FILE_GROUPS
    }
    return Indexes(frozenset(map(str, partitions)), stored, file_groups)


def _file_groups(table: HudiTable) -> dict[str, int]:
    """Returns the numbers of file groups by the names of files, which also a damaged metadata table has. No property of
    the table has these numbers, only the options of the writer that built an index. If each partition of the data has
    its own record index, the greatest of their numbers is returned."""
    found = {}
    for name in table.metadata_partitions:
        files = file_listing.listed(table.jvm, table.storage, f"{table.base_path}/{METADATA_FOLDER}/{name}")
        numbers = [int(number[1]) for each in files if (number := _FILE_GROUP.search(each))]
        if numbers:
            found[name] = max(numbers) + 1
    return found


def _path(table: HudiTable) -> str:
    return f"{table.base_path}/{_NOTE}"
