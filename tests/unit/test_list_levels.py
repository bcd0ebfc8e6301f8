"""Rewritten files keep the two levels of lists that Hudi's Avro writer makes, and pyarrow alone does not write."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.dataplane import parquet_layout
from jobs.dataplane.column_chunks import RawFile
from jobs.dataplane.list_levels import Lists
from jobs.dataplane.logical_types import Annotations
from jobs.dataplane.parquet_writer import ParquetWriter


def list_type(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind, nullable=False))


PAIR = pa.struct([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
ONE = pa.struct([pa.field("address", pa.string())])
ROWS = pa.table(
    {
        "id": pa.array(["k1", "k2", "k3"]),
        "pairs": pa.array([[{"a": 1, "b": "x"}, {"a": 2, "b": None}], [], None], list_type(PAIR)),
        "words": pa.array([["a"], None, ["b", "c"]], list_type(pa.string())),
        "lists": pa.array([[[1, 2], []], None, [[3]]], list_type(list_type(pa.int32()))),
        "in_map": pa.array([[("k", [{"a": 4, "b": "z"}])], [], None], pa.map_(pa.string(), list_type(PAIR))),
        "single": pa.array([[{"address": "here"}], None, []], list_type(ONE)),
        "after": pa.array([1, 2, 3], pa.int32()),
    }
)
TWO_LEVELS: Lists = (
    (b"pairs", (b"array",)),
    (b"words", (b"array",)),
    (b"lists", (b"array", b"array")),
    (b"in_map", (b"array",)),
)


def written(lists: Lists, **options: Any) -> bytes:
    out = io.BytesIO()
    annotations = Annotations(lists=lists)
    with ParquetWriter(out, ROWS.schema, annotations, store_schema=False, write_page_index=True, **options) as writer:
        writer.write_table(ROWS, row_group_size=2)
        writer.add_key_value_metadata({"parquet.avro.schema": "of Avro"})
    return out.getvalue()


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_readers_see_the_same_rows_in_lists_of_two_levels(compression: str) -> None:
    content = written(TWO_LEVELS, compression=compression)

    reader = pq.ParquetFile(io.BytesIO(content))
    assert reader.read().to_pylist() == ROWS.to_pylist()
    assert reader.read(columns=["words", "after"]).to_pylist() == ROWS.select(["words", "after"]).to_pylist()
    assert [reader.schema.column(number).path for number in range(len(reader.schema))] == [
        *("id", "pairs.array.a", "pairs.array.b", "words.array", "lists.array.array"),
        *("in_map.key_value.key", "in_map.key_value.value.array.a", "in_map.key_value.value.array.b"),
        *("single.list.element.address", "after"),
    ]
    assert reader.metadata.metadata == {b"parquet.avro.schema": b"of Avro"}
    assert reader.metadata.row_group(1).column(9).statistics.max == 3
    assert [chunk.path[-1] for chunk in RawFile(pa.BufferReader(content)).groups[0].chunks][:3] == [b"id", b"a", b"b"]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_rewritten_file_has_the_levels_of_its_input(compression: str) -> None:
    for lists in (TWO_LEVELS, TWO_LEVELS[1:2], ()):
        source = pq.ParquetFile(io.BytesIO(written(lists, compression=compression)))
        layout = parquet_layout.of_file(source)
        assert layout.annotations.lists == lists
        out = io.BytesIO()
        with layout.writer(out, ROWS) as writer:
            writer.write_table(ROWS)
        copy = pq.ParquetFile(io.BytesIO(out.getvalue()))
        assert str(copy.schema).partition("\n")[2] == str(source.schema).partition("\n")[2]
        assert copy.read().to_pylist() == ROWS.to_pylist()
        parquet_layout.require_reproducible(layout, source.schema, "a file")
        part = layout.of_columns(pa.schema([ROWS.schema.field("words"), ROWS.schema.field("after")]))
        assert part.annotations.lists == tuple(each for each in lists if each[0] == b"words")


def test_a_struct_of_one_field_stays_in_a_list_of_three_levels() -> None:
    source = pq.ParquetFile(io.BytesIO(written(((b"single", (b"array",)),))))
    assert source.schema.column(8).path == "single.array.address"
    assert source.read().to_pylist() == ROWS.to_pylist()

    assert Annotations.of(source).lists == ()


def test_elements_that_may_be_null_keep_three_levels() -> None:
    rows = pa.table({"words": pa.array([["a", None], None], pa.list_(pa.string()))})
    out = io.BytesIO()
    with ParquetWriter(out, rows.schema, Annotations(lists=((b"words", (b"array",)),))) as writer:
        writer.write_table(rows)
    reader = pq.ParquetFile(io.BytesIO(out.getvalue()))
    assert reader.schema.column(0).path == "words.list.element"
    assert reader.read().to_pylist() == rows.to_pylist()
