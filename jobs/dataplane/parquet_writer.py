"""Extends pyarrow's writer of Parquet by types of the schema (`logical_types`) and fast gzip (`gzip_pages`)."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.dataplane import gzip_pages
from jobs.dataplane.gzip_pages import GzipPages

if TYPE_CHECKING:
    from jobs.dataplane.logical_types import Annotations


class ParquetWriter(pq.ParquetWriter):  # type: ignore[misc]  # pyarrow has no types
    """Writes a Parquet file to a stream, which stays open. `options` are pyarrow's.

    pyarrow alone writes a file without gzip and annotations, and also compresses gzip files if ISA-L is missing or the
    file is small.
    """

    def __init__(
        self,
        stream: pa.NativeFile | io.BytesIO,
        schema: pa.Schema,
        annotations: Annotations,
        *,
        is_small: bool = False,
        **options: Any,
    ) -> None:
        self._sink: _HeldEnd | None = None
        if options.get("compression") == "gzip" and gzip_pages.IS_AVAILABLE and not is_small:
            options |= {"compression": "none", "compression_level": None}
            self._sink = _HeldEnd(stream, annotations, GzipPages(stream))
        elif annotations:
            self._sink = _HeldEnd(stream, annotations)
        super().__init__(self._sink or stream, schema, **options)

    def close(self) -> None:
        if not self.is_open:
            return
        if self._sink is None:
            super().close()
            return
        # All pages are written by now; the indexes of pages and the footer follow.
        self._sink.hold()
        super().close()
        self._sink.release()

    def abandon(self) -> None:
        """Frees the writer's memory. The bytes that it has written are not a valid file."""
        if self._sink is not None:
            self._sink.discard()
        with suppress(OSError, pa.ArrowException):
            super().close()


class _HeldEnd(io.RawIOBase):
    """Passes bytes on to a stream that cannot be changed afterwards, but holds back the last ones."""

    def __init__(
        self, stream: pa.NativeFile | io.BytesIO, annotations: Annotations, pages: GzipPages | None = None
    ) -> None:
        """`pages` compresses the pages on the way to the stream."""
        self._stream = stream
        self._annotations = annotations
        self._pages = pages
        self._at = 0
        self._held: bytearray | None = None
        self._is_discarded = False

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        if self._held is not None:
            self._held += data
        elif not self._is_discarded:
            (self._pages or self._stream).write(data)
        self._at += len(data)
        return len(data)

    def hold(self) -> None:
        self._held = bytearray()

    def discard(self) -> None:
        self._is_discarded = True

    def release(self) -> None:
        end = bytes(self._held or b"")
        if self._pages is not None:
            end = self._pages.end(end)
        if self._annotations:
            end = self._annotations.applied(end)
        self._stream.write(end)
