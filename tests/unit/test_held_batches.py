"""Rows are returned as they were added, from memory or from a file, and the file is removed automatically."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from jobs.dataplane.held_batches import HeldBatches

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.string()))])


def batch(first: int) -> pa.RecordBatch:
    rows = [{"n": n, "s": None if n % 3 == 0 else f"ä{n}", "l": ["x"] * (n % 4)} for n in range(first, first + 100)]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


@pytest.mark.parametrize("in_memory", [0, 5000, 1 << 30])
def test_held_rows_are_returned_as_they_were_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    held = HeldBatches(SCHEMA, in_memory)
    for first in range(0, 500, 100):
        held.add(batch(first).slice(first // 10, 50))
    used = bool(list(tmp_path.iterdir()))
    table = held.rows().table
    assert used == (in_memory < 1 << 30)
    assert list(tmp_path.iterdir()) == []
    expected = pa.Table.from_batches([batch(first).slice(first // 10, 50) for first in range(0, 500, 100)])
    assert table.equals(expected)
    assert table.take(pa.array([249, 0, 120])).to_pylist() == expected.take(pa.array([249, 0, 120])).to_pylist()


def test_nothing_is_left_of_rows_that_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    held = HeldBatches(SCHEMA, 0)
    held.add(batch(0))
    held.close()
    assert list(tmp_path.iterdir()) == []
    assert HeldBatches(SCHEMA).rows().table.num_rows == 0
