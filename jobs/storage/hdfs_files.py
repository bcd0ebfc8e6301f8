"""Arrow's file system over WebHDFS."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryFile
from typing import Any

import pyarrow as pa
from pyarrow import fs

from jobs.storage.webhdfs import Status, WebHdfs

# WebHDFS has no request for the status of several files, so threads send one for each.
_PATHS_AT_ONCE = 8
_MAX_READ = 16 * 1024 * 1024


class HdfsFiles(fs.FileSystemHandler):  # type: ignore[misc]
    """A handler for `fs.PyFileSystem`. `options` are WebHDFS's for new files, such as `permission`."""

    def __init__(self, client: WebHdfs, options: Mapping[str, str]) -> None:
        self._client = client
        self._options = options

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HdfsFiles) and other._client is self._client

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def get_type_name(self) -> str:
        return "webhdfs"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        if len(paths) < _PATHS_AT_ONCE:
            return [self._info(path) for path in paths]
        with ThreadPoolExecutor(_PATHS_AT_ONCE) as pool:
            return list(pool.map(self._info, paths))

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        return list(self._below(selector.base_dir.rstrip("/"), selector))

    def create_dir(self, path: str, recursive: bool) -> None:  # noqa: ARG002 - HDFS creates parents in any case
        self._client.make_folder(path)

    def delete_dir(self, path: str) -> None:
        self._client.delete(path, recursive=True)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        try:
            children = list(self._client.children(path))
        except FileNotFoundError:
            if missing_dir_ok:
                return
            raise
        for child in children:
            self._client.delete(f"{path.rstrip('/')}/{child.name}", recursive=True)

    def delete_root_dir_contents(self) -> None:
        raise OSError("The root of a cluster is never emptied")

    def delete_file(self, path: str) -> None:
        if not self._client.delete(path):
            raise FileNotFoundError(path)

    def move(self, src: str, dest: str) -> None:
        self._client.rename(src, dest)

    def copy_file(self, src: str, dest: str) -> None:  # noqa: ARG002 - Arrow's signature, as below
        raise OSError("WebHDFS copies no files")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        status = self._client.status(path)
        if status.is_folder:
            raise IsADirectoryError(path)
        return pa.PythonFile(_Input(self._client, path, status.size), mode="r")

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:  # noqa: ARG002
        return pa.PythonFile(_Output(self._client, path, self._options), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> pa.NativeFile:  # noqa: ARG002
        raise OSError("Files are written as a whole")

    def _info(self, path: str) -> fs.FileInfo:
        try:
            return _info_of(path, self._client.status(path))
        except (FileNotFoundError, NotADirectoryError):
            return fs.FileInfo(path, fs.FileType.NotFound)

    def _below(self, folder: str, selector: fs.FileSelector, *, inside: bool = False) -> Iterator[fs.FileInfo]:
        try:
            children = list(self._client.children(folder or "/"))
        except FileNotFoundError:
            # A folder inside may have gone since it was listed.
            if selector.allow_not_found or inside:
                return
            raise
        for child in children:
            if not child.name:
                raise NotADirectoryError(folder)
            path = f"{folder}/{child.name}"
            yield _info_of(path, child)
            if selector.recursive and child.is_folder:
                yield from self._below(path, selector, inside=True)


def _info_of(path: str, status: Status) -> fs.FileInfo:
    if status.is_folder:
        return fs.FileInfo(path, fs.FileType.Directory, mtime=status.modified_at)
    return fs.FileInfo(path, fs.FileType.File, size=status.size, mtime=status.modified_at)


class _Input(io.RawIOBase):
    """An open file; each read is a request of its own, without a buffer."""

    def __init__(self, client: WebHdfs, path: str, size: int) -> None:
        self._client = client
        self._path = path
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(start + offset, 0)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        left = max(self._size - self._position, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        parts = []
        while wanted:
            part = self._client.read(self._path, self._position, min(wanted, _MAX_READ))
            self._position += len(part)
            wanted -= len(part)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class _Output(io.RawIOBase):
    """Keeps the file on a local disk and uploads it when it is closed, so that the upload can be repeated."""

    def __init__(self, client: WebHdfs, path: str, options: Mapping[str, str]) -> None:
        self._client = client
        self._path = path
        self._options = options
        self._content = TemporaryFile()  # noqa: SIM115 - closed with this

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._content.tell()

    def write(self, data: Any) -> int:
        return self._content.write(data)

    def close(self) -> None:
        if self.closed:
            return
        try:
            self._content.flush()
            self._client.write(self._path, self._content, self._options)
        finally:
            self._content.close()
            super().close()
