"""Compares the vectorised Bloom filter with Hudi's algorithm, which processes single bytes and bits."""

from __future__ import annotations

import base64

import numpy as np
import pyarrow as pa
import pytest

from jobs.dataplane.bloom_filter import SIMPLE, BloomFilter, FilterKind

_M = 0x5BD1E995


def murmur(key: bytes, seed: int) -> int:
    """Returns what `MurmurHash.hash` of Hudi 1.2.0 computes, which takes the last bytes as signed."""
    code = seed ^ len(key)
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * _M % 2**32
        word = (word ^ word >> 24) * _M % 2**32
        code = code * _M % 2**32 ^ word
    if left := len(key) - whole:
        for behind in range(left):
            byte = key[-1 - behind]
            code ^= ((byte - 256 if byte > 127 else byte) << 8 * behind) % 2**32
        code = code * _M % 2**32
    code = (code ^ code >> 13) * _M % 2**32
    return code ^ code >> 15


def serialized(keys: list[str], kind: FilterKind) -> bytes:
    row = np.zeros(kind.bits, np.uint8)
    for key in keys:
        code = 0
        for _ in range(kind.hashes if key else 0):
            code = murmur(key.encode(), code)
            row[abs(code - 2**32 if code >= 2**31 else code) % kind.bits] = 1
    header = b"\xff\xff\xff\xff" + kind.hashes.to_bytes(4, "big") + b"\x01" + kind.bits.to_bytes(4, "big")
    return base64.b64encode(header + np.packbits(row, bitorder="little").tobytes())


@pytest.mark.parametrize("kind", [FilterKind(SIMPLE, 5003, 7), FilterKind(SIMPLE, (1 << 23) + 9, 3)])
@pytest.mark.parametrize("alphabet", ["abc019-", "aé€\U0001f600"])
@pytest.mark.parametrize(
    "lengths", [*((length,) for length in range(1, 10)), (0, 1), (1, 2, 3), (3, 4), (0, 5, 40), tuple(range(30)), (0,)]
)
def test_a_filter_has_the_bits_of_hudis(lengths: tuple[int, ...], alphabet: str, kind: FilterKind) -> None:
    generator = np.random.default_rng(len(lengths))
    some = ["".join(generator.choice(list(alphabet), generator.choice(lengths))) for _ in range(60)]
    built = BloomFilter(kind)
    for layout in (pa.string(), pa.large_string(), pa.string_view()):
        # The keys begin in the midst of an array's buffers.
        built.add(pa.array(["before", *some, "behind"], layout).slice(1, len(some)))
    assert built.serialized() == serialized(some, kind)
    assert built.has(pa.array(some)).all()
