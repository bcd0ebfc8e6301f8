"""Rewritten files keep the old form of lists and maps, which Hudi's Avro writer makes, and pyarrow alone does not
write."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.dataplane import parquet_layout
from jobs.dataplane.column_chunks import RawFile
from jobs.dataplane.logical_types import Annotations
from jobs.dataplane.parquet_writer import ParquetWriter


def list_type(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind, nullable=False))


PAIR = pa.struct([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
SINGLE = pa.struct([pa.field("address", pa.string())])
ROWS = pa.table(
    {
        "id": pa.array(["k1", "k2", "k3"]),
        "pairs": pa.array([[{"a": 1, "b": "x"}, {"a": 2, "b": None}], [], None], list_type(PAIR)),
        "words": pa.array([["a"], None, ["b", "c"]], list_type(pa.string())),
        "lists": pa.array([[[1, 2], []], None, [[3]]], list_type(list_type(pa.int32()))),
        "in_map": pa.array([[("k", [{"a": 4, "b": "z"}])], [], None], pa.map_(pa.string(), list_type(PAIR))),
        "after": pa.array([1, 2, 3], pa.int32()),
    }
)
OLD = Annotations(are_lists_old=True)


def written(rows: pa.Table = ROWS, annotations: Annotations = OLD, **options: Any) -> bytes:
    out = io.BytesIO()
    with ParquetWriter(out, rows.schema, annotations, store_schema=False, write_page_index=True, **options) as writer:
        writer.write_table(rows, row_group_size=2)
        writer.add_key_value_metadata({"parquet.avro.schema": "of Avro"})
    return out.getvalue()


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_readers_see_the_same_rows_in_lists_of_two_levels(compression: str) -> None:
    content = written(compression=compression)

    reader = pq.ParquetFile(io.BytesIO(content))
    assert reader.read().to_pylist() == ROWS.to_pylist()
    assert reader.read(columns=["words", "after"]).to_pylist() == ROWS.select(["words", "after"]).to_pylist()
    assert [reader.schema.column(number).path for number in range(len(reader.schema))] == [
        *("id", "pairs.array.a", "pairs.array.b", "words.array", "lists.array.array"),
        *("in_map.key_value.key", "in_map.key_value.value.array.a", "in_map.key_value.value.array.b"),
        "after",
    ]
    assert "repeated group field_id=-1 key_value (Map) {" in str(reader.schema)
    assert reader.metadata.metadata == {b"parquet.avro.schema": b"of Avro"}
    assert reader.metadata.row_group(1).column(8).statistics.max == 3
    assert [chunk.path[-1] for chunk in RawFile(pa.BufferReader(content)).groups[0].chunks][:3] == [b"id", b"a", b"b"]


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("are_old", [True, False])
def test_a_rewritten_file_has_the_form_of_its_input(*, compression: str, are_old: bool) -> None:
    annotations = Annotations(are_lists_old=are_old)
    source = pq.ParquetFile(io.BytesIO(written(ROWS, annotations, compression=compression)))
    layout = parquet_layout.of_file(source)
    assert layout.annotations == annotations
    out = io.BytesIO()
    with layout.writer(out, ROWS) as writer:
        writer.write_table(ROWS)
    copy = pq.ParquetFile(io.BytesIO(out.getvalue()))
    assert str(copy.schema).partition("\n")[2] == str(source.schema).partition("\n")[2]
    assert copy.read().to_pylist() == ROWS.to_pylist()
    parquet_layout.require_reproducible(layout, source.schema, "a file")
    part = layout.of_columns(pa.schema([ROWS.schema.field("words"), ROWS.schema.field("after")]))
    assert part.annotations == annotations


@pytest.mark.parametrize(
    ("kind", "values"),
    [(list_type(SINGLE), [[{"address": "here"}], None, []]), (pa.list_(pa.string()), [["a", None], None, []])],
    ids=["struct of one field", "elements that may be null"],
)
def test_no_list_has_two_levels_beside_one_that_needs_three(kind: pa.DataType, values: list[Any]) -> None:
    """Hudi's Avro reader looks for the same form in all lists and maps of a file."""
    rows = ROWS.append_column("more", pa.array(values, kind))

    reader = pq.ParquetFile(io.BytesIO(written(rows)))

    assert reader.read().to_pylist() == rows.to_pylist()
    assert "array" not in str(reader.schema)
    assert "key_value (Map)" not in str(reader.schema)


def test_a_file_of_both_forms_gets_the_new_one() -> None:
    """Hudi's Avro reader finds no list of two levels in such a file."""
    old = written()
    annotated = old.index(b"key_value\x15\x04\x15\x04", old.index(b"in_map"))
    mixed = bytearray(old)
    # The inner group of the map is annotated as a map.
    mixed[annotated : annotated + 13] = b"key_value\x15\x04\x15\x02"
    source = pq.ParquetFile(io.BytesIO(bytes(mixed)))

    assert source.read().to_pylist() == ROWS.to_pylist()
    assert not Annotations.of(source).are_lists_old
