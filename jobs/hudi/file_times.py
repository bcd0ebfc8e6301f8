"""Times of a table's files by the clock of its storage, which is the only one that all its writers share.

All times are milliseconds since 1970, as in Hadoop's `FileStatus`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jobs.errors import FileMissingError
from jobs.hudi.jvm import translated

if TYPE_CHECKING:
    from jobs.hudi.table import HudiTable

_PROBE = ".hoodie/.aux/groundskeeper.clock"
_LISTED = re.compile(r"path=(.*?), length=\d+, isDirectory=(\w+), .*?modificationTime=(\d+)")


def storage_now(table: HudiTable) -> int:
    """Returns the storage's time by a file that is written for that and deleted again."""
    path = _path(table, _PROBE)
    with translated("reading the storage's clock"):
        storage = table.meta.getStorage()
        storage.create(path, True).close()
        now = int(storage.getPathInfo(path).getModificationTime())
        storage.deleteFile(path)
        return now


def modified(table: HudiTable, relative: str) -> int | None:
    """Returns when a file was last written; None without that file."""
    try:
        with translated(f"looking at {relative}", expected=FileMissingError):
            return int(table.meta.getStorage().getPathInfo(_path(table, relative)).getModificationTime())
    except FileMissingError:
        return None


def times_in(table: HudiTable, folder: str, *, recursive: bool = False) -> dict[str, int]:
    """Returns the names of the files in a folder, or anywhere below it, with their times; empty without that folder."""
    path = _path(table, folder)
    try:
        with translated(f"listing {folder}", expected=FileMissingError):
            storage = table.meta.getStorage()
            if not storage.exists(path):
                return {}
            listed = str((storage.listFiles(path) if recursive else storage.listDirectEntries(path)).toString())
    except FileMissingError:
        return {}
    return {
        name.rpartition("/")[2]: int(time) for name, is_folder, time in _LISTED.findall(listed) if is_folder == "false"
    }


def _path(table: HudiTable, relative: str) -> Any:
    return table.jvm.hudi.storage.StoragePath(f"{table.base_path}/{relative}".rstrip("/"))
