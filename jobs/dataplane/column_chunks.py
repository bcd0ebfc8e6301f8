"""Copies row groups between Parquet files as bytes: no page is decompressed, decoded or encoded again.

pyarrow cannot do that. A copied chunk keeps its encodings, codec and statistics. Only the footer and the page indexes
change, because they hold positions in the file. Each copy walks the headers of its pages, so that a footer with wrong
positions or counts is noticed. Hudi's own copier for the JVM (`HoodieParquetBinaryCopyBase`, 1.2) does the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jobs.dataplane.chunk_pages import ChunkPages, moved_index, moved_pages
from jobs.dataplane.not_copyable import DamagedFooterError, EncryptedError, NotCopyableError
from jobs.format import compact_thrift as thrift
from jobs.format.compact_thrift import (
    BINARY,
    I64,
    LIST,
    STRUCT,
    Field,
    Items,
    ThriftError,
    read_struct,
    write_struct,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    import pyarrow as pa

    from jobs.format.compact_thrift import Struct

MAGIC, _ENCRYPTED_MAGIC = b"PAR1", b"PARE"
_TAIL = 8  # the footer's length and the magic bytes
_MOST_FOOTER_BYTES = 16 * 1024 * 1024
_MOST_INDEX_BYTES = 16 * 1024 * 1024
_MOST_CHUNKS = 20_000
BLOCK_BYTES = 8 * 1024 * 1024

_NAME, _CHILDREN, _NONE = 4, 5, Field(thrift.I32, 0)  # of a `SchemaElement`
# Fields and their types. A file with any other field is not copied, because that field may hold a position.
VERSION, SCHEMA, NUM_ROWS, ROW_GROUPS, KEY_VALUES, CREATED_BY, COLUMN_ORDERS = range(1, 8)
_ENCRYPTION = 8
_FILE_FIELDS = dict(zip(range(1, 8), (thrift.I32, LIST, I64, LIST, LIST, BINARY, LIST), strict=True))
COLUMNS, TOTAL_BYTES, _ROWS, SORTING, GROUP_OFFSET, COMPRESSED, _ORDINAL = range(1, 8)
_GROUP_FIELDS = dict(zip(range(1, 8), (LIST, I64, I64, LIST, I64, I64, thrift.I16), strict=True))
# The fields for the path of another file and for encryption are not supported.
CHUNK_OFFSET, META = 2, 3
# Each index has a position and a length.
OFFSET_INDEX, COLUMN_INDEX = (4, 5), (6, 7)
_CHUNK_FIELDS = dict(zip(range(2, 8), (I64, STRUCT, I64, thrift.I32, I64, thrift.I32), strict=True))
PATH, CODEC, _NUM_VALUES, UNCOMPRESSED, CHUNK_COMPRESSED, DATA_PAGE, DICTIONARY_PAGE = 3, 4, 5, 6, 7, 9, 11
BLOOM = (14, 15)  # position and length
# `CompressionCodec`, by the names of pyarrow.
CODECS = {0: "none", 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4"}
# `index_page_offset` is missing, since nobody writes such pages. The last two are statistics.
_META_FIELDS = {
    **dict(zip(range(1, 10), (thrift.I32, LIST, LIST, thrift.I32, I64, I64, I64, LIST, I64), strict=True)),
    **dict(zip(range(11, 18), (I64, STRUCT, LIST, I64, thrift.I32, STRUCT, STRUCT), strict=True)),
}


class RawFile:
    """A Parquet file whose footer was read. `footer` has all fields that the file has."""

    def __init__(self, source: pa.NativeFile) -> None:
        """Raises `EncryptedError`, `DamagedFooterError`, and `NotCopyableError` for other files with fields of a newer
        format."""
        self._source = source
        self._block, self._block_at = b"", 0
        size = source.size()
        tail = source.read_at(_TAIL, max(size - _TAIL, 0))
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] == _ENCRYPTED_MAGIC:
            raise EncryptedError("an encrypted footer")
        if tail[4:] != MAGIC or length > min(size - _TAIL, _MOST_FOOTER_BYTES):
            raise NotCopyableError(f"a footer of {length} bytes that ends with {tail[4:]!r}")
        self._end = size - _TAIL - length
        try:
            self.footer, _ = read_struct(source.read_at(length, self._end))
            if _ENCRYPTION in self.footer:
                raise EncryptedError("encrypted columns")
            _require_known(self.footer, _FILE_FIELDS)
            self.schema: Items = self.footer[SCHEMA].value
            self.groups = [RowGroup.of(group) for group in self.footer[ROW_GROUPS].value.values]
            self._require_whole()
        except (ThriftError, KeyError, AttributeError, TypeError) as error:
            raise NotCopyableError(f"the footer: {error!r}") from error
        chunks = [chunk for group in self.groups for chunk in group.chunks]
        # If chunks overlapped, the copy could be many times as large as the file.
        if len(chunks) > _MOST_CHUNKS or sum(chunk.length for chunk in chunks) > self._end:
            raise NotCopyableError(f"{len(chunks)} column chunks, or such that overlap")

    def _require_whole(self) -> None:
        """Raises `DamagedFooterError` unless the footer agrees with itself about the number of rows and the columns."""
        leaves = [each for each in self.schema.values if each.get(_CHILDREN, _NONE).value == 0]
        if self.footer[NUM_ROWS].value != sum(group.rows for group in self.groups):
            raise DamagedFooterError("row groups with other rows than the footer counts")
        for group in self.groups:
            if [chunk.path[-1] for chunk in group.chunks] != [each[_NAME].value for each in leaves]:
                raise DamagedFooterError("a row group with other columns than the schema")
            if any(len(chunk.path) == 1 and chunk.number(_NUM_VALUES) != group.rows for chunk in group.chunks):
                raise DamagedFooterError("a column with another number of values than rows")

    @property
    def entries(self) -> dict[bytes, bytes]:
        """The footer's keys and values."""
        found = self.footer.get(KEY_VALUES)
        return {pair[1].value: pair[2].value for pair in (found.value.values if found else []) if {1, 2} <= pair.keys()}

    def blocks(self, start: int, length: int) -> Iterator[memoryview]:
        """Yields the bytes of a range before the footer. Raises `NotCopyableError` for any other range."""
        self._require_inside(start, length)
        end = start + length
        while start < end:
            if not self._block_at <= start < self._block_at + len(self._block):
                # Chunks lie side by side, so the next chunk is mostly in the same block.
                self._block = self._source.read_at(min(BLOCK_BYTES, self._end - start), start)
                self._block_at = start
                if not self._block:
                    raise OSError(f"the file ends before byte {start}")
            begin = start - self._block_at
            part = memoryview(self._block)[begin : begin + end - start]
            yield part
            start += len(part)

    def content(self, start: int, length: int) -> bytes:
        """Returns the bytes of a range before the footer, without losing the block that `blocks` is in."""
        if length > _MOST_INDEX_BYTES:
            raise NotCopyableError(f"a page index or filter of {length} bytes")
        self._require_inside(start, length)
        return bytes(self._source.read_at(length, start))

    def _require_inside(self, start: int, length: int) -> None:
        if start < len(MAGIC) or length < 0 or start + length > self._end:
            raise NotCopyableError(f"a range of {length} bytes from {start}, where the footer is at {self._end}")


@dataclass(frozen=True)
class RowGroup:
    struct: Struct
    rows: int
    chunks: tuple[Chunk, ...]

    @classmethod
    def of(cls, struct: Struct) -> RowGroup:
        _require_known(struct, _GROUP_FIELDS)
        return cls(struct, struct[_ROWS].value, tuple(Chunk(each) for each in struct[COLUMNS].value.values))

    @property
    def uncompressed_bytes(self) -> int:
        return sum(chunk.number(UNCOMPRESSED) for chunk in self.chunks)


class Chunk:
    """A column chunk's metadata, and where its pages are."""

    def __init__(self, struct: Struct) -> None:
        _require_known(struct, _CHUNK_FIELDS)
        self.struct = struct
        self.meta: Struct = struct[META].value
        _require_known(self.meta, _META_FIELDS)
        first = self.number(DATA_PAGE)
        dictionary = self.number(DICTIONARY_PAGE)
        if 0 < first <= dictionary or self.meta[PATH].value.kind != BINARY:
            raise NotCopyableError("a dictionary behind the data, or a column without a name")
        # Some writers write 0 if there is no dictionary, or no data because the row group has no rows.
        self.start = dictionary or first
        self.length = self.number(CHUNK_COMPRESSED)

    @property
    def path(self) -> tuple[bytes, ...]:
        return tuple(self.meta[PATH].value.values)

    @property
    def codec(self) -> int:
        """Parquet's number of the compression."""
        return self.number(CODEC)

    def number(self, field_id: int) -> int:
        found = self.meta.get(field_id)
        return 0 if found is None else int(found.value)

    def index(self, which: tuple[int, int]) -> tuple[int, int] | None:
        """Returns position and length of a page index, None if there is none."""
        if not set(which) <= self.struct.keys():
            return None
        return self.struct[which[0]].value, self.struct[which[1]].value


@dataclass
class CopyWriter:
    """Writes a Parquet file of copied row groups to `stream`, with the schema of the file `like`, by default the first
    file.

    All row groups must come from files of this schema and of the same writer, except for single columns. The headers of
    pages are read, unless `trusts_indexes` is set and the offset index of a column chunk accounts for all of its bytes.
    """

    stream: pa.NativeFile
    like: RawFile | None = None
    trusts_indexes: bool = False
    at: int = 0
    rows: int = 0
    _groups: list[Struct] = field(default_factory=list)
    _column_indexes: list[tuple[Struct, bytes]] = field(default_factory=list)
    _offset_indexes: list[tuple[Struct, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._write(MAGIC)

    def add(self, source: RawFile, number: int, instead: Collection[RawFile] = ()) -> None:
        """Copies a row group. `instead` are files with one row group, which replaces columns of this one. After a
        `NotCopyableError` the written file is useless.
        """
        self.like = self.like or source
        group = source.groups[number]
        begin = self.at
        others: dict[tuple[bytes, ...], tuple[RawFile, Chunk]] = {}
        for file in instead:
            (other,) = file.groups
            if other.rows != group.rows:
                raise NotCopyableError("a column of another number of rows")
            others |= {chunk.path: (file, chunk) for chunk in other.chunks}
        columns = [self._copied(*others.pop(chunk.path, (source, chunk))) for chunk in group.chunks]
        if others:
            raise NotCopyableError(f"a row group without the columns {list(others)}")
        total = sum(each[META].value[UNCOMPRESSED].value for each in columns)
        compressed = sum(each[META].value[CHUNK_COMPRESSED].value for each in columns)
        struct = {key: each for key, each in group.struct.items() if key == SORTING}
        struct |= {
            COLUMNS: Field(LIST, Items(STRUCT, columns)),
            TOTAL_BYTES: Field(I64, total),
            _ROWS: Field(I64, group.rows),
            GROUP_OFFSET: Field(I64, begin),
            COMPRESSED: Field(I64, compressed),
        }
        if len(self._groups) < 1 << 15:
            struct[_ORDINAL] = Field(thrift.I16, len(self._groups))
        self._groups.append(struct)
        self.rows += group.rows

    def close(self, entries: Mapping[bytes, bytes]) -> None:
        """Completes the file, but leaves the stream open. `entries` are the footer's keys and values."""
        if self.like is None:
            raise NotCopyableError("no file to take the schema from")
        for indexes, (offset, length) in (
            (self._column_indexes, COLUMN_INDEX),
            (self._offset_indexes, OFFSET_INDEX),
        ):
            for chunk, content in indexes:
                chunk[offset], chunk[length] = Field(I64, self.at), Field(thrift.I32, len(content))
                self._write(content)
        pairs = [{1: Field(BINARY, key), 2: Field(BINARY, value)} for key, value in entries.items()]
        footer = {
            **self.like.footer,
            NUM_ROWS: Field(I64, self.rows),
            ROW_GROUPS: Field(LIST, Items(STRUCT, self._groups)),
            KEY_VALUES: Field(LIST, Items(STRUCT, pairs)),
        }
        content = write_struct(footer)
        self._write(content + len(content).to_bytes(4, "little") + MAGIC)

    def _copied(self, source: RawFile, chunk: Chunk) -> Struct:
        moved = self.at - chunk.start
        place = chunk.index(OFFSET_INDEX)
        index = source.content(*place) if place else None
        quick = None
        if index is not None and self.trusts_indexes:
            quick = moved_pages(index, chunk.number(DATA_PAGE), chunk.start + chunk.length, moved)
        pages = None if quick else ChunkPages(chunk.number(_NUM_VALUES), chunk.number(DATA_PAGE) - chunk.start)
        for block in source.blocks(chunk.start, chunk.length):
            if pages:
                pages.add(block)
            self._write(block)
        if pages:
            pages.require_complete()
        meta = dict(chunk.meta)
        for offset in (DATA_PAGE, DICTIONARY_PAGE):
            if chunk.number(offset):
                meta[offset] = Field(I64, chunk.number(offset) + moved)
        bloom, length = (meta.pop(number, None) for number in BLOOM)
        if bloom and length:
            meta |= dict(zip(BLOOM, (Field(I64, self.at), length), strict=True))
            self._write(source.content(bloom.value, length.value))
        old = chunk.struct.get(CHUNK_OFFSET, Field(I64, 0)).value
        copied: Struct = {CHUNK_OFFSET: Field(I64, old and old + moved), META: Field(STRUCT, meta)}
        # The statistics of pages are useless without their positions.
        if index is not None:
            index = quick or moved_index(index, chunk.start, chunk.length, moved)
            self._offset_indexes.append((copied, index))
            if place := chunk.index(COLUMN_INDEX):
                self._column_indexes.append((copied, source.content(*place)))
        return copied

    def _write(self, content: bytes | memoryview) -> None:
        self.stream.write(content)
        self.at += len(content)


def _require_known(struct: Struct, known: Mapping[int, int]) -> None:
    wrong = [number for number, found in struct.items() if known.get(number) != found.kind]
    if wrong:
        raise NotCopyableError(f"metadata with the fields {wrong}")
