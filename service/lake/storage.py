"""Access to a table's files, on any storage. Only this module translates storage errors into the service's own."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from stat import S_IFDIR, S_IFMT, S_IFREG
from typing import NamedTuple

import pyarrow as pa
from pyarrow import fs

from jobs.storage.location import is_local
from jobs.storage.refusal import Refusal, refusal_in
from jobs.storage.store import LoginError, NotReproducibleError
from jobs.storage.stores import path_of, store_of
from service.lake.location import check_allowed
from service.model.storage_errors import (
    PathNotFoundError,
    PathOutsideTableError,
    StorageCertificateError,
    StorageDeniedError,
    StorageError,
    StorageKeyError,
    StorageLoginError,
    StorageRegionError,
    StorageRoleError,
    StorageUnknownError,
    StorageUnsupportedError,
)

_HINT = "Remove this from GROUNDSKEEPER_STORAGE_OPTIONS. Declare the account in GROUNDSKEEPER_STORAGE_ACCOUNTS instead."

_REFUSED: Mapping[Refusal | None, type[StorageError]] = {
    Refusal.KEY: StorageKeyError,
    Refusal.ROLE: StorageRoleError,
    Refusal.CERTIFICATE: StorageCertificateError,
    Refusal.REGION: StorageRegionError,
    Refusal.LOGIN: StorageLoginError,
    Refusal.DENIED: StorageDeniedError,
    Refusal.UNKNOWN: StorageUnknownError,
    Refusal.UNKNOWN_HOST: StorageUnknownError,
}
"""The refusals that concern reads. All others concern only writes."""

# Arrow uses this text if the storage gives no reason.
_WITHOUT_REASON = "No response body"

MAX_METADATA_BYTES = 64 * 1024 * 1024
"""The largest size of a file of the timeline. Properties and hashing configs have lower limits."""

MAX_CONFIG_BYTES = 1024 * 1024

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PART_BYTES = 64 * 1024

MAX_LISTED = 3_000_000
"""The largest number of entries of one listing."""


class Entry(NamedTuple):
    """A file or folder; `path` is relative to the table. `size` is in bytes, 0 for a folder. `modified_us` is in
    microseconds since 1970."""

    path: str
    size: int
    is_folder: bool
    modified_us: int | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def modified_at(self) -> datetime | None:
        return None if self.modified_us is None else _EPOCH + timedelta(0, 0, self.modified_us)


@dataclass(frozen=True)
class Storage:
    """The folder of one table. All paths are relative to it, with `/` between segments."""

    base_path: str
    filesystem: fs.FileSystem
    root: str
    # Local folders that were checked: no part of their paths is a symbolic link.
    _plain: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def exists(self, path: str = "") -> bool:
        with self._translated_errors(path):
            return bool(self.filesystem.get_file_info(self._at(path)).type != fs.FileType.NotFound)

    def list(self, path: str = "", *, recursive: bool = False, most: int = MAX_LISTED) -> list[Entry]:
        """Returns the files and folders below `path`; an empty list if it does not exist.

        Raises StorageError for more than `most` entries, and PathOutsideTableError for a folder that is a link out of
        the table.
        """
        start = len(self.root.rstrip("/")) + 1
        with self._translated_errors(path):
            if is_local(self.base_path):
                found = list(islice(self._listed(self._at(path), start, recursive=recursive), most + 1))
            else:
                selector = fs.FileSelector(self._at(path), allow_not_found=True, recursive=recursive)
                found = [_entry(info, start) for info in self.filesystem.get_file_info(selector)]
        if len(found) > most:
            raise StorageError(f"{self.base_path}/{path} has more than {most} files")
        return found

    def _listed(self, folder: str, start: int, *, recursive: bool) -> Iterator[Entry]:
        """Yields the entries of a local folder, with the same result as Arrow, but several times as fast. A symbolic
        link has the type and the size of its target, and is left out if the target does not exist."""
        try:
            inside = os.scandir(folder)
        except FileNotFoundError:
            return
        with inside:
            for each in inside:
                try:
                    status = each.stat()
                except FileNotFoundError:
                    continue
                if not each.name.isascii():
                    each.name.encode()  # The encoding raises UnicodeError.
                kind, path = S_IFMT(status.st_mode), each.path[start:]
                is_folder, size = kind == S_IFDIR, status.st_size if kind == S_IFREG else 0
                # The first polls of many tables make millions of entries, and keywords would make each a third slower.
                yield Entry._make((path, size, is_folder, status.st_mtime_ns // 1000))
                if is_folder and recursive:
                    yield from self._listed(self._at(path) if each.is_symlink() else each.path, start, recursive=True)

    def names(self, path: str) -> Sequence[str]:
        """Returns the names in the folder `path`. Polls use this, because it is the cheapest listing. Raises
        PathNotFoundError."""
        with self._translated_errors(path):
            if is_local(self.base_path):
                return os.listdir(self._at(path))  # noqa: PTH208 - every poll runs this: no Path objects
            infos = self.filesystem.get_file_info(fs.FileSelector(self._at(path)))
        return [info.base_name for info in infos]

    def modified_at(self, path: str) -> datetime | None:
        """Returns the modification time, None if there is no such file."""
        with self._translated_errors(path):
            info = self.filesystem.get_file_info(self._at(path))
        modified: datetime | None = info.mtime if info.type == fs.FileType.File else None
        return modified

    def read(self, path: str, *, most: int = MAX_METADATA_BYTES) -> bytes:
        """Reads the whole file. Raises PathNotFoundError, and StorageError, also for a file of more than `most`
        bytes."""
        if is_local(self.base_path):
            with self._translated_errors(path):
                content = self._content(path, most + 1)
        else:
            with self.open(path) as file:
                content = bytes(file.read(most + 1))
        if len(content) > most:
            raise StorageError(f"{self.base_path}/{path} has more than {most} bytes")
        return content

    @contextmanager
    def open(self, path: str) -> Iterator[pa.NativeFile]:
        """Opens the file for random access. Also translates errors that the block raises."""
        with self._translated_errors(path), self.filesystem.open_input_file(self._at(path)) as file:
            yield file

    def _translated_errors(self, path: str) -> AbstractContextManager[None]:
        return _translated_errors(self.base_path, path, self._reason)

    def _reason(self, refusal: Refusal | None, said: str) -> Refusal | None:
        """Returns the reason of an error. S3 gives no reason in its answer to a HEAD request, but gives one in its
        answer to a listing."""
        if refusal not in (Refusal.DENIED, None) or is_local(self.base_path) or _WITHOUT_REASON not in said:
            return refusal
        try:
            self.filesystem.get_file_info(fs.FileSelector(self.root, allow_not_found=True))
        except (OSError, pa.ArrowException) as error:
            return refusal_in(str(error)) or refusal
        return refusal

    def _content(self, path: str, most: int) -> bytes:
        """Returns at most `most` bytes of a local file. Arrow is not used, because it would first allocate `most`
        bytes."""
        found = self._below(path)
        if self._is_plain(found.rpartition("/")[0]):
            # The call of `open` itself refuses a link. A check before would be one more call for each file.
            try:
                return _read(os.open(found, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), most)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
        return _read(os.open(self._at(path), os.O_RDONLY | os.O_CLOEXEC), most)

    def _at(self, path: str) -> str:
        """Returns the whole path. Raises PathOutsideTableError for a path that leads out of the table, by `..` or by a
        link."""
        found = self._below(path)
        if is_local(self.base_path):
            self._check_links(found)
        return found

    def _below(self, path: str) -> str:
        """Raises PathOutsideTableError for a path with `..`."""
        if path.startswith("/") or ".." in path.split("/"):
            raise PathOutsideTableError(f"{path} is not below {self.base_path}")
        return f"{self.root.rstrip('/')}/{path}" if path else self.root

    def _check_links(self, found: str) -> None:
        if self._is_plain(found.rpartition("/")[0]) and not os.path.islink(found):  # noqa: PTH114 - for each file
            return
        real = os.path.realpath(found)
        if real != found and not real.startswith(f"{self.root.rstrip('/')}/"):
            raise PathOutsideTableError(f"{found} leads to {real}")

    def _is_plain(self, folder: str) -> bool:
        """Returns whether nothing on the way to a local folder is a link."""
        if folder in self._plain:
            return True
        if len(folder) <= len(self.root):
            is_plain = os.path.realpath(folder) == folder
        else:
            is_plain = self._is_plain(folder.rpartition("/")[0]) and not os.path.islink(folder)  # noqa: PTH114
        if is_plain:
            self._plain.add(folder)
        return is_plain


def _read(file: int, most: int) -> bytes:
    """Returns at most `most` bytes of an open file, and closes it."""
    parts = []
    try:
        # A file system in user space may return fewer bytes than were asked for, even before the end of the file.
        while most and (part := os.read(file, min(most, _PART_BYTES))):
            parts.append(part)
            most -= len(part)
    finally:
        os.close(file)
    return b"".join(parts)


def _entry(info: fs.FileInfo, start: int) -> Entry:
    modified = info.mtime_ns
    modified_us = None if modified is None else modified // 1000
    return Entry(info.path[start:], info.size or 0, info.type == fs.FileType.Directory, modified_us)


def open_storage(base_path: str, options: Mapping[str, str], allowed_roots: Sequence[str] | None = None) -> Storage:
    """Opens the storage of a canonical base path.

    `options` are Hadoop's (`fs.s3a.*`, `dfs.*`), as in the owner's Spark jobs. Raises PathForbiddenError for a path
    outside the roots, StorageUnsupportedError for options that have no equivalent here, and StorageError.
    """
    check_allowed(base_path, allowed_roots)
    if is_local(base_path):
        return Storage(base_path, fs.LocalFileSystem(), base_path)
    with _translated_errors(base_path):
        try:
            # Timeouts are short, because a caller waits for the answer.
            store = store_of(base_path, options).with_short_timeouts()
        except NotReproducibleError as error:
            raise StorageUnsupportedError(str(error), hint=_HINT) from error
        return Storage(base_path, store.filesystem(), path_of(base_path))


def _as_said(refusal: Refusal | None, _said: str) -> Refusal | None:
    return refusal


@contextmanager
def _translated_errors(
    base_path: str, path: str = "", reason: Callable[[Refusal | None, str], Refusal | None] = _as_said
) -> Iterator[None]:
    where = f"{base_path}/{path}" if path else base_path
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise PathNotFoundError(f"{where} does not exist") from error
    except LoginError as error:
        raise StorageLoginError(f"{where}: {error}") from error
    except UnicodeError as error:
        raise StorageError(f"{where} contains a name that is not UTF-8: {error}") from error
    except (OSError, pa.ArrowException) as error:
        refusal = reason(refusal_in(str(error)), str(error))
        raise _REFUSED.get(refusal, StorageError)(f"{where}: {error}") from error
