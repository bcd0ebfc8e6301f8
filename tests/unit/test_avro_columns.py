"""Records of generated schemas, decoded column by column, are those that fastavro wrote; broken ones are refused."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import count
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.dataplane.avro_columns import Decoder
from jobs.errors import NotProvedError

_names = count()
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))
LONGS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, -1, 63, 64, -64, -65, 2**55, -(2**56), 2**62, 2**63 - 1])


def named(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "name": f"n{next(_names)}", **more}


def millis(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


@st.composite
def decimals(draw: st.DrawFn) -> tuple[Any, st.SearchStrategy[Any]]:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    logical = {"logicalType": "decimal", "precision": precision, "scale": scale}
    most = 10**precision - 1
    values = st.integers(-most, most).map(lambda number: Decimal(f"{number}E-{scale}"))
    if draw(st.booleans()):
        return {"type": "bytes", **logical}, values
    size = (most.bit_length() + 8) // 8 + draw(st.integers(0, 1))
    return named("fixed", size=min(size, 16), **logical), values


def pairs(*choices: tuple[Any, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    return st.sampled_from(choices)


SIMPLE = st.one_of(
    pairs(
        ("boolean", st.booleans()),
        ("int", st.integers(-(2**31), 2**31 - 1)),
        ("long", LONGS),
        ("float", st.floats(width=32, allow_nan=False)),
        ("double", st.floats(allow_nan=False)),
        ("string", TEXT),
        ("string", st.text("ab", min_size=60, max_size=200)),
        ("bytes", st.binary(max_size=20)),
        ({"type": "int", "logicalType": "date"}, st.dates(date(1900, 1, 1), date(2200, 1, 1))),
        ({"type": "long", "logicalType": "time-micros"}, st.times()),
        ({"type": "int", "logicalType": "time-millis"}, st.just(time(1, 2, 3, 4000))),
        ({"type": "long", "logicalType": "timestamp-micros"}, MOMENTS.map(lambda each: each.replace(tzinfo=UTC))),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            MOMENTS.map(lambda each: millis(each).replace(tzinfo=UTC)),
        ),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, MOMENTS),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, MOMENTS.map(millis)),
    ),
    decimals(),
    st.just(0).map(lambda _: (named("fixed", size=3), st.binary(min_size=3, max_size=3))),
    st.just(0).map(lambda _: (named("enum", symbols=["A", "B", "C"]), st.sampled_from("ABC"))),
)


@st.composite
def optional(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> tuple[Any, st.SearchStrategy[Any]]:
    kind, values = draw(inner)
    return draw(
        st.sampled_from(
            [(kind, values), (["null", kind], st.none() | values), ([kind, "null"], values | st.none())],
        )
    )


@st.composite
def nested(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> tuple[Any, st.SearchStrategy[Any]]:
    shape = draw(st.sampled_from(["array", "map", "record"]))
    kind, values = draw(optional(inner))
    if shape == "array":
        return {"type": "array", "items": kind}, st.lists(values, max_size=5)
    if shape == "map":
        return {"type": "map", "values": kind}, st.dictionaries(TEXT, values, max_size=4)
    others = [draw(optional(inner)) for _ in range(draw(st.integers(0, 2)))]
    fields = [(f"f{number}", *each) for number, each in enumerate([(kind, values), *others])]
    schema = named("record", fields=[{"name": name, "type": kind} for name, kind, _ in fields])
    return schema, st.fixed_dictionaries({name: values for name, _, values in fields})


COLUMN = st.recursive(SIMPLE, nested, max_leaves=5)


def encoded(schema: Any, rows: list[dict[str, Any]]) -> tuple[bytes, Any, Any]:
    """Returns the bytes of all rows, and the begin and end of each; before each row there is a gap, like its length in
    a log."""
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    data, starts, ends = io.BytesIO(), [], []
    for row in rows:
        data.write(b"\xff\xff\xff\xff")
        starts.append(data.tell())
        fastavro.schemaless_writer(data, parsed, row)
        ends.append(data.tell())
    return data.getvalue(), np.array(starts, np.int64), np.array(ends, np.int64)


def decoded(schema: Any, rows: list[dict[str, Any]], columns: list[str] | None = None) -> list[dict[str, Any]]:
    batch = Decoder(json.dumps(schema), columns).decode(*encoded(schema, rows))
    batch.validate(full=True)
    return [
        {name: plain(value, batch.schema.field(name).type) for name, value in row.items()} for row in batch.to_pylist()
    ]


def plain(value: Any, kind: pa.DataType) -> Any:
    """Returns the rows with maps as lists of pairs."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: plain(each, kind.item_type) for key, each in value}
    if pa.types.is_list(kind):
        return [plain(each, kind.value_type) for each in value]
    if pa.types.is_struct(kind):
        return {field.name: plain(value[field.name], field.type) for field in kind}
    return value


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return named("record", fields=[{"name": name, "type": kind} for name, kind in fields])


@pytest.mark.slow
@given(st.data())
@settings(max_examples=60)
def test_generated_records_are_decoded_to_the_same_values(data: st.DataObject) -> None:
    columns = [data.draw(optional(COLUMN)) for _ in range(data.draw(st.integers(1, 4)))]
    schema = record(*((f"c{number}", kind) for number, (kind, _) in enumerate(columns)))
    row = st.fixed_dictionaries({f"c{number}": values for number, (_, values) in enumerate(columns)})
    rows = data.draw(st.lists(row, max_size=12))
    assert decoded(schema, rows) == rows
    some = data.draw(st.sets(st.sampled_from([f"c{number}" for number in range(len(columns))]), min_size=1))
    assert decoded(schema, rows, list(some)) == [{name: row[name] for name in row if name in some} for row in rows]


@pytest.mark.parametrize(("kind", "logical"), [("int", "time-millis"), ("long", "time-micros")])
@pytest.mark.parametrize("value", [-1, 86_400_000_000])
def test_a_time_of_day_beyond_24_hours_is_refused(kind: str, logical: str, value: int) -> None:
    value = min(value, 2**31 - 1) if kind == "int" else value
    content, starts, ends = encoded(record(("c", kind)), [{"c": value}])
    schema = record(("c", {"type": kind, "logicalType": logical}))
    with pytest.raises(NotProvedError, match="a time of no day"):
        Decoder(json.dumps(schema)).decode(content, starts, ends)


@given(st.data())
@settings(max_examples=60)
def test_broken_records_are_refused_or_are_other_records(data: st.DataObject) -> None:
    """Decoding any bytes gives a valid result or the one error, and always ends."""
    kind, values = data.draw(optional(COLUMN))
    schema = record(("c", kind))
    rows = data.draw(st.lists(st.fixed_dictionaries({"c": values}), min_size=1, max_size=5))
    content, starts, ends = encoded(schema, rows)
    broken = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        broken = broken[: data.draw(st.integers(0, len(broken)))]
        starts, ends = np.minimum(starts, len(broken)), np.minimum(ends, len(broken))
    try:
        Decoder(json.dumps(schema)).decode(bytes(broken), starts, ends).validate(full=True)
    except NotProvedError:
        return


@pytest.mark.parametrize(
    "content",
    {
        "no end": b"\xff" * 40,
        "eleven bytes": b"\x80" * 10 + b"\x01",
        "too large": b"\xff" * 9 + b"\x7f",
        "longer than the data": b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        "negative": b"\x01",
        "empty": b"",
    }.values(),
)
@pytest.mark.parametrize(
    "kind", ["string", "bytes", {"type": "array", "items": "int"}, {"type": "map", "values": "int"}]
)
def test_lengths_that_exceed_the_content_are_refused(kind: Any, content: bytes) -> None:
    with pytest.raises(NotProvedError):
        Decoder(json.dumps(record(("c", kind)))).decode(
            content, np.zeros(1, np.int64), np.array([len(content)], np.int64)
        )


def test_numbers_out_of_range_and_text_that_is_no_text_are_refused() -> None:
    for kind, content in [
        ("int", b"\x80\x80\x80\x80\x10"),
        ("boolean", b"\x02"),
        ("string", b"\x04\xff\xfe"),
        (["null", "int"], b"\x04\x02"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 0}, b"\x04\x7f\xff"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 0}, b"\x00"),
        (named("enum", symbols=["A"]), b"\x02"),
    ]:
        with pytest.raises(NotProvedError):
            Decoder(json.dumps(record(("c", kind)))).decode(
                content, np.zeros(1, np.int64), np.array([len(content)], np.int64)
            )


def test_long_lists_end_in_time() -> None:
    schema = record(("c", {"type": "array", "items": "int"}))
    content = encoded(schema, [{"c": list(range(30_000))}])
    with pytest.raises(NotProvedError, match="20,000"):
        Decoder(json.dumps(schema)).decode(*content)


def test_blocks_of_lists_with_sizes_are_read() -> None:
    # Two blocks: -2 entries in 2 bytes, then 1 entry.
    content = b"\x03\x04\x02\x04" + b"\x02\x06" + b"\x00"
    batch = Decoder(json.dumps(record(("c", {"type": "array", "items": "int"})))).decode(
        content, np.zeros(1, np.int64), np.array([len(content)], np.int64)
    )
    assert batch.to_pylist() == [{"c": [1, 2, 3]}]


LOOP = {"type": "record", "name": "r", "fields": [{"name": "c", "type": ["null", "r"]}]}


@pytest.mark.parametrize(
    "schema",
    [
        "int",
        {"type": "record"},
        LOOP,
        record(("c", "null")),
        record(("c", ["null", "int", "string"])),
        record(("c", ["int"])),
        record(("c", {"type": "array", "items": record()})),
        record(("c", named("fixed", size=0))),
        record(("c", named("fixed", size=-1))),
        record(("c", "int"), ("c", "int")),
        record(("c", {"type": "long", "logicalType": "duration"})),
        record(("c", {"type": "bytes", "logicalType": "decimal", "precision": 77, "scale": 0})),
        record(("c", 7)),
    ],
)
def test_schemas_that_are_not_known_are_refused(schema: Any) -> None:
    with pytest.raises(NotProvedError):
        Decoder(json.dumps(schema))


def test_a_deep_schema_is_refused() -> None:
    deep: Any = "int"
    for _ in range(2000):
        deep = {"type": "array", "items": deep}
    with pytest.raises(NotProvedError):
        Decoder(f'{{"type":"record","name":"r","fields":[{{"name":"c","type":{_json(deep)}}}]}}')
    with pytest.raises(NotProvedError):
        Decoder("{" * 100_000)


def _json(deep: Any) -> str:
    levels = 0
    while isinstance(deep, dict):
        levels, deep = levels + 1, deep["items"]
    return '{"type":"array","items":' * levels + '"int"' + "}" * levels


def test_a_log_blocks_own_framing_is_not_part_of_a_record() -> None:
    """A record with a wrong length is refused, even if the next one begins at the right place."""
    content, starts, ends = encoded(record(("c", "long")), [{"c": 1}, {"c": 300}])
    decoder = Decoder(json.dumps(record(("c", "long"))))
    assert decoder.decode(content, starts, ends).to_pylist() == [{"c": 1}, {"c": 300}]
    for shift in (-1, 1):
        with pytest.raises(NotProvedError):
            decoder.decode(content, starts, ends + np.array([shift, 0]))
