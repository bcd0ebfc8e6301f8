"""Follows the pages of a column chunk that is copied as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.dataplane.not_copyable import NotCopyableError
from jobs.format.compact_thrift import I64, Field, ThriftError, TruncatedError, read_struct, write_struct

if TYPE_CHECKING:
    from jobs.format.compact_thrift import Struct

_MOST_HEADER_BYTES = 16 * 1024 * 1024  # statistics in page headers may hold values of any length
# PageHeader
_PAGE_TYPE, _PAGE_BYTES, _DATA_HEADER, _DATA_HEADER_V2 = 1, 3, 5, 8
_DATA_PAGE_TYPE, _DICTIONARY_PAGE_TYPE, _DATA_PAGE_V2_TYPE = 0, 2, 3


class ChunkPages:
    """Reads the headers of a chunk's pages while its bytes are copied."""

    def __init__(self, values: int, first_data_page: int) -> None:
        """`first_data_page` is its place in the chunk by the footer: 0, or the end of the dictionary."""
        self._missing = values
        self._first_data_page = first_data_page
        self._at = 0
        self._skip = 0
        self._rest = b""

    def add(self, block: memoryview) -> None:
        """Raises `NotCopyableError` if the bytes are not a sequence of pages."""
        at = 0
        while True:
            step = min(self._skip, len(block) - at)
            at += step
            self._skip -= step
            if at >= len(block):
                return
            data = self._rest + block[at:] if self._rest else block[at:]
            try:
                header, end = read_struct(data)
                self._take(header, end)
            except TruncatedError as error:
                if len(data) > _MOST_HEADER_BYTES:
                    raise NotCopyableError("a page header of more than 16 MiB") from error
                self._rest = bytes(data)
                return
            except (ThriftError, KeyError, AttributeError, TypeError) as error:
                raise NotCopyableError(f"a page header: {error!r}") from error
            at += end - len(self._rest)
            self._rest = b""

    def _take(self, header: Struct, length: int) -> None:
        kind = header[_PAGE_TYPE].value
        if kind in (_DATA_PAGE_TYPE, _DATA_PAGE_V2_TYPE):
            of_kind = header[_DATA_HEADER if kind == _DATA_PAGE_TYPE else _DATA_HEADER_V2].value
            self._missing -= max(of_kind[1].value, 0)
            if self._at < self._first_data_page:
                raise NotCopyableError("data before the first data page")
        # Old writers give the dictionary's position as that of the first data page.
        elif kind != _DICTIONARY_PAGE_TYPE or self._at:
            raise NotCopyableError(f"a page of type {kind}")
        self._skip = header[_PAGE_BYTES].value
        if self._skip < 0:
            raise NotCopyableError(f"a page of {self._skip} bytes")
        if self._at == 0 and self._first_data_page not in (0, length + self._skip):
            raise NotCopyableError("the first data page is not behind the dictionary")
        self._at += length + self._skip

    def require_complete(self) -> None:
        if self._missing or self._skip or self._rest:
            raise NotCopyableError(
                f"the pages hold {-self._missing} values more than the footer says, and {self._skip} bytes are missing"
            )


def moved_index(content: bytes, start: int, length: int, moved: int) -> bytes:
    """Returns an offset index (`OffsetIndex`) of a chunk whose pages were moved by some bytes. `start` and `length` are
    the chunk's before."""
    try:
        index, _ = read_struct(content)
        for page in index[1].value.values:
            offset = page[1].value
            if not start <= offset < start + length:
                raise NotCopyableError(f"a page at {offset}, outside of its column chunk")
            page[1] = Field(I64, offset + moved)
        return write_struct(index)
    except (ThriftError, KeyError, AttributeError, TypeError) as error:
        raise NotCopyableError(f"an offset index: {error!r}") from error
