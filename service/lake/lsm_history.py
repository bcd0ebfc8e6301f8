"""The history of table version 8 and later: Parquet files, and manifests that list the valid ones (Hudi 1.2.0
`LSMTimeline`, `ArchivedTimelineLoaderV2`).

Each archival and each compaction of the history adds files, and then a manifest that lists all valid files. `_version_`
has the number of the latest manifest. A file that the manifest does not list comes from an archival that failed, or has
been replaced.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from service.lake.archived import MOST_INSTANTS, Archived, Found
from service.lake.instant import Instant, InstantState
from service.lake.instant_metadata import Name, parse_metadata
from service.lake.parquet_file import opened
from service.lake.storage import Storage
from service.lake.table_config import TableConfig
from service.lake.timeline import MAX_FILES
from service.model.errors import GroundskeeperError
from service.model.storage_errors import FileDamagedError, PathNotFoundError, StorageError

log = logging.getLogger(__name__)

Result = TypeVar("Result")

_FILE = re.compile(r"(?P<first>\d+)_(?P<last>\d+)_\d+\.parquet", re.ASCII)
_MANIFEST = re.compile(r"manifest_(?P<version>\d{1,18})", re.ASCII)
_VERSION = "_version_"
_MOST_DIGITS = 20
_BATCH = 1000
# The cleaner of the history may delete old files while they are read. The next manifest lists other files with the same
# rows.
_ATTEMPTS = 3


class _Row(msgspec.Struct, rename="camel"):
    instant_time: Name
    completion_time: Name | None = None
    action: Name = ""
    metadata: bytes | None = None


class _Entry(msgspec.Struct, rename="camel"):
    file_name: str


class _Manifest(msgspec.Struct):
    files: list[_Entry] = []


def has(storage: Storage, config: TableConfig, requested_time: str) -> bool:
    """Returns whether the history contains the instant. Raises StorageError."""

    def search() -> bool:
        return any(
            requested_time in (row.instant_time for row in _rows(storage, path, ["instantTime"]))
            for first, last, path in _files(storage, config)
            if first <= requested_time <= last
        )

    return _attempted(search)


def reaches(storage: Storage, config: TableConfig, requested_time: str) -> bool:
    """Returns whether the history has instants as old as this one. Raises StorageError."""
    return _attempted(lambda: any(first <= requested_time for first, _, _ in _files(storage, config)))


def archived_since(storage: Storage, config: TableConfig, since: str) -> tuple[Found, bool]:
    """Returns the archived instants that were requested at `since` or later, and whether the manifest and all files
    that may contain such instants could be read. Raises StorageError."""
    found: Found = {}

    def search(unreadable: tuple[type[GroundskeeperError], ...]) -> bool:
        """Returns whether all files could be read. A file that raises an error of `unreadable` is left out."""
        is_whole = True
        for path in [path for _, last, path in _files(storage, config) if last >= since]:
            try:
                for row in _rows(storage, path, ["instantTime", "completionTime", "action", "metadata"]):
                    if row.instant_time >= since:
                        found[row.instant_time, row.action] = _archived(row, f"{storage.base_path}/{path}")
            except unreadable as error:
                log.warning("Instants in a file of the history cannot be read: %s", error.detail)
                is_whole = False
        return is_whole

    try:
        with suppress(PathNotFoundError):
            return found, _attempted(lambda: search((FileDamagedError,)))
        # The files were missing again, so a file that the manifest lists is gone for good.
        return found, search((FileDamagedError, PathNotFoundError))
    except (FileDamagedError, PathNotFoundError) as error:
        log.warning("The list of the files of the history cannot be read: %s", error.detail)
        return found, False


def _attempted(search: Callable[[], Result]) -> Result:
    """Searches again if a file was deleted meanwhile. The cleaner of the history deletes files that the latest manifest
    does not list, but their instants are in other files."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(PathNotFoundError):
            return search()
    return search()


def _archived(row: _Row, where: str) -> Archived:
    instant = Instant(row.instant_time, row.action, InstantState.COMPLETED, row.completion_time)
    return Archived(instant, parse_metadata(row.action, row.metadata or b"", where))


def _rows(storage: Storage, path: str, columns: list[str]) -> Iterator[_Row]:
    with opened(storage, path) as file:
        if file.metadata.num_rows > MOST_INSTANTS:
            raise StorageError(f"{storage.base_path}/{path} has more than {MOST_INSTANTS} rows")
        for batch in file.iter_batches(_BATCH, columns=columns, use_threads=False):
            yield from (_row(row, path) for row in batch.to_pylist())


def _row(row: dict[str, Any], path: str) -> _Row:
    try:
        return msgspec.convert(row, _Row)
    except msgspec.ValidationError as error:
        raise FileDamagedError(f"{path} is damaged: {error}") from error


def _files(storage: Storage, config: TableConfig) -> Iterator[tuple[str, str, str]]:
    """Yields each file of the latest manifest with the first and the last instant in it."""
    folder = config.history_path
    for name in _latest(storage, folder):
        if match := _FILE.fullmatch(name):
            yield match["first"], match["last"], f"{folder}/{name}"


def _latest(storage: Storage, folder: str) -> tuple[str, ...]:
    """Returns the names in the latest manifest: the one that `_version_` names, or the one with the greatest number, as
    Hudi does (`TimelineUtils`, `LSMTimeline.latestSnapshotVersion`). Without a manifest nothing was archived."""
    try:
        named = storage.read(f"{folder}/{_VERSION}", most=_MOST_DIGITS).decode(errors="replace").strip()
    except PathNotFoundError:
        named = ""
    if not (named.isascii() and named.isdigit()):
        versions = [int(each["version"]) for entry in storage.list(folder) if (each := _MANIFEST.fullmatch(entry.name))]
        if not versions:
            return ()
        named = str(max(versions))
    path = f"{folder}/manifest_{named}"
    try:
        manifest = msgspec.json.decode(storage.read(path), type=_Manifest)
    except msgspec.MsgspecError as error:
        raise FileDamagedError(f"{storage.base_path}/{path} is damaged: {error}") from error
    if len(manifest.files) > MAX_FILES:
        raise StorageError(f"{storage.base_path}/{path} lists more than {MAX_FILES} files")
    return tuple(each.file_name for each in manifest.files)
