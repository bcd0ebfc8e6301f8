"""The blocks of a log file: their framing, headers and types (`HoodieLogFileReader`, `HoodieLogBlock`, 1.2.0).

A block is `#HUDI#` (6 bytes), the size of the rest (8), the version of the format (4), the type of the block (4), a
header, the size of the content (8), the content, a footer, and once more the size of the rest, plus 6 (8). A header or
footer is a number of entries (4), each a kind (4), a length (4) and UTF-8 text. All numbers are big-endian and signed.

The content of a data block of Avro records is a version (4), a number of records (4), and for each record its length
(4) and its bytes; that of a delete block a version (4), a length (4), and a `HoodieDeleteRecordList` in Avro.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import fastavro

from jobs.errors import NotProvedError

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"#HUDI#"
_FORMAT_VERSION = 1
# The version of a block's content (`HoodieLogBlock.version`). Versions 1 and 2 hold deletes as serialised Java objects.
_CONTENT_VERSION = 3
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_TWO_INTS = struct.Struct(">ii")
_LARGEST_ENTRY = 4 * 1024 * 1024
_REQUEST_BYTES = 64 * 1024


class BlockType(IntEnum):
    """`HoodieLogBlock.HoodieLogBlockType`, by ordinal."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class Header(IntEnum):
    """`HoodieLogBlock.HeaderMetadataType`, by ordinal."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


@dataclass(frozen=True)
class LogBlock:
    """One block. `start` and `length` are the place of its content in the file, in bytes."""

    kind: BlockType
    header: dict[Header, str]
    start: int
    length: int

    @property
    def instant(self) -> str:
        """The instant that wrote the block. Raises NotProvedError for a block without one."""
        if Header.INSTANT_TIME not in self.header:
            raise NotProvedError("a log block names no instant")
        return self.header[Header.INSTANT_TIME]


Ordering = tuple[str, Any] | None
"""The ordering value of a delete as Java class and value. None means null, and Integer 0 is Hudi's default."""


def blocks_of(file: pa.NativeFile, size: int) -> Iterator[LogBlock]:
    """Yields the blocks of an open log file of `size` bytes, in the order of the file.

    Raises NotProvedError for anything that is not a complete block of this format. Hudi takes some of these cases for
    corrupt blocks and searches for the next block.
    """
    at = 0
    while at < size:
        block, at = _block(_Bytes(file, at, size))
        yield block


def read_content(file: pa.NativeFile, block: LogBlock, start: int = 0, length: int | None = None) -> pa.Buffer:
    """Returns `length` bytes of a block's content from `start` on, by default all. Raises NotProvedError."""
    length = block.length - start if length is None else length
    if start < 0 or length < 0 or start + length > block.length:
        raise NotProvedError("a log block ends before its content does")
    file.seek(block.start + start)
    content = file.read_buffer(length)
    if len(content) != length:
        raise NotProvedError("a log file ends before its last block does")
    return content


class _Bytes:
    """Reads consecutive numbers of a file, but never past its end."""

    def __init__(self, file: pa.NativeFile, at: int, size: int) -> None:
        self._file, self.at, self._size = file, at, size
        self._held, self._from = b"", at

    def take(self, length: int) -> bytes:
        if length < 0 or self.at + length > self._size:
            raise NotProvedError("a log file ends within a block, or a block's lengths are wrong")
        begin = self.at - self._from
        if begin + length > len(self._held) or begin < 0:
            wanted = min(max(length, _REQUEST_BYTES), self._size - self.at)
            self._held, self._from, begin = self._file.read_at(wanted, self.at), self.at, 0
            if len(self._held) != wanted:
                raise NotProvedError("a log file ends before its last block does")
        self.at += length
        return self._held[begin : begin + length]

    def next_int(self) -> int:
        return int(_INT.unpack(self.take(4))[0])

    def next_long(self) -> int:
        return int(_LONG.unpack(self.take(8))[0])

    def skip(self, length: int) -> None:
        if length < 0 or self.at + length > self._size:
            raise NotProvedError("a log file ends within a block, or a block's lengths are wrong")
        self.at += length


def _block(source: _Bytes) -> tuple[LogBlock, int]:
    if source.take(6) != MAGIC:
        raise NotProvedError("a log file holds bytes that are not a block")
    size = source.next_long()
    start = source.at
    if (version := source.next_int()) != _FORMAT_VERSION:
        raise NotProvedError(f"a log block has version {version} of the format")
    number = source.next_int()
    if number not in BlockType._value2member_map_:
        raise NotProvedError(f"a log block has the unknown type {number}")
    header = _header(source)
    length = source.next_long()
    content = source.at
    source.skip(length)
    _header(source)
    if source.next_long() != size + len(MAGIC) or source.at != start + size:
        raise NotProvedError("a log block's sizes do not agree")
    return LogBlock(BlockType(number), header, content, length), source.at


def _header(source: _Bytes) -> dict[Header, str]:
    count = source.next_int()
    if not 0 <= count <= len(Header):
        raise NotProvedError(f"a log block has {count} entries in its header")
    found: dict[Header, str] = {}
    for _ in range(count):
        kind, length = _TWO_INTS.unpack(source.take(8))
        if kind not in Header._value2member_map_ or Header(kind) in found:
            raise NotProvedError("a log block has an unknown entry in its header")
        if kind == Header.RECORD_POSITIONS:
            # The entry may have megabytes, and only Hudi's merge by positions needs it.
            source.skip(length)
            found[Header.RECORD_POSITIONS] = ""
            continue
        if length > _LARGEST_ENTRY:
            raise NotProvedError("a log block has more than 4 MiB in an entry of its header")
        try:
            found[Header(kind)] = source.take(length).decode()
        except UnicodeDecodeError:
            raise NotProvedError("a log block's header is not UTF-8") from None
    return found


def deletes_of(content: bytes) -> tuple[list[str], list[Ordering]]:
    """Returns the keys and ordering values in the content of a delete block. Raises NotProvedError."""
    if len(content) < 8:
        raise NotProvedError("a delete block is too short")
    version, length = _TWO_INTS.unpack_from(content)
    if version != _CONTENT_VERSION:
        raise NotProvedError(f"a delete block has version {version}: serialised Java objects")
    if length != len(content) - 8:
        raise NotProvedError("a delete block's sizes do not agree")
    source = io.BytesIO(content[8:])
    keys: list[str] = []
    values: list[Ordering] = []
    try:
        for record in _delete_records(source):
            keys.append(record["recordKey"])
            values.append(_ordering(record["orderingVal"]))
    except Exception as error:  # fastavro may raise any exception for invalid bytes.
        raise NotProvedError("a delete block's Avro cannot be read") from error
    if source.tell() != length or not all(isinstance(key, str) for key in keys):
        raise NotProvedError("a delete block has a delete without key, or something behind its deletes")
    return keys, values


def _delete_records(source: io.BytesIO) -> Iterator[Any]:
    """Yields the entries of a list one by one, because a decoded list would take thirty times the memory of its
    bytes."""
    while count := _next_long(source):
        if count < 0:
            _next_long(source)  # the bytes of these entries
        for _ in range(abs(count)):
            # The reader returns values of a union with the names of their types, which tell the class of the value.
            yield fastavro.schemaless_reader(source, _delete_schema(), None, return_record_name=True)


def _next_long(source: io.BytesIO) -> int:
    return int(cast("int", fastavro.schemaless_reader(source, "long", None)))


def _ordering(wrapped: Any) -> Ordering:
    if wrapped is None:
        return None
    name, value = wrapped
    name = name.rpartition(".")[2].removesuffix("Wrapper")
    if name == "Array":
        return name, tuple(_ordering(each) for each in value["wrappedValues"] or ())
    return name, value["value"]


def avro_content(file: pa.NativeFile, block: LogBlock) -> tuple[int, int]:
    """Returns the number of records in a data block of Avro records, and where they start in its content.

    Raises NotProvedError.
    """
    if block.length < 8:
        raise NotProvedError("a data block is too short")
    version, count = _TWO_INTS.unpack(bytes(read_content(file, block, 0, 8)))
    if version != _CONTENT_VERSION:
        raise NotProvedError(f"a data block has version {version}")
    if not 0 <= count <= (block.length - 8) // 4:
        raise NotProvedError("a data block has fewer records than it says")
    return count, 8


@cache
def _delete_schema() -> Any:
    """Returns the schema of `HoodieDeleteRecord`, Hudi 1.2.0."""

    def wrapper(name: str, value: Any) -> dict[str, Any]:
        return {"type": "record", "name": f"{name}Wrapper", "fields": [{"name": "value", "type": value}]}

    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}
    simple = ("Boolean", "Int", "Long", "Float", "Double", "Bytes", "String")
    wrappers = [wrapper(name, name.lower()) for name in simple]
    wrappers += [wrapper("Date", "int"), wrapper("Decimal", decimal)]
    wrappers += [wrapper("TimeMicros", "long"), wrapper("TimestampMicros", "long")]
    elements = ["null", *(each["name"] for each in wrappers), wrapper("LocalDate", "int")]
    array = {"name": "wrappedValues", "type": ["null", {"type": "array", "items": elements}]}
    several = {"type": "record", "name": "ArrayWrapper", "fields": [array]}
    text = ["null", "string"]
    fields = [
        {"name": "recordKey", "type": text},
        {"name": "partitionPath", "type": text},
        {"name": "orderingVal", "type": ["null", *wrappers, several]},
    ]
    name = "org.apache.hudi.avro.model.HoodieDeleteRecord"
    return fastavro.parse_schema({"type": "record", "name": name, "fields": fields})
