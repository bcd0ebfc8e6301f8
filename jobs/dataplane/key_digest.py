"""A digest of record keys that does not depend on their order.

Rows that a rewrite loses, doubles or exchanges for others change the digest. Each key has a number of 64 bits, and the
digest is their sum, so the digests of parts add up to the digest of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from jobs.format import bucket_hash

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from numpy.typing import NDArray

_MODULUS = 1 << 64


@dataclass(frozen=True)
class KeyDigest:
    """`rows` keys whose numbers add up to `total`, modulo 2^64."""

    rows: int = 0
    total: int = 0

    @classmethod
    def of(cls, keys: pa.Array | pa.ChunkedArray) -> Self:
        """Returns the digest of a column of record keys. Raises `RecordKeyError` for keys that are null or not
        UTF-8."""
        return cls.of_codes(bucket_hash.string_hash_codes(keys))

    @classmethod
    def of_codes(cls, codes: NDArray[np.uint32]) -> Self:
        """Returns the digest of keys by their Java hash codes."""
        return cls(len(codes), int(_spread(codes).sum(dtype=np.uint64)))

    @classmethod
    def parse(cls, rows: int, text: str) -> Self:
        return cls(rows, int(text, 16))

    @classmethod
    def sum(cls, parts: Iterable[KeyDigest]) -> KeyDigest:
        whole: KeyDigest = cls()
        for part in parts:
            whole = whole + part
        return whole

    def __add__(self, other: KeyDigest) -> KeyDigest:
        return KeyDigest(self.rows + other.rows, (self.total + other.total) % _MODULUS)

    def __str__(self) -> str:
        """Returns the sum as 16 hexadecimal digits."""
        return f"{self.total:016x}"


def numbers(keys: pa.Array | pa.ChunkedArray) -> NDArray[np.uint64]:
    """Returns the number of each key: its Java hash code, whose bits SplitMix64 spreads over 64.

    Two different keys have the same hash code, and so the same number, with a probability of one in four thousand
    million.
    """
    return _spread(bucket_hash.string_hash_codes(keys))


def _spread(codes: NDArray[np.uint32]) -> NDArray[np.uint64]:
    mixed = codes.astype(np.uint64)
    mixed += np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return result
