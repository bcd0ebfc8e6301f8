"""A table's files, found and written by Arrow where Hudi finds and writes them: Hadoop's paths on local disks and S3.

A `Storage` is made on the driver, where Hadoop's configuration is, and goes with the tasks.
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
from jobs.errors import RefusedError
from jobs.storage import batches, s3

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    import pyarrow.parquet as pq

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)


@dataclass(frozen=True)
class Storage:
    """The folder of one table. `root` and all paths are as Arrow's file system has them, never percent-encoded."""

    root: str
    bucket: s3.S3 | None = field(default=None)

    @property
    def filesystem(self) -> fs.FileSystem:
        return self.bucket.filesystem() if self.bucket else fs.LocalFileSystem()

    def read_parquet(self, path: str, *, plain: Collection[str] | None = None) -> pq.ParquetFile:
        """The Parquet file at `path`, which is absolute, as Hudi gives it. See `batches.opened`."""
        return batches.opened(_plain(path), self.filesystem, is_remote=self.bucket is not None, plain=plain)

    def size(self, paths: Iterable[str]) -> int:
        """Bytes of the files at these absolute paths together; those that are gone count nothing."""
        infos = self.filesystem.get_file_info([_plain(path) for path in paths])
        return sum(info.size or 0 for info in infos)

    def create(self, *segments: str) -> Output:
        """Opens a file that does not exist yet, below the root."""
        return Output(self.filesystem, self._at(segments))

    def create_empty(self, *segments: str) -> None:
        """An empty file below the root, and on a disk its folders."""
        path = self._at(segments)
        if self.bucket is None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        # Not `create_dir` on S3: that would leave objects for folders, which nobody removes.
        self.filesystem.open_output_stream(path, compression=None).close()

    def _at(self, segments: Iterable[str]) -> str:
        return "/".join([self.root, *(segment for segment in segments if segment)])


class Output:
    """A file being written through `stream`; it is there when it is closed.

    On S3 the upload has several parts, and nothing can be seen before the last request of it. A process that is killed
    leaves its parts behind, invisible: a rule of the bucket removes them (`AbortIncompleteMultipartUpload`).
    """

    def __init__(self, filesystem: fs.FileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path
        self.stream: pa.NativeFile = filesystem.open_output_stream(path, compression=None)

    def close(self) -> int:
        """Returns the size in bytes."""
        size = int(self.stream.tell())
        self.stream.close()
        return size

    def abandon(self) -> None:
        """Leaves no file, if the storage lets us. Whatever stays is found by its marker when Hudi rolls back.

        Arrow has no way to give an upload up: also when a stream is only forgotten, its upload is completed.
        """
        with suppress(OSError, pa.ArrowException):
            self.stream.close()
        with suppress(OSError, pa.ArrowException):
            self._filesystem.delete_file(self._path)


def of_hadoop(base_path: str, options: Mapping[str, str]) -> Storage:
    """The storage of a table by Hadoop's rules: `options` are Hadoop's `fs.defaultFS` and `fs.s3a.*`.

    `file:/x`, `file:///x` and `/x` are one place, but `/x` is elsewhere when another file system is the default. Raises
    `RefusedError`.
    """
    match = _SCHEME.fullmatch(base_path)
    scheme = match.group(1).lower() if match else _scheme_by_default(options)
    if scheme == "file":
        return Storage(_plain(base_path))
    if scheme != "s3a" or match is None:
        detail = f"base path {base_path}" + ("" if match else f", which fs.defaultFS puts on {scheme}:")
        raise RefusedError([not_supported(detail, "Tables on local disks and on s3a: can be rewritten so far.")])
    root = _plain(base_path)
    try:
        return Storage(root, s3.of_hadoop(options, root.partition("/")[0]))
    except s3.NotReproducibleError as error:
        hint = (
            "Start the worker without these options: give it keys, or the credentials of its environment or machine, "
            "and let the bucket's defaults encrypt."
        )
        raise RefusedError([not_supported(str(error), hint)]) from error


def _scheme_by_default(options: Mapping[str, str]) -> str:
    return options.get("fs.defaultFS", "file:///").partition(":")[0].lower()


def not_supported(detail: str, hint: str) -> Problem:
    return Problem(
        "storage-not-supported",
        "Files cannot be rewritten on this storage",
        detail,
        f"{hint} Compaction, cleaning and the audit work on every storage that Hudi knows.",
    )


def _plain(path: str) -> str:
    """Hadoop's absolute path as Arrow has it: `/x` for `file:/x` and `file:///x`, `bucket/x` for `s3a://bucket/x`."""
    match = _SCHEME.fullmatch(path)
    if match is None or path.startswith("/"):
        return path.rstrip("/") or "/"
    if match.group(1).lower() == "file":
        return "/" + match.group(2).strip("/")
    return re.sub("/+", "/", match.group(2).strip("/"))
