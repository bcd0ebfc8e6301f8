"""Tests which parts of a base file's layout are kept, and which files are refused because this is impossible."""

from __future__ import annotations

import io
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.dataplane import parquet_layout
from jobs.errors import RefusedError
from jobs.storage.paths import BATCH_BYTES, Storage, batches_of, bytes_per_row

if TYPE_CHECKING:
    from pathlib import Path


def written(schema: pa.Schema, **options: object) -> pq.ParquetFile:
    buffer = io.BytesIO()
    pq.write_table(schema.empty_table(), buffer, store_schema=False, **options)
    return pq.ParquetFile(buffer)


def struct(*fields: pa.Field) -> pa.DataType:
    return pa.struct(list(fields))


def with_id(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


SCHEMAS = {
    "lists": pa.schema([("a", pa.list_(pa.list_(struct(pa.field("list", pa.list_(pa.int8()), nullable=False)))))]),
    "maps": pa.schema([("m", pa.map_(pa.string(), pa.map_(pa.string(), pa.decimal128(38, 7))))]),
    "times": pa.schema([("ms", pa.timestamp("ms", "UTC")), ("us", pa.timestamp("us")), ("t", pa.time64("us"))]),
    "ids": pa.schema([with_id("s", struct(with_id("x", pa.int32(), 7), with_id("y", pa.string(), 9)), 3)]),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_that_arrow_can_reproduce_are_accepted(name: str) -> None:
    reader = written(SCHEMAS[name])
    parquet_layout.require_reproducible(parquet_layout.of_file(reader), reader.schema, name)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pa.field("x", pa.int32()), pa.field("x", pa.int64())),
        (pa.field("x", pa.int32()), pa.field("x", pa.int32(), nullable=False)),
        (pa.field("x", pa.string()), pa.field("x", pa.binary())),
        (pa.field("x", pa.timestamp("us", "UTC")), pa.field("x", pa.timestamp("us"))),
        (pa.field("x", pa.timestamp("us", "UTC")), pa.field("x", pa.timestamp("ms", "UTC"))),
        (pa.field("x", pa.decimal128(10, 2)), pa.field("x", pa.decimal128(10, 3))),
        (with_id("x", pa.int32(), 1), with_id("x", pa.int32(), 2)),
        # The columns have the same number of levels, but another level is optional.
        (
            pa.field("x", struct(pa.field("y", struct(pa.field("z", pa.int32())), nullable=False))),
            pa.field("x", struct(pa.field("y", struct(pa.field("z", pa.int32())))), nullable=False),
        ),
        # Wrappers of lists have this name as well.
        (pa.field("x", struct(pa.field("list", pa.int32()))), pa.field("x", struct(pa.field("array", pa.int32())))),
    ],
)
def test_a_schema_that_would_differ_is_refused(before: pa.Field, after: pa.Field) -> None:
    reader = written(pa.schema([before]))
    other = replace(parquet_layout.of_file(reader), schema=pa.schema([after]))
    with pytest.raises(RefusedError) as refused:
        parquet_layout.require_reproducible(other, reader.schema, "file")
    assert refused.value.problem().type == "schema-not-reproducible"


def test_int96_is_refused() -> None:
    reader = written(pa.schema([("at", pa.timestamp("ns"))]), use_deprecated_int96_timestamps=True)
    with pytest.raises(RefusedError, match="INT96"):
        parquet_layout.require_reproducible(parquet_layout.of_file(reader), reader.schema, "file")


def test_row_groups_are_as_large_as_the_inputs(tmp_path: Path) -> None:
    table = pa.table({"x": list(range(10_000))})
    for rows, expected in [(10_000, None), (3000, 3000)]:
        pq.write_table(table, tmp_path / "file.parquet", row_group_size=rows)
        with pq.ParquetFile(tmp_path / "file.parquet") as reader:
            assert parquet_layout.of_file(reader).row_group_rows == expected


@pytest.mark.slow
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_batches_of_wide_rows_have_few_of_them_also_if_a_dictionary_hides_it(
    tmp_path: Path, use_dictionary: bool
) -> None:
    table = pa.table({"x": ["w" * 200_000] * 1000 + ["n"] * 100})
    pq.write_table(table, tmp_path / "file.parquet", use_dictionary=use_dictionary, compression="zstd")
    with Storage(str(tmp_path)).read_parquet(str(tmp_path / "file.parquet")) as reader:
        read = list(batches_of(reader))
    assert pa.Table.from_batches(read).equals(table)
    assert max(batch.nbytes for batch in read) < 2 * BATCH_BYTES


@pytest.mark.parametrize("uses_dictionaries", [True, False])
def test_the_size_of_rows_is_that_in_memory_and_only_texts_in_dictionaries_are_read_for_it(
    uses_dictionaries: bool,
) -> None:
    count = 5000
    numbers = pa.table(
        {
            "n": pa.array([number % 9 for number in range(count)], pa.int32()),
            "d": pa.array([Decimal(number % 9) for number in range(count)], pa.decimal128(9, 2)),
            "f": pa.array([b"1234567890123456"] * count, pa.binary(16)),
            "l": pa.array([[1.5, 2.5]] * count),
        }
    )
    texts = numbers.append_column("t", pa.array(["x" * 400] * count))
    for table in (numbers, texts):
        buffer = io.BytesIO()
        pq.write_table(table, buffer, use_dictionary=uses_dictionaries)
        with CountedReads(buffer.getvalue()) as file:
            reader = pq.ParquetFile(file)
            file.count = 0
            found = bytes_per_row(reader)
        assert 0.7 * table.nbytes < found * count < 1.5 * table.nbytes
        assert bool(file.count) == (uses_dictionaries and table is texts)


class CountedReads(io.BytesIO):
    count = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.count += 1
        return super().read(size)
