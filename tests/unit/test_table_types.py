"""Columns of log blocks keep their values when they get the table's types, whatever list entries are called."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.dataplane.avro_columns import Decoder
from jobs.dataplane.table_types import conformed, require_conformable
from jobs.errors import NotProvedError
from tests.unit.test_avro_columns import COLUMN, encoded, optional, record


def as_in_parquet(kind: pa.DataType) -> pa.DataType:
    """Returns the type with the names of Hudi's Parquet files."""
    if pa.types.is_list(kind):
        return pa.list_(pa.field("array", as_in_parquet(kind.value_type), kind.value_field.nullable))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, pa.field("value", as_in_parquet(kind.item_type), kind.item_field.nullable))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, as_in_parquet(each.type), each.nullable) for each in kind])
    return kind


@pytest.mark.slow
@given(st.data())
@settings(max_examples=80, suppress_health_check=list(HealthCheck))
def test_values_stay_the_same(data: st.DataObject) -> None:
    kind, values = data.draw(optional(COLUMN))
    schema = record(("c", kind))
    rows = data.draw(st.lists(st.fixed_dictionaries({"c": values}), max_size=8))
    batch = Decoder(json.dumps(schema)).decode(*encoded(schema, rows)).slice(len(rows) // 3)
    table = pa.schema([pa.field("c", as_in_parquet(batch.schema.field(0).type), batch.schema.field(0).nullable)])
    require_conformable(batch.schema, table, "log block")
    found = conformed(batch, table)
    found.validate(full=True)
    assert str(found.schema) == str(table)
    assert found.to_pylist() == batch.to_pylist()


@pytest.mark.parametrize(
    ("found", "table"),
    [
        (pa.int64(), pa.int32()),
        (pa.int32(), pa.string()),
        (pa.float32(), pa.float64()),
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.decimal128(10, 2), pa.decimal128(12, 2)),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int32()), ("b", pa.int32())])),
        (pa.struct([("a", pa.int32())]), pa.struct([("b", pa.int32())])),
        (pa.list_(pa.int32()), pa.list_(pa.int64())),
        (pa.map_(pa.string(), pa.int64()), pa.list_(pa.int64())),
    ],
)
def test_other_types_are_refused(found: Any, table: Any) -> None:
    with pytest.raises(NotProvedError):
        require_conformable(pa.schema([("c", found)]), pa.schema([("c", table)]), "log block")


def test_integers_become_wider() -> None:
    narrow = pa.array([1, None], pa.int32())
    batch = pa.RecordBatch.from_arrays([narrow, narrow], ["a", "b"])
    table = pa.schema([("a", pa.float64()), ("b", pa.int64()), ("new", pa.string())])
    require_conformable(batch.schema, table, "base file")
    assert conformed(batch, table).to_pylist() == [
        {"a": 1.0, "b": 1, "new": None},
        {"a": None, "b": None, "new": None},
    ]
    with pytest.raises(NotProvedError):
        conformed(batch, pa.schema([pa.field("a", pa.int64(), nullable=False)]))
