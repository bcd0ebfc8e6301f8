"""Compresses the pages of a Parquet file by gzip with Intel's ISA-L, which takes an eighth of zlib's CPU time for files
of the same size. pyarrow only has zlib. So it writes pages without compression, this module compresses each page on its
way to the file, and corrects all positions and sizes: headers of pages, metadata of chunks and row groups, offset
indexes. Values, encodings, statistics and the footer's entries stay as pyarrow wrote them. Source: `parquet.thrift` of
Parquet's format 2.12, where a gzip page is one member of RFC 1952.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

from jobs.dataplane import column_chunks
from jobs.dataplane.column_chunks import MAGIC, RowGroup
from jobs.dataplane.not_copyable import NotCopyableError
from jobs.errors import RefusedError, RowsDifferError
from jobs.format import gzip_level
from jobs.format.compact_thrift import (
    I32,
    I64,
    TRUE,
    Field,
    Struct,
    ThriftError,
    TruncatedError,
    Wanted,
    read_struct,
    write_struct,
)

try:
    from isal import isal_zlib
except ImportError:  # The package has no wheel for this machine.
    IS_AVAILABLE = False
else:
    IS_AVAILABLE = True

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator

    import pyarrow as pa

_GZIP_MEMBER = 31  # zlib's `wbits` for the largest window and a gzip header
_CODEC_GZIP = 2
_TAIL = 8  # the footer's length and the magic bytes
_TYPE, _UNCOMPRESSED_SIZE, _SIZE, _CRC, _DATA_HEADER_V2 = 1, 2, 3, 4, 8  # of PageHeader
_KINDS = frozenset({0, 2, 3})  # data, dictionary, data of version 2
_DEFINITION_BYTES, _REPETITION_BYTES, _IS_COMPRESSED = 5, 6, 7  # of DataPageHeaderV2
# OffsetIndex, and its PageLocation
_LOCATIONS, _OFFSET, _COMPRESSED_SIZE = 1, 1, 2
# What is read of a page header, and of a footer; the rest stays as it is.
_OF_HEADER: Wanted = {_DATA_HEADER_V2: {}}
_OF_FOOTER: Wanted = {column_chunks.ROW_GROUPS: {column_chunks.COLUMNS: {column_chunks.META: {column_chunks.PATH: {}}}}}


class BrokenPagesError(RefusedError):
    """The written bytes are not a Parquet file of uncompressed pages."""

    def __init__(self, detail: str) -> None:
        hint = "Nothing was changed. This is an error of Groundskeeper or of the machine's memory: please report it."
        title = "The pages of a new file are not what its footer says"
        super().__init__([RowsDifferError.because(detail, title=title, hint=hint)])


class _Moved(NamedTuple):
    """Where a page begins now, and by how many bytes the headers before it have grown or shrunk."""

    at: int
    grown: int


class GzipPages:
    """Takes the bytes of an uncompressed Parquet file, and writes its pages to `stream`, compressed; `end` returns the
    rest. Memory: one page, compressed and uncompressed. Raises `BrokenPagesError` if the bytes are not a sequence of
    pages.
    """

    def __init__(self, stream: pa.NativeFile | io.BytesIO) -> None:
        self._stream = stream
        self._level = gzip_level.level()
        self._read = self._written = 0
        self._grown = 0
        self._moved: dict[int, _Moved] = {}
        self._rest = b""
        self._page: _Page | None = None

    def write(self, data: bytes) -> None:
        """Takes the next bytes of the file, from its first one on."""
        if self._written == 0:
            data = self._rest + data
            self._rest = b""
            if len(data) < len(MAGIC):
                self._rest = data
                return
            if data[: len(MAGIC)] != MAGIC:
                raise BrokenPagesError(f"a file that begins with {data[:4]!r}")
            self._pass(MAGIC)
            self._read = len(MAGIC)
            data = data[len(MAGIC) :]
        rest = memoryview(data)
        while len(rest):
            rest = self._into_page(rest) if self._page else self._into_header(rest)

    def end(self, content: bytes) -> bytes:
        """Returns the bytes after the pages: page indexes and footer, for the compressed file."""
        if self._page or self._rest or not self._written:
            raise BrokenPagesError("the last page is not complete")
        self._moved[self._read] = _Moved(self._written, self._grown)
        try:
            return self._mended(content)
        except (NotCopyableError, ThriftError, KeyError, AttributeError, TypeError) as error:
            raise BrokenPagesError(f"the footer: {error!r}") from error

    def _into_header(self, data: memoryview) -> memoryview:
        whole = self._rest + data if self._rest else data
        try:
            header, length = read_struct(whole, wanted=_OF_HEADER)
            self._page = _Page(header, self._level)
        except TruncatedError:
            self._rest = bytes(whole)
            return data[len(data) :]
        except (ThriftError, KeyError, AttributeError, TypeError) as error:
            raise BrokenPagesError(f"the header of a page: {error!r}") from error
        self._moved[self._read] = _Moved(self._written, self._grown)
        self._read += length
        self._grown -= length
        data = data[length - len(self._rest) :]
        self._rest = b""
        return data if self._page.missing else self._into_page(data)

    def _into_page(self, data: memoryview) -> memoryview:
        page = self._page
        if page is None:
            raise AssertionError("no page has begun")
        own = data[: page.missing]
        page.add(own)
        self._read += len(own)
        if not page.missing:
            header, body = page.compressed()
            self._grown += len(header)
            self._pass(header)
            for part in body:
                self._pass(part)
            self._page = None
        return data[len(own) :]

    def _pass(self, content: bytes) -> None:
        self._stream.write(content)
        self._written += len(content)

    def _mended(self, content: bytes) -> bytes:
        length = int.from_bytes(content[-_TAIL:-4], "little")
        begin = len(content) - _TAIL - length
        if content[-4:] != MAGIC or begin < 0:
            raise BrokenPagesError(f"a footer of {length} bytes that ends with {content[-4:]!r}")
        footer, _ = read_struct(content, begin, wanted=_OF_FOOTER)
        groups = [RowGroup.of(group) for group in footer[column_chunks.ROW_GROUPS].value.values]
        for group in groups:
            self._mend_group(group)
        out = bytearray()
        at = 0
        # Bloom filters, column indexes and offset indexes, one behind the other.
        for offset, size, struct, numbers in sorted(
            (each for group in groups for each in _pieces(group)), key=lambda piece: piece[0]
        ):
            if offset != self._read + at:
                raise BrokenPagesError(f"a page index at {offset} instead of {self._read + at}")
            piece = content[at : at + size]
            if numbers == column_chunks.OFFSET_INDEX:
                piece = self._mended_index(piece)
            struct[numbers[0]] = Field(I64, self._written + len(out))
            struct[numbers[1]] = Field(I32, len(piece))
            out += piece
            at += size
        if at != begin:
            raise BrokenPagesError(f"{begin - at} bytes before the footer that belong to nothing")
        written = write_struct(footer)
        return bytes(out + written + len(written).to_bytes(4, "little") + MAGIC)

    def _mend_group(self, group: RowGroup) -> None:
        for chunk in group.chunks:
            if chunk.codec:
                raise BrokenPagesError(f"pages compressed by codec {chunk.codec}")
            chunk.meta[column_chunks.CODEC] = Field(I32, _CODEC_GZIP)
            if not chunk.length:  # There are no rows.
                continue
            begin, end = self._moved[chunk.start], self._moved[chunk.start + chunk.length]
            _add(chunk.meta, column_chunks.UNCOMPRESSED, end.grown - begin.grown)
            chunk.meta[column_chunks.CHUNK_COMPRESSED] = Field(I64, end.at - begin.at)
            self._move(chunk.meta, column_chunks.DATA_PAGE)
            self._move(chunk.meta, column_chunks.DICTIONARY_PAGE)
            self._move(chunk.struct, column_chunks.CHUNK_OFFSET)
            _add(group.struct, column_chunks.TOTAL_BYTES, end.grown - begin.grown)
        if column_chunks.COMPRESSED in group.struct:
            compressed = sum(chunk.number(column_chunks.CHUNK_COMPRESSED) for chunk in group.chunks)
            group.struct[column_chunks.COMPRESSED] = Field(I64, compressed)
        self._move(group.struct, column_chunks.GROUP_OFFSET)

    def _move(self, struct: Struct, number: int) -> None:
        """Corrects a position; 0 means that there is nothing."""
        if number in struct and struct[number].value:
            struct[number] = Field(I64, self._moved[struct[number].value].at)

    def _mended_index(self, content: bytes) -> bytes:
        index, _ = read_struct(content)
        for page in index[_LOCATIONS].value.values:
            old, size = page[_OFFSET].value, page[_COMPRESSED_SIZE].value
            begin, end = self._moved[old], self._moved[old + size]
            page[_OFFSET] = Field(I64, begin.at)
            page[_COMPRESSED_SIZE] = Field(I32, end.at - begin.at)
        return write_struct(index)


class _Page:
    """A page that is being received; `missing` is the number of its bytes that have not come yet."""

    def __init__(self, header: Struct, level: int) -> None:
        if header[_TYPE].value not in _KINDS:
            raise BrokenPagesError(f"a page of type {header[_TYPE].value}")
        self._header = header
        self.missing: int = header[_SIZE].value
        self._level = level
        self._v2: Struct | None = header[_DATA_HEADER_V2].value if _DATA_HEADER_V2 in header else None
        # In pages of version 2 the levels before the values are never compressed.
        self._plain = self._v2[_DEFINITION_BYTES].value + self._v2[_REPETITION_BYTES].value if self._v2 else 0
        if not 0 <= self._plain <= self.missing == header[_UNCOMPRESSED_SIZE].value:
            sizes = f"{self.missing} bytes, {self._plain} of them levels, {header[_UNCOMPRESSED_SIZE].value} before"
            raise BrokenPagesError(f"a page of {sizes} its compression")
        self._parts: list[memoryview] = []

    def add(self, data: memoryview) -> None:
        # The bytes are mostly a whole page, and the writer does not change them any more, so they need no copy.
        self._parts.append(data)
        self.missing -= len(data)

    def compressed(self) -> tuple[bytes, list[bytes]]:
        """Returns the header and the page."""
        raw = self._parts[0] if len(self._parts) == 1 else memoryview(b"".join(self._parts))
        body = [bytes(raw[: self._plain])] if self._plain else []
        if self._v2 is None or len(raw) > self._plain:
            body.append(isal_zlib.compress(raw[self._plain :], self._level, _GZIP_MEMBER))
        if self._v2 is not None:
            self._v2[_IS_COMPRESSED] = Field(TRUE, len(raw) > self._plain)
        self._header[_SIZE] = Field(I32, sum(map(len, body)))
        if _CRC in self._header:
            check = 0
            for part in body:
                check = zlib.crc32(part, check)
            # Thrift has no unsigned integers.
            self._header[_CRC] = Field(I32, check - (check >> 31 << 32))
        return write_struct(self._header), body


def _pieces(group: RowGroup) -> Iterator[tuple[int, int, Struct, tuple[int, int]]]:
    """Yields the places of the chunks' Bloom filters and page indexes, each with the struct and its two fields that
    hold the place."""
    for chunk in group.chunks:
        for struct, numbers in (
            (chunk.meta, column_chunks.BLOOM),
            (chunk.struct, column_chunks.COLUMN_INDEX),
            (chunk.struct, column_chunks.OFFSET_INDEX),
        ):
            if numbers[0] in struct:
                yield struct[numbers[0]].value, struct[numbers[1]].value, struct, numbers


def _add(struct: Struct, number: int, more: int) -> None:
    struct[number] = Field(I64, struct[number].value + more)
