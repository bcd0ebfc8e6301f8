"""The structure of HFiles, in which the metadata table keeps its entries.

An HFile of version 3 (HBase's format; `HFileReaderImpl` and `HFileBlock` of Hudi 1.2) is a sequence of blocks and a
trailer of 4096 bytes. A block has a header of 33 bytes: magic, size on disk and uncompressed size without the header,
offset of the previous block, type of checksum, bytes for a checksum, and the size on disk without checksums but with
the header. Readers of Hudi find out about a damaged block only when a query needs it.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_HEADER = struct.Struct(">8siiqBii")
_TRAILER_BYTES, _TRAILER_MAGIC = 4096, b'TRABLK"$'
_KINDS = frozenset(
    {b"DATABLK*", b"DATABLKE", b"METABLKc", b"IDXROOT2", b"IDXINTE2", b"IDXLEAF2", b"FILEINF2"}
    | {b"BLMFMET2", b"BLMFBLK2", b"DFBLMET2"}
)
_GZIP_CODEC, _CODEC_FIELD = 1, 12  # `compression_codec` of `FileTrailerProto`, and its value for gzip
_GZIP_MEMBER = 31  # zlib's `wbits` for the largest window and a gzip header
_CHUNK = 1024 * 1024


def damage(source: pa.NativeFile) -> str | None:
    """Returns what is wrong with the HFile, or None. Reads all blocks piece by piece, whatever their
    sizes. Values of blocks that are not compressed by gzip, which is Hudi's default, are not verified."""
    size = source.size()
    if size < _TRAILER_BYTES:
        return f"{size} bytes are no HFile"
    source.seek(size - _TRAILER_BYTES)
    trailer = source.read(_TRAILER_BYTES)
    if not trailer.startswith(_TRAILER_MAGIC):
        return "the trailer is missing"
    is_gzip = _codec(trailer) == _GZIP_CODEC
    at, end = 0, size - _TRAILER_BYTES
    source.seek(0)
    while at < end:
        header = source.read(min(_HEADER.size, end - at))
        if len(header) < _HEADER.size:
            return f"the block at byte {at} is cut off"
        magic, on_disk, uncompressed, _, _, _, with_header = _HEADER.unpack(header)
        if magic not in _KINDS:
            return f"there is no block at byte {at}"
        packed = with_header - _HEADER.size
        if not (0 <= packed <= on_disk <= end - at - _HEADER.size and uncompressed >= 0):
            return f"the block at byte {at} has impossible sizes"
        if is_gzip and not _unpacks(source, packed, uncompressed):
            return f"the block at byte {at} cannot be decompressed"
        at += _HEADER.size + on_disk
        source.seek(at)
    return None


def _unpacks(source: pa.NativeFile, packed: int, size: int) -> bool:
    """Returns whether the next `packed` bytes are `size` bytes, compressed by gzip, whose check sum is right."""
    unpacker = zlib.decompressobj(_GZIP_MEMBER)
    found, rest = 0, b""
    try:
        while (rest or packed) and found <= size and not unpacker.eof:
            if not rest:
                rest = source.read(min(packed, _CHUNK))
                packed -= len(rest)
            found += len(unpacker.decompress(rest, _CHUNK))
            rest = unpacker.unconsumed_tail
    except zlib.error:
        return False
    return found == size and unpacker.eof


def _codec(trailer: bytes) -> int | None:
    """Returns `compression_codec` of the trailer's protobuf message, which its length precedes."""
    length, at = _varint(trailer, len(_TRAILER_MAGIC))
    end = min(at + length, len(trailer))
    while at < end:
        tag, at = _varint(trailer, at)
        number, kind = tag >> 3, tag & 7
        if kind not in (0, 2):
            return None
        value, at = _varint(trailer, at)
        if kind == 0 and number == _CODEC_FIELD:
            return value
        at += value if kind else 0
    return None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Returns a number, and where the next one begins."""
    value = shift = 0
    while at < len(data):
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            break
        shift += 7
    return value, at
