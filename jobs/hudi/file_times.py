"""Times of a table's files by the clock of its storage, which is the only one that all its writers share.

All times are milliseconds since 1970, as in Hadoop's `FileStatus`.
"""

from __future__ import annotations

import uuid

from jobs.errors import FileMissingError
from jobs.hudi.file_listing import listed
from jobs.hudi.jvm import translated
from jobs.hudi.opened_table import OpenedTable

_PROBE = ".hoodie/.aux/groundskeeper.clock"


def storage_now(table: OpenedTable) -> int:
    """Returns the storage's time, by writing and deleting a file."""
    name = _path(table, f"{_PROBE}-{uuid.uuid4().hex}")
    with translated("reading the storage's clock"):
        return int(table.jvm.reads.now(table.storage, name))


def modified(table: OpenedTable, relative: str) -> int | None:
    """Returns when a file was last written; None if there is no such file."""
    with translated(f"looking at {relative}"):
        found = int(table.jvm.reads.modified(table.storage, _path(table, relative)))
        return None if found < 0 else found


def times_in(table: OpenedTable, folder: str, *, recursive: bool = False) -> dict[str, int]:
    """Returns the times of the files in a folder, or anywhere below it, by name; empty if there is no such folder."""
    try:
        with translated(f"listing {folder}", expected=FileMissingError):
            found = listed(table.jvm, table.storage, _path(table, folder), recursive=recursive)
    except FileMissingError:
        return {}
    return {name: file.modified_ms for name, file in found.items() if not file.is_folder}


def _path(table: OpenedTable, relative: str) -> str:
    return f"{table.base_path}/{relative}".rstrip("/")
