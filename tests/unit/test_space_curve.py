"""Tests the order of rows along a space-filling curve."""

from __future__ import annotations

from itertools import pairwise, product

import pyarrow as pa
import pytest

from jobs.dataplane.space_curve import sort_indices

SIDE = 8


def ordered(curve: str) -> list[tuple[int, int]]:
    """Returns all cells of a square in the order of this curve; their original order is arbitrary."""
    cells = sorted(product(range(SIDE), repeat=2), key=lambda cell: (cell[0] * 5 + cell[1] * 3) % 7)
    table = pa.table({"x": [x for x, _ in cells], "y": [y for _, y in cells]})
    return [cells[number] for number in sort_indices(table, ["x", "y"], curve).to_pylist()]


def test_a_z_order_interleaves_the_bits_of_both_columns() -> None:
    def place(cell: tuple[int, int]) -> int:
        return sum(
            (((x >> bit) & 1) << (2 * bit + 1)) | (((y >> bit) & 1) << (2 * bit)) for x, y in [cell] for bit in range(3)
        )

    assert ordered("zorder") == sorted(product(range(SIDE), repeat=2), key=place)


def test_along_a_hilbert_curve_each_cell_is_next_to_the_one_before() -> None:
    cells = ordered("hilbert")
    assert sorted(cells) == list(product(range(SIDE), repeat=2))
    assert all(abs(x - u) + abs(y - v) == 1 for (x, y), (u, v) in pairwise(cells))


@pytest.mark.parametrize("curve", ["linear", "zorder", "hilbert"])
def test_one_column_alone_is_sorted_by_its_values(curve: str) -> None:
    table = pa.table({"x": [3, None, 1, 2]})
    assert sort_indices(table, ["x"], curve).to_pylist() == [2, 3, 0, 1]
