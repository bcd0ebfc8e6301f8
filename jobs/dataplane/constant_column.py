"""Makes a column chunk in which every row has the same text, such as `_hoodie_file_name`. The chunk has the same few
bytes whatever the number of rows. pyarrow takes some milliseconds for such a chunk, as long as copying megabytes. The
chunk has a dictionary page and one data page, like a chunk that pyarrow writes. Source: `parquet.thrift` of Parquet's
format 2.11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.dataplane import column_chunks
from jobs.dataplane.column_chunks import MAGIC, RawFile
from jobs.dataplane.not_copyable import NotCopyableError
from jobs.format.compact_thrift import BINARY, I32, I64, LIST, STRUCT, TRUE, Field, Items, write_struct

if TYPE_CHECKING:
    from jobs.format.compact_thrift import Struct

# Codecs with the same form in Parquet as Arrow's codecs of the same names.
_CODECS = frozenset({"none", "snappy", "gzip", "zstd"})
_BYTE_ARRAY = 6
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_REQUIRED, _OPTIONAL = 0, 1
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_MOST_ROWS = 1 << 30  # Readers keep the length of a run, doubled, in 32 bits.


def chunk_of(raw: RawFile, column: str, text: str, rows: int, codec: str) -> RawFile:
    """Returns a file in memory with this column of the file `raw` alone, in one row group of `rows` rows.

    Raises NotCopyableError if the file has no such column of text, or if the codec is not known here.
    """
    name, value = column.encode(), text.encode()
    element = next((each for each in raw.schema.values[1:] if each[4].value == name), None)
    repetition = None if element is None else element.get(3, Field(I32, None)).value
    is_text = element is not None and element.get(1) == Field(I32, _BYTE_ARRAY) and 5 not in element
    if element is None or not is_text or repetition not in (_REQUIRED, _OPTIONAL) or codec not in _CODECS:
        raise NotCopyableError(f"{column} of another form than Hudi's, or compressed by {codec}")
    if not 0 < rows < _MOST_ROWS:
        raise NotCopyableError(f"a row group of {rows} rows")
    made = _Made(codec)
    made.add_page({1: _int(_DICTIONARY_PAGE)}, 7, {1: _int(1), 2: _int(_PLAIN)}, _with_length(value))
    # All definition levels are 1, and all numbers of dictionary entries, which have one bit, are 0.
    run = _varint(rows << 1)
    levels = _with_length(run + b"\x01") if repetition == _OPTIONAL else b""
    data = {1: _int(rows), 2: _int(_RLE_DICTIONARY), 3: _int(_RLE), 4: _int(_RLE)}
    begin = made.at
    made.add_page({1: _int(_DATA_PAGE)}, 5, data, levels + b"\x01" + run + b"\x00")
    return made.file(raw, element, value, rows, begin)


class _Made:
    """The bytes of the pages, with their codec."""

    def __init__(self, codec: str) -> None:
        self._codec = None if codec == "none" else pa.Codec(codec)
        self._number = next(number for number, name in column_chunks.CODECS.items() if name == codec)
        self._content = MAGIC
        self._plain = 0

    @property
    def at(self) -> int:
        return len(self._content)

    def add_page(self, header: Struct, kind: int, of_kind: Struct, body: bytes) -> None:
        packed = self._codec.compress(body, asbytes=True) if self._codec else body
        header = {**header, 2: _int(len(body)), 3: _int(len(packed)), kind: Field(STRUCT, of_kind)}
        head = write_struct(header)
        self._content += head + packed
        self._plain += len(head) + len(body)

    def file(self, raw: RawFile, element: Struct, value: bytes, rows: int, data_page: int) -> RawFile:
        begin, end = len(MAGIC), self.at
        statistics = {3: _long(0), 5: Field(BINARY, value), 6: Field(BINARY, value)}
        meta = {
            1: _int(_BYTE_ARRAY),
            2: Field(LIST, Items(I32, [_PLAIN, _RLE, _RLE_DICTIONARY])),
            3: Field(LIST, Items(BINARY, [element[4].value])),
            column_chunks.CODEC: _int(self._number),
            5: _long(rows),
            column_chunks.UNCOMPRESSED: _long(self._plain),
            column_chunks.CHUNK_COMPRESSED: _long(end - begin),
            column_chunks.DATA_PAGE: _long(data_page),
            column_chunks.DICTIONARY_PAGE: _long(begin),
            12: Field(STRUCT, statistics),
        }
        values = Field(LIST, Items(BINARY, [value]))
        page = {1: _long(data_page), 2: _int(end - data_page), 3: _long(0)}
        indexes = (
            (
                column_chunks.COLUMN_INDEX,
                {1: Field(LIST, Items(TRUE, [2])), 2: values, 3: values, 4: _int(0), 5: Field(LIST, Items(I64, [0]))},
            ),
            (column_chunks.OFFSET_INDEX, {1: Field(LIST, Items(STRUCT, [page]))}),
        )
        chunk: Struct = {column_chunks.CHUNK_OFFSET: _long(0), 3: Field(STRUCT, meta)}
        for (offset, length), index in indexes:
            written = write_struct(index)
            chunk |= {offset: _long(self.at), length: _int(len(written))}
            self._content += written
        group = {1: Field(LIST, Items(STRUCT, [chunk])), 2: _long(self._plain), 3: _long(rows)}
        root = {**raw.schema.values[0], 5: _int(1)}
        footer = {
            column_chunks.VERSION: raw.footer[column_chunks.VERSION],
            column_chunks.SCHEMA: Field(LIST, Items(STRUCT, [root, element])),
            column_chunks.NUM_ROWS: _long(rows),
            column_chunks.ROW_GROUPS: Field(LIST, Items(STRUCT, [group])),
        }
        tail = write_struct(footer)
        return RawFile(pa.BufferReader(self._content + tail + len(tail).to_bytes(4, "little") + MAGIC))


def _int(value: int) -> Field:
    return Field(I32, value)


def _long(value: int) -> Field:
    return Field(I64, value)


def _with_length(content: bytes) -> bytes:
    return len(content).to_bytes(4, "little") + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
