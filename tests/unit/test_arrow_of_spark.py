"""Tests the conversion from Spark to Parquet of null structs with required fields, and of lists without offsets."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.dataplane.arrow_of_spark import of_type, without_hidden_nulls


def required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


def struct(*fields: pa.Field) -> pa.DataType:
    return pa.struct(list(fields))


def as_spark_has_it(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Returns the array as Spark has it: fields of null structs are null."""
    if pa.types.is_struct(kind):
        fields = [
            as_spark_has_it([None if value is None else value[field.name] for value in values], field.type)
            for field in kind
        ]
        mask = pa.array([value is None for value in values], pa.bool_())
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=mask)
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        inner = [each for value in values if value is not None for each in value]
        offsets, at = [], 0
        for value in values:
            offsets.append(None if value is None else at)
            at += len(value or ())
        places = pa.array([*offsets, at], pa.int32())
        if pa.types.is_map(kind):
            keys = pa.array([key for key, _ in inner], kind.key_type)
            return pa.MapArray.from_arrays(
                places, keys, as_spark_has_it([item for _, item in inner], kind.item_type), type=kind
            )
        return pa.ListArray.from_arrays(places, as_spark_has_it(inner, kind.value_type), type=kind)
    return pa.array(values, kind)


POINT = struct(required("x", pa.int64()), pa.field("y", pa.string()))
NESTED = struct(required("inner", struct(required("name", pa.string()), required("tags", pa.list_(pa.string())))))
CASES = {
    "numbers": (POINT, [None, {"x": 1, "y": None}, None, {"x": 0, "y": "a"}]),
    "all null": (POINT, [None, None]),
    "strings": (struct(required("s", pa.string())), [{"s": "a"}, None, {"s": ""}]),
    "decimals": (struct(required("d", pa.decimal128(5, 2))), [None, None]),
    "booleans": (struct(required("b", pa.bool_())), [{"b": True}, None, {"b": False}]),
    "nested": (NESTED, [None, {"inner": {"name": "n", "tags": ["a", None]}}, {"inner": {"name": "", "tags": []}}]),
    "in lists": (pa.list_(POINT), [None, [], [None, {"x": 1, "y": "a"}], [{"x": 2, "y": None}]]),
    "in maps": (pa.map_(pa.string(), POINT), [None, [("k", None), ("l", {"x": 1, "y": None})], []]),
    "of maps": (struct(required("m", pa.map_(pa.string(), pa.int32()))), [None, {"m": [("a", None)]}, {"m": []}]),
}


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("case", CASES)
def test_null_structs_of_required_fields_are_written_and_read_back(case: str, first: int) -> None:
    kind, values = CASES[case]
    array = as_spark_has_it(values, kind).slice(first)
    assert array.to_pylist() == values[first:]
    found = without_hidden_nulls(array)
    assert (found.type, found.to_pylist()) == (array.type, values[first:])
    found.validate(full=True)
    buffer = io.BytesIO()
    pq.write_table(pa.table({"column": found}), buffer)
    assert pq.read_table(buffer).column("column").to_pylist() == values[first:]


def test_without_the_conversion_arrows_writer_takes_null_structs_for_null_fields() -> None:
    kind, values = CASES["numbers"]
    with pytest.raises(pa.ArrowInvalid, match="non-nullable"):
        pq.write_table(pa.table({"column": as_spark_has_it(values, kind)}), io.BytesIO())


def test_a_visible_null_in_a_required_field_is_left_to_the_writer() -> None:
    found = without_hidden_nulls(as_spark_has_it([{"x": None, "y": "a"}, None], POINT))
    with pytest.raises(pa.ArrowInvalid, match="non-nullable"):
        pq.write_table(pa.table({"column": found}), io.BytesIO())


def test_arrays_without_required_fields_are_not_changed() -> None:
    array = pa.array([None, {"a": 1}])
    assert without_hidden_nulls(array) is array


def after_ipc(array: pa.Array) -> pa.Array:
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, pa.schema([("column", array.type)])) as writer:
        writer.write_batch(pa.record_batch([array], ["column"]))
    return pa.ipc.open_stream(stream.getvalue()).read_next_batch().column(0)


EMPTY_IN_JAVA = {
    "lists": (pa.list_(pa.list_(pa.int64())), pa.ListArray.from_buffers),
    "maps": (pa.list_(pa.map_(pa.string(), pa.int64())), pa.MapArray.from_buffers),
}


@pytest.mark.parametrize("case", EMPTY_IN_JAVA)
def test_lists_without_any_element_get_offsets(case: str) -> None:
    kind, from_buffers = EMPTY_IN_JAVA[case]
    children = [pa.array([], kind.value_type.field(0).type)]
    inner = from_buffers(kind.value_type, 0, [None, pa.py_buffer(b"")], children=children)
    array = after_ipc(pa.ListArray.from_buffers(kind, 2, [None, pa.py_buffer(bytes(12))], children=[inner]))
    assert array.values.buffers()[1].size == 0

    found = of_type(array, kind)

    assert found.values.buffers()[1].size == 4
    assert found.nbytes == pa.array([[], []], kind).nbytes
    assert found.to_pylist() == [[], []]


def test_fields_that_spark_reads_as_nullable_become_required_where_only_null_structs_are_null() -> None:
    spark = struct(pa.field("kind", pa.string()), pa.field("of", struct(pa.field("path", pa.string()))))
    table = struct(required("kind", pa.binary()), pa.field("of", struct(required("path", pa.string()))))
    values = [{"kind": "a", "of": None}, None, {"kind": "b", "of": {"path": "p"}}]
    found = of_type(pa.array(values, spark), table)
    assert found.type == table
    assert written_and_read(found) == [{**each, "kind": each["kind"].encode()} if each else None for each in values]
    with pytest.raises(pa.ArrowInvalid):
        written_and_read(of_type(pa.array([{"kind": None, "of": None}], spark), table))


def written_and_read(array: pa.Array) -> Any:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"x": array}), buffer)
    return pq.read_table(buffer)["x"].to_pylist()


@pytest.mark.parametrize(
    ("element", "width", "expected"),
    [
        (pa.float32(), 8, "0000803f000000c0"),
        (pa.float64(), 16, "000000000000f03f00000000000000c0"),
        (pa.int8(), 2, "01fe"),
    ],
    ids=str,
)
def test_vectors_are_the_bytes_of_their_elements(element: pa.DataType, width: int, expected: str) -> None:
    vectors = pa.array([[9, 9], None, [1, -2], None], pa.list_(required("element", element))).slice(1)
    found = of_type(vectors, pa.binary(width))
    found.validate(full=True)
    assert found.to_pylist() == [None, bytes.fromhex(expected), None]
    assert of_type(vectors[:1], pa.binary(width)).to_pylist() == [None]


@pytest.mark.parametrize("values", [[[1, 2, 3]], [[1, None]], [[1, 2], []]], ids=str)
def test_vectors_of_another_dimension_are_refused(values: list[Any]) -> None:
    with pytest.raises(pa.ArrowInvalid, match="vectors"):
        of_type(pa.array(values, pa.list_(pa.int8())), pa.binary(2))
