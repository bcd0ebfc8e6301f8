"""Times of a table's files by the clock of its storage, which is the only one that all its writers share.

All times are milliseconds since 1970, as in Hadoop's `FileStatus`.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs.errors import FileMissingError
from jobs.hudi.jvm import translated

if TYPE_CHECKING:
    from jobs.hudi.table import HudiTable

_PROBE = ".hoodie/.aux/groundskeeper.clock"
# The only form that a whole list has: "[StoragePathInfo{path=..., length=..., isDirectory=..., ...}, ...]".
_LISTED = re.compile(r"path=(.*?), length=(\d+), isDirectory=(\w+), .*?modificationTime=(\d+)")


@dataclass(frozen=True)
class ListedFile:
    """A file or folder as the storage lists it: its size, and when it was last modified."""

    bytes: int
    modified_ms: int
    is_folder: bool


def listed(storage: Any, folder: Any, *, recursive: bool = False) -> dict[str, ListedFile]:
    """Returns what is in a folder of a `HoodieStorage`, or files anywhere below it, by name; empty without that
    folder. One call to the JVM for all."""
    if not storage.exists(folder):
        return {}
    found = str((storage.listFiles(folder) if recursive else storage.listDirectEntries(folder)).toString())
    return {
        path.rpartition("/")[2]: ListedFile(int(size), int(modified), is_folder == "true")
        for path, size, is_folder, modified in _LISTED.findall(found)
    }


def storage_now(table: HudiTable) -> int:
    """Returns the storage's time by a file that is written for that and deleted again."""
    path = _path(table, f"{_PROBE}-{uuid.uuid4().hex}")
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
    try:
        with translated(f"listing {folder}", expected=FileMissingError):
            found = listed(table.meta.getStorage(), _path(table, folder), recursive=recursive)
    except FileMissingError:
        return {}
    return {name: file.modified_ms for name, file in found.items() if not file.is_folder}


def _path(table: HudiTable, relative: str) -> Any:
    return table.jvm.hudi.storage.StoragePath(f"{table.base_path}/{relative}".rstrip("/"))
