"""Tests when our clients write the metadata table: at the same time as a Flink job that may write beside them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jobs.hudi import indexes


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        ({"files"}, indexes.METADATA_AT_THE_END),
        ({"files", "column_stats", "partition_stats"}, indexes.METADATA_AT_THE_END),
        # A Flink job that finds its rows by this index has an open instant in the metadata table, which a client with
        # the option rolls back.
        ({"files", "record_index"}, {}),
    ],
)
def test_the_metadata_table_is_written_at_the_end_unless_flink_finds_its_rows_there(
    partitions: set[str], expected: dict[str, str]
) -> None:
    table: Any = SimpleNamespace(metadata_partitions=frozenset(partitions))
    assert indexes.beside_flink(table) == expected
