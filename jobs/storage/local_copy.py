"""Copies of remote files, in memory or on a local disk, fetched by few large requests.

A Parquet reader asks for each column of each row group, and again for each of its buffers: dozens of requests even for
a small file.
"""

from __future__ import annotations

import os
from tempfile import NamedTemporaryFile

import pyarrow as pa

REQUEST_BYTES = 16 * 1024 * 1024
"""Bytes of one request, and the size up to which a file stays in memory."""


def local_copy(source: pa.NativeFile, in_memory: int | None = None) -> pa.NativeFile:
    """Returns the whole file: in memory up to `in_memory` bytes (None: one request), else in a nameless file on a local
    disk. Raises OSError, also for a file that is shorter than its size says.
    """
    size = source.size()
    if size <= (REQUEST_BYTES if in_memory is None else in_memory):
        content = source.read_buffer(size)
        _require(len(content), size)
        return pa.BufferReader(content)
    with NamedTemporaryFile(prefix="input-", dir=folder()) as file:
        copied = 0
        while chunk := source.read(REQUEST_BYTES):
            copied += file.write(chunk)
        _require(copied, size)
        file.flush()
        return pa.OSFile(file.name)


def folder() -> str | None:
    """Returns the folder of Spark's temporary files, which a cluster limits and cleans; None by default."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or None


def _require(found: int, size: int) -> None:
    if found != size:
        raise OSError(f"{found} of {size} bytes were read")
