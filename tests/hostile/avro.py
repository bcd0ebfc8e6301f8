"""Makes small Avro files that crash or block a parser."""

from __future__ import annotations

import zlib

_SYNC = b"x" * 16
_PIECE = 2**20


def avro_file(schema: str, body: bytes, *, codec: str = "null") -> bytes:
    """Returns a file with one record; `body` is its encoding by the schema."""
    header = {"avro.schema": schema.encode(), "avro.codec": codec.encode()}
    meta = b"".join(_bytes(name.encode()) + _bytes(value) for name, value in header.items())
    return b"Obj\x01" + number(len(header)) + meta + b"\0" + _SYNC + number(1) + _bytes(body) + _SYNC


def deflated(body: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(body) + packer.flush()


def number(value: int) -> bytes:
    """Returns the encoding of a long: zigzag, in groups of seven bits."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _bytes(content: bytes) -> bytes:
    return number(len(content)) + content


_RECURSIVE = '{"type":"record","name":"r","fields":[{"name":"n","type":["null","r"]}]}'
_NULLS = '{"type":"record","name":"r","fields":[{"name":"n","type":{"type":"array","items":"null"}}]}'
_BYTES = '{"type":"record","name":"r","fields":[{"name":"n","type":"bytes"}]}'

NESTED = avro_file(_RECURSIVE, deflated(b"\x02" * 100_000), codec="deflate")
"""A record in a record, 100 000 times: ends the interpreter with SIGSEGV."""

ENDLESS = avro_file(_NULLS, number(2**40) + b"\0")
"""An array of 2^40 items of no bytes: holds the interpreter's lock for hours."""


def bomb(size: int) -> bytes:
    """Returns few bytes that unpack to `size` bytes. One packed piece is repeated, which is possible because after a
    full flush nothing refers to earlier bytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    first, piece = (packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH) for part in (number(size), bytes(_PIECE)))
    rest = packer.compress(bytes(size % _PIECE)) + packer.flush()
    return avro_file(_BYTES, first + piece * (size // _PIECE) + rest, codec="deflate")
