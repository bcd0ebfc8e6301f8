"""Orders rows by one column after the other, or along a space-filling curve over all columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def is_linear(columns: Sequence[str], curve: str) -> bool:
    """Returns whether rows are ordered by one column after the other, nulls last."""
    return curve == "linear" or len(columns) == 1


def sort_indices(table: pa.Table, columns: Sequence[str], curve: str) -> pa.Array:
    """Returns row numbers in the requested order; nulls come last in a linear order, first along a curve.

    `curve`: linear, zorder (bits of the columns' ranks interleaved), or hilbert (the same square traversed without
    jumps; Skilling, "Programming the Hilbert curve", 2004).
    """
    if is_linear(columns, curve):
        return pc.sort_indices(table, sort_keys=[(column, "ascending") for column in columns])
    bits = bits_of(columns)
    steps = []
    for column in columns:
        ranks = dense_ranks(table.column(column))
        steps.append(steps_of(ranks, int(ranks.max(initial=0)), bits))
    return pa.array(np.argsort(distances(steps, curve, bits), kind="stable"))


def bits_of(columns: Sequence[str]) -> int:
    """Returns the bits of each column's part of a distance."""
    return min(62 // len(columns), 20)


def dense_ranks(column: pa.ChunkedArray) -> NDArray[np.uint64]:
    """Returns each value's place among the distinct values, from 0; nulls and then NaN come first."""
    places = pc.rank(column, sort_keys=[("", "ascending", "at_start")], tiebreaker="dense")
    ranks: NDArray[np.uint64] = places.to_numpy(zero_copy_only=False).astype(np.uint64) - np.uint64(1)
    return ranks


def steps_of(ranks: NDArray[np.uint64], highest: int, bits: int) -> NDArray[np.uint64]:
    """Scales dense ranks up to `highest` to `bits` bits.

    The distinct values are spread evenly over the range, however far apart they are. The rows are not: all rows of one
    value share one step, so with skewed data one step may hold 97 of 100 rows.
    """
    scaled: NDArray[np.uint64] = (ranks * np.uint64((1 << bits) - 1)) // np.uint64(max(highest, 1))
    return scaled


def distances(steps: list[NDArray[np.uint64]], curve: str, bits: int) -> NDArray[np.uint64]:
    """Returns the distance along the curve (zorder, hilbert) of rows with these steps in each column."""
    return _interleave(_hilbert_axes(steps, bits) if curve == "hilbert" else steps, bits)


def _interleave(axes: list[NDArray[np.uint64]], bits: int) -> NDArray[np.uint64]:
    key = np.zeros_like(axes[0])
    one = np.uint64(1)
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            key = (key << one) | ((axis >> np.uint64(bit)) & one)
    return key


def _hilbert_axes(axes: list[NDArray[np.uint64]], bits: int) -> list[NDArray[np.uint64]]:
    """Converts coordinates to Hilbert's "transpose", whose interleaved bits are the distance along the curve."""
    x = [axis.copy() for axis in axes]
    q = 1 << (bits - 1)
    while q > 1:
        low = np.uint64(q - 1)
        for i in range(len(x)):
            high = (x[i] & np.uint64(q)) != 0
            swap = (x[0] ^ x[i]) & low
            x[0] = np.where(high, x[0] ^ low, x[0] ^ swap)
            if i:
                x[i] = np.where(high, x[i], x[i] ^ swap)
        q >>= 1
    for i in range(1, len(x)):
        x[i] ^= x[i - 1]
    flip = np.zeros_like(x[0])
    q = 1 << (bits - 1)
    while q > 1:
        flip ^= np.where((x[-1] & np.uint64(q)) != 0, np.uint64(q - 1), np.uint64(0))
        q >>= 1
    return [axis ^ flip for axis in x]
