"""Tests how records are taken from the logs' columns by their positions; a column may have several chunks."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from jobs.dataplane.replaced_rows import Replacement

SCHEMA = pa.schema([("key", pa.string()), ("n", pa.int64()), ("tags", pa.list_(pa.string()))])


def batch_of(first: int, rows: int) -> pa.RecordBatch:
    numbers = range(first, first + rows)
    columns = [[f"k{n}" for n in numbers], list(numbers), [[str(n)] * (n % 3) for n in numbers]]
    return pa.record_batch([pa.array(each, field.type) for each, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


@pytest.mark.parametrize("sizes", [[], [0], [7], [3, 0, 4, 1], [5] * 9])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_rows_are_taken_in_the_order_of_their_places(sizes: list[int], count: int) -> None:
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    table = pa.Table.from_batches([batch_of(*each) for each in zip(starts, sizes, strict=True)], SCHEMA)
    pick = random.Random(count)
    places = [pick.randrange(table.num_rows) for _ in range(count)] if table.num_rows else []
    found = Replacement(table, SCHEMA).rows_at(np.array(places, np.int64))
    assert found.to_pylist() == [table.slice(place, 1).to_pylist()[0] for place in places]
