"""A backup of a table's `.hoodie` while its version is changed, in `.hoodie/.aux/groundskeeper.upgrade`, where neither
readers nor Hudi's services look. A note that lists all files makes the backup complete. The change is unfinished until
the note is deleted, and a job that finds the note first undoes the change.

Files that Hudi never changes in place (data files of the metadata table, archived instants) are listed but not copied,
except for those of indexes that the change drops.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from jobs.errors import HudiError, RefusedError
from jobs.format.table_version import UPGRADE_FOLDER, UPGRADE_NOTE
from jobs.hudi.file_listing import ListedFile, listed_below
from jobs.hudi.jvm import translated
from jobs.hudi.opened_table import OpenedTable
from jobs.hudi.small_file import read_object, write_object
from jobs.problems.upgrades import WRITTEN_SINCE_UPGRADE

FOLDER = UPGRADE_FOLDER.removeprefix(".hoodie/")
_WHAT = "the note of the table's upgrade"
_COPIES = f"{FOLDER}/files"
_MOST_BYTES = 256 << 20
_AT_ONCE = 8
_PROPERTIES, _PROPERTIES_BACKUP = "hoodie.properties", "hoodie.properties.backup"

# Files that do not belong to a table version: temporary files, the lock, and notes of other jobs of this service and of
# Flink.
_LEFT_ALONE = re.compile(r"(\.temp|\.aux|\.heartbeat|\.locks|metadata/\.hoodie/(\.temp|\.heartbeat|\.locks))/|lock$")
_NEVER_CHANGED = re.compile(
    r"metadata/(?!\.hoodie/)|(metadata/\.hoodie/)?(archived/|timeline/history/.*\.parquet$|.*\.archive\.)"
)
# An instant of the table's own timeline, in either layout.
_INSTANT = re.compile(r"(?:timeline/)?(\d{14,17})(?:_\d+)?\.[a-z.]+$")


@dataclass(frozen=True)
class Backup:
    """What a backup holds: size and modification time of each file below `.hoodie`, in bytes and milliseconds. The
    `dropped` partitions of the metadata table are those that Hudi deletes with the change."""

    from_version: int
    to_version: int
    owner: str
    files: Mapping[str, tuple[int, int]]
    dropped: tuple[str, ...] = ()

    @property
    def copied(self) -> list[str]:
        deleted = tuple(f"metadata/{name}/" for name in self.dropped)
        return [path for path in self.files if path.startswith(deleted) or not _NEVER_CHANGED.match(path)]


def planned(table: OpenedTable, to_version: int, dropped: Iterable[str], owner: str = "") -> Backup:
    """Returns the content that a backup would have now."""
    files = {path: (each.bytes, each.modified_ms) for path, each in _listed(table).items()}
    return Backup(table.version, to_version, owner, files, tuple(dropped))


def keep(table: OpenedTable, to_version: int, dropped: Iterable[str], owner: str) -> Backup:
    """Makes the backup and then its note. The lock must be held."""
    remove(table)
    backup = planned(table, to_version, dropped, owner)
    _each(backup.copied, lambda path: _copy(table, path, f"{_COPIES}/{path}"))
    copies = {path: each.bytes for path, each in _listed(table, _COPIES).items()}
    if copies != {path: backup.files[path][0] for path in backup.copied}:
        raise HudiError("The backup of the timeline differs from the timeline. Somebody may be writing to the table.")
    _to_disk(table)
    content = {
        "from": backup.from_version,
        "to": backup.to_version,
        "owner": owner,
        "dropped": backup.dropped,
        "files": {path: list(each) for path, each in backup.files.items()},
    }
    write_object(table.jvm, table.storage, f"{table.base_path}/{UPGRADE_NOTE}", content, _WHAT)
    return backup


def unfinished(table: OpenedTable) -> Backup | None:
    """Returns the backup of a change that has not ended."""
    found = read_object(table.jvm, table.storage, f"{table.base_path}/{UPGRADE_NOTE}", _WHAT, _MOST_BYTES)
    files = found.get("files")
    if not isinstance(files, dict):
        return None
    listed = {str(path): (int(size), int(modified)) for path, (size, modified) in files.items()}
    dropped = tuple(map(str, found.get("dropped", ())))
    return Backup(int(found["from"]), int(found["to"]), str(found.get("owner", "")), listed, dropped)


def is_there(table: OpenedTable) -> bool:
    """Returns whether there is a backup, complete or not. An attempt that dies while it makes or deletes one leaves
    copies without the note."""
    with translated("looking for a backup of the timeline"):
        return bool(table.storage.exists(_path(table, FOLDER)))


def restore(table: OpenedTable, backup: Backup) -> None:
    """Restores `.hoodie`, and deletes the backup. The lock must be held. An interrupted restore is repeated.

    The old files are restored first, then the properties, and then the new files are deleted, so that a reader finds a
    complete timeline at each moment. Raises RefusedError, before anything is changed, if somebody has written since.
    """
    now = _listed(table)
    if others := _instants(now) - _instants(backup.files):
        raise RefusedError([WRITTEN_SINCE_UPGRADE.because(", ".join(sorted(others)[:5]))])
    listed = backup.files.keys() - set(backup.copied)
    lost = sorted(path for path in listed if path not in now or now[path].bytes != backup.files[path][0])
    changed = [
        path
        for path in backup.copied
        if path not in (_PROPERTIES, _PROPERTIES_BACKUP) and _differs(now.get(path), backup.files[path])
    ]
    _each(changed, lambda path: _bring_back(table, backup, path))
    # Hudi reads the second file while the first one is missing or incomplete (`HoodieTableConfig.modify`).
    _copy(table, f"{_COPIES}/{_PROPERTIES}", _PROPERTIES_BACKUP)
    _bring_back(table, backup, _PROPERTIES)
    _each([path for path in _listed(table) if path not in backup.files], lambda path: _delete(table, path))
    forget(table)
    if lost:
        raise HudiError(f"The timeline is as before, but others have changed or deleted: {', '.join(lost[:3])}")


def forget(table: OpenedTable) -> None:
    """Deletes the note and then the backup. The lock must be held."""
    _to_disk(table)
    _delete(table, UPGRADE_NOTE.removeprefix(".hoodie/"))
    remove(table)


def remove(table: OpenedTable) -> None:
    """Deletes a backup without a note. The lock must be held."""
    if is_there(table):
        with translated("deleting the backup of the timeline"):
            table.storage.deleteDirectory(_path(table, FOLDER))


def _to_disk(table: OpenedTable) -> None:
    """Writes all that a local disk has in its cache. After a loss of power the copies or, once they are deleted, the
    timeline might be empty files."""
    with translated("looking for the storage of the table"):
        is_local = str(table.storage.getScheme()) == "file"
    if is_local:
        os.sync()


def _listed(table: OpenedTable, folder: str = "") -> dict[str, ListedFile]:
    with translated("listing the table's own files"):
        found = listed_below(table.jvm, table.storage, f"{table.base_path}/.hoodie/{folder}".rstrip("/"))
    return {path: each for path, each in found.items() if not _LEFT_ALONE.match(path)}


def _instants(paths: Iterable[str]) -> set[str]:
    return {found[1] for path in paths if (found := _INSTANT.match(path))}


def _differs(now: ListedFile | None, before: tuple[int, int]) -> bool:
    return now is None or (now.bytes, now.modified_ms) != before


def _bring_back(table: OpenedTable, backup: Backup, path: str) -> None:
    """Copies a file back, with its modification time: before table version 8 that time is the completion time of an
    instant."""
    _copy(table, f"{_COPIES}/{path}", path)
    with translated(f"setting the time of .hoodie/{path}"):
        table.storage.setModificationTime(_path(table, path), backup.files[path][1])


def _copy(table: OpenedTable, path: str, to: str) -> None:
    with translated(f"copying .hoodie/{path}"):
        storage = table.storage
        table.jvm.hudi.io.util.FileIOUtils.copy(storage, _path(table, path), storage, _path(table, to), False, True)


def _delete(table: OpenedTable, path: str) -> None:
    with translated(f"deleting .hoodie/{path}"):
        table.storage.deleteFile(_path(table, path))


def _path(table: OpenedTable, path: str) -> Any:
    return table.jvm.hudi.storage.StoragePath(f"{table.base_path}/.hoodie/{path}")


def _each(paths: Iterable[str], act: Callable[[str], None]) -> None:
    """Calls the function for several files at once, because a storage may need a tenth of a second for each."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(act, paths))
