"""Compares the record keys of base files before and after a merge or a rewrite, reading no other column.

Runs inside Spark's Python workers and depends on neither Spark nor the JVM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jobs.dataplane.key_digest import KeyDigest
from jobs.format import bucket_hash
from jobs.format.meta_columns import RECORD_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from jobs.storage.paths import Storage

    Codes = NDArray[np.uint32]

_BATCH_ROWS = 65_536


@dataclass(frozen=True)
class KeyChange:
    """The keys of a file group before and after.

    A key counts as often as it occurs. Keys are compared by their Java hash codes, so a lost key and a new key with the
    same code cancel out.
    """

    before: KeyDigest
    after: KeyDigest
    gone: int = 0  # Number of keys that only `before` has.
    new: int = 0  # Number of keys that only `after` has.


def digest(storage: Storage, path: str) -> KeyDigest:
    """Returns the digest of the keys of a base file at an absolute path. Memory: one batch of keys."""
    return KeyDigest.sum(KeyDigest.of_codes(codes) for codes in _codes(storage, path))


def compare(storage: Storage, before: str | None, after: str | None) -> KeyChange:
    """Compares two base files at absolute paths; None holds no rows. Memory: about 16 bytes per row."""
    found = [list(_codes(storage, path)) if path else [] for path in (before, after)]
    old, new = (KeyDigest.sum(KeyDigest.of_codes(codes) for codes in side) for side in found)
    if old == new:
        return KeyChange(old, new)
    gone, added = _differences(*(np.concatenate(side) if side else np.empty(0, np.uint32) for side in found))
    return KeyChange(old, new, gone, added)


def count(storage: Storage, before: str | None, after: str | None) -> KeyChange:
    """Compares only the numbers of rows, for files without record keys."""
    old, new = (KeyDigest(_rows(storage, path) if path else 0) for path in (before, after))
    return KeyChange(old, new)


def _rows(storage: Storage, path: str) -> int:
    with storage.read_parquet(path) as reader:
        return int(reader.metadata.num_rows)


def _codes(storage: Storage, path: str) -> Iterator[Codes]:
    with storage.read_parquet(path) as reader:
        for batch in reader.iter_batches(batch_size=_BATCH_ROWS, columns=[RECORD_KEY], use_threads=False):
            yield bucket_hash.string_hash_codes(batch.column(0))


def _differences(old: Codes, new: Codes) -> tuple[int, int]:
    """Returns how many of `old` are not in `new`, and how many of `new` are not in `old`, each as often as it
    occurs."""
    both, places = np.unique(np.concatenate((old, new)), return_inverse=True)
    counts = np.bincount(places[: len(old)], minlength=len(both)) - np.bincount(places[len(old) :], minlength=len(both))
    return int(counts[counts > 0].sum()), int(-counts[counts < 0].sum())
