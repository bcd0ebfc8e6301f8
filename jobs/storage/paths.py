"""Finds and writes a table's files with Arrow at the same places as Hudi: Hadoop paths on local disks and S3.

A `Storage` is built on the driver, where Hadoop's configuration is, and is sent to the tasks.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import fs

from jobs.contract import Problem
from jobs.errors import PathOutsideTableError, RefusedError
from jobs.storage import batches, s3

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    import pyarrow.parquet as pq

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)


@dataclass(frozen=True)
class Storage:
    """The folder of one table. `root` and all paths are in the form of Arrow's file system, never percent-encoded."""

    root: str
    bucket: s3.S3 | None = field(default=None)

    @property
    def filesystem(self) -> fs.FileSystem:
        return self.bucket.filesystem() if self.bucket else fs.LocalFileSystem()

    def read_parquet(self, path: str, *, plain: Collection[str] | None = None) -> pq.ParquetFile:
        """Opens the Parquet file at `path`, an absolute path as Hudi returns it. See `batches.opened`."""
        return batches.opened(_plain(path), self.filesystem, is_remote=self.bucket is not None, plain=plain)

    def size(self, paths: Iterable[str]) -> int:
        """Returns the total bytes of the files at these absolute paths; missing files count as zero."""
        infos = self.filesystem.get_file_info([_plain(path) for path in paths])
        return sum(info.size or 0 for info in infos)

    def create(self, *segments: str) -> Output:
        """Opens a new file below the root for writing."""
        return Output(self.filesystem, self._at(segments))

    def create_empty(self, *segments: str) -> None:
        """Creates an empty file below the root, and on a local disk its parent folders."""
        path = self._at(segments)
        if self.bucket is None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        # Not `create_dir` on S3: it would leave folder objects that are never removed.
        self.filesystem.open_output_stream(path, compression=None).close()

    def _at(self, segments: Iterable[str]) -> str:
        """Raises `PathOutsideTableError` for a segment that leads out of the table."""
        segments = list(segments)
        if outside := next((each for each in segments if ".." in each.split("/")), None):
            raise PathOutsideTableError(outside)
        return "/".join([self.root, *(segment for segment in segments if segment)])


class Output:
    """A file written through `stream`; it exists once it is closed.

    On S3 the upload has several parts, and nothing is visible before its last request. A killed process leaves
    invisible parts behind, which a rule of the bucket removes (`AbortIncompleteMultipartUpload`).
    """

    def __init__(self, filesystem: fs.FileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path
        self.stream: pa.NativeFile = filesystem.open_output_stream(path, compression=None)

    def close(self) -> int:
        """Closes the file and returns its size in bytes."""
        size = int(self.stream.tell())
        self.stream.close()
        return size

    def abandon(self) -> None:
        """Deletes the file, if the storage allows it. Hudi's rollback finds a file that remains by its marker.

        Arrow cannot abort an upload: even a stream that is merely dropped completes its upload.
        """
        with suppress(OSError, pa.ArrowException):
            self.stream.close()
        with suppress(OSError, pa.ArrowException):
            self._filesystem.delete_file(self._path)


def of_hadoop(base_path: str, options: Mapping[str, str]) -> Storage:
    """Returns a table's storage by Hadoop's rules; `options` are Hadoop's `fs.defaultFS` and `fs.s3a.*`.

    `file:/x`, `file:///x` and `/x` are the same place, but `/x` is elsewhere when another file system is the default.
    Raises `RefusedError`.
    """
    match = _SCHEME.fullmatch(base_path)
    scheme = match.group(1).lower() if match else _scheme_by_default(options)
    if scheme == "file":
        return Storage(_plain(base_path))
    if scheme != "s3a" or match is None:
        detail = f"base path {base_path}" + ("" if match else f", which is on {scheme}: by fs.defaultFS")
        raise RefusedError([not_supported(detail, "Only tables on local disks and on s3a: can be rewritten.")])
    root = _plain(base_path)
    try:
        return Storage(root, s3.of_hadoop(options, root.partition("/")[0]))
    except s3.NotReproducibleError as error:
        hint = (
            "Start the worker without these options: provide keys, or use the credentials of its environment or "
            "machine, and leave encryption to the bucket's defaults."
        )
        raise RefusedError([not_supported(str(error), hint)]) from error


def _scheme_by_default(options: Mapping[str, str]) -> str:
    return options.get("fs.defaultFS", "file:///").partition(":")[0].lower()


def not_supported(detail: str, hint: str) -> Problem:
    return Problem(
        "storage-not-supported",
        "Files cannot be rewritten on this storage",
        detail,
        f"{hint} Compaction, cleaning and the audit work on every storage that Hudi supports.",
    )


def _plain(path: str) -> str:
    """Converts Hadoop's absolute path to Arrow's: `file:/x` and `file:///x` to `/x`, `s3a://bucket/x` to `bucket/x`."""
    match = _SCHEME.fullmatch(path)
    if match is None or path.startswith("/"):
        return path.rstrip("/") or "/"
    if match.group(1).lower() == "file":
        return "/" + match.group(2).strip("/")
    return re.sub("/+", "/", match.group(2).strip("/"))
