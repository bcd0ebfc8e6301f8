"""Damage at any place of an HFile is found. These tests write files in the form of Hudi's; other tests use real
ones."""

from __future__ import annotations

import gzip
import struct
import zlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.format import hfile

HEADER = struct.Struct(">8siiqBii")
GZIP, NONE = 1, 2


def block(kind: bytes, content: bytes, codec: int = GZIP) -> bytes:
    packed = gzip.compress(content) if codec == GZIP else content
    checksums = bytes(4)
    size = len(packed) + len(checksums)
    return HEADER.pack(kind, size, len(content), -1, 0, 16384, HEADER.size + len(packed)) + packed + checksums


def file_of(*blocks: bytes, codec: int = GZIP) -> bytes:
    class_name = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
    message = b"\x08\x05" + bytes([11 << 3 | 2, len(class_name)]) + class_name + bytes([12 << 3, codec])
    trailer = b'TRABLK"$' + bytes([len(message)]) + message
    return b"".join(blocks) + trailer.ljust(4096, b"\0")


ENTRIES = b"".join(b"key-%05d" % number for number in range(9000))
WHOLE = file_of(block(b"DATABLK*", ENTRIES), block(b"METABLKc", b"bloom"), block(b"IDXROOT2", b""))


def damage(content: bytes) -> str | None:
    return hfile.damage(pa.BufferReader(content))


def test_whole_files_have_no_damage() -> None:
    assert damage(WHOLE) is None
    assert damage(file_of()) is None
    assert damage(file_of(block(b"DATABLK*", ENTRIES, NONE), codec=NONE)) is None


@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_that_ends_early_is_damaged(length: int) -> None:
    assert damage(WHOLE[:length]) is not None


@given(st.integers(HEADER.size + 10, HEADER.size + len(gzip.compress(ENTRIES)) - 1), st.integers(1, 255))
def test_a_changed_byte_of_compressed_entries_is_damage(at: int, change: int) -> None:
    assert damage(WHOLE[:at] + bytes([WHOLE[at] ^ change]) + WHOLE[at + 1 :]) is not None


@given(st.binary(max_size=9000))
def test_any_bytes_are_either_whole_or_damaged(content: bytes) -> None:
    assert damage(content) is not None
    assert damage(file_of(content)) is not None or content == b""


@pytest.mark.parametrize("size", [-1, 1 << 30, len(ENTRIES) - 1])
def test_a_block_that_says_another_size_is_damaged(size: int) -> None:
    packed = zlib.compress(ENTRIES, wbits=31)
    header = HEADER.pack(b"DATABLK*", len(packed), size, -1, 0, 16384, HEADER.size + len(packed))
    assert damage(file_of(header + packed)) is not None
