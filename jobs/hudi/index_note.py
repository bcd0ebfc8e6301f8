"""A note, in the table's storage, of the indexes that a table had when its metadata table began to be built anew.

A worker that dies in the midst leaves a table that does not know its indexes any more: the properties name what has
been built so far, and definitions are gone meanwhile (`jobs.hudi.metadata_table`). The note stays until all are built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.hudi.indexes import Indexes, indexes_of
from jobs.hudi.jvm import translated
from jobs.hudi.small_file import read_object, write_object

if TYPE_CHECKING:
    from jobs.hudi.table import HudiTable

_NOTE, _WHAT = ".hoodie/.aux/groundskeeper.indexes", "the note of the table's indexes"
_MOST_BYTES = 16 << 20  # A definition of statistics names each of its columns.


def keep(table: HudiTable) -> Indexes:
    """Notes the indexes of the table and those of an earlier note, and returns them. The table's own definition of an
    index counts before that of the note. The lock must be held."""
    now, left = indexes_of(table), _read(table)
    both = Indexes(now.partitions | left.partitions, {**left.stored, **now.stored})
    if both != left:
        content = {"partitions": sorted(both.partitions), "indexDefinitions": both.stored}
        write_object(table.jvm, table.storage, _path(table), content, _WHAT)
    return both


def unbuilt(table: HudiTable) -> Indexes | None:
    """Returns the indexes that a note has and the table has not, as of its last reload."""
    left = _read(table)
    missing = left.partitions - table.metadata_partitions
    return Indexes(missing, left.stored) if missing else None


def forget(table: HudiTable) -> None:
    """Deletes the note. The lock must be held."""
    with translated(f"deleting {_WHAT}"):
        table.storage.deleteFile(table.jvm.hudi.storage.StoragePath(_path(table)))


def _read(table: HudiTable) -> Indexes:
    found = read_object(table.jvm, table.storage, _path(table), _WHAT, _MOST_BYTES)
    partitions, stored = found.get("partitions"), found.get("indexDefinitions")
    if not isinstance(partitions, list) or not isinstance(stored, dict):
        return Indexes(frozenset(), {})
    return Indexes(frozenset(map(str, partitions)), stored)


def _path(table: HudiTable) -> str:
    return f"{table.base_path}/{_NOTE}"
