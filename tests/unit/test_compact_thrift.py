"""Reading and writing a struct of Thrift's compact protocol returns the bytes of Parquet's writers."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.format import compact_thrift as thrift
from jobs.format.compact_thrift import Field, Items, ThriftError, TruncatedError, read_struct, write_struct


def structs() -> st.SearchStrategy[dict[int, Field]]:
    integers = st.integers(-(2**63), 2**63 - 1)
    plain = st.one_of(
        st.tuples(st.just(thrift.TRUE), st.just(True)),
        st.tuples(st.just(thrift.FALSE), st.just(False)),
        st.tuples(st.just(thrift.BYTE), st.integers(0, 255)),
        st.tuples(st.sampled_from([thrift.I16, thrift.I32, thrift.I64]), integers),
        st.tuples(st.just(thrift.DOUBLE), st.binary(min_size=8, max_size=8)),
        st.tuples(st.just(thrift.BINARY), st.binary(max_size=200)),
    )

    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        lists = st.one_of(
            st.builds(Items, st.just(thrift.I64), st.lists(integers, max_size=40)),
            st.builds(Items, st.just(thrift.TRUE), st.lists(st.integers(1, 2), max_size=20)),
            st.builds(Items, st.just(thrift.STRUCT), st.lists(inner, max_size=20)),
        )
        values = st.one_of(plain, st.tuples(st.just(thrift.STRUCT), inner), st.tuples(st.just(thrift.LIST), lists))
        return st.dictionaries(st.integers(-40, 400), values.map(lambda pair: Field(*pair)), max_size=6)

    return st.recursive(st.just({}), nested, max_leaves=8)


@given(structs(), st.binary(max_size=5))
def test_a_struct_is_read_as_it_was_written(struct: dict[int, Field], more: bytes) -> None:
    written = write_struct(struct)
    found, end = read_struct(b"ab" + written + more, 2)
    assert found == struct
    assert end == 2 + len(written)


@given(structs())
def test_first_fields_can_be_replaced_while_the_other_bytes_stay(struct: dict[int, Field]) -> None:
    written = write_struct(struct)
    for last in sorted(struct):
        first, end = read_struct(written, last=last)
        assert first == {number: field for number, field in struct.items() if number <= last}
        assert write_struct(first)[:-1] + written[end:] == written


def some_of(struct: dict[int, Field], data: st.DataObject) -> dict[int, Any]:
    """Draws nested fields to decode."""
    found = {}
    for number, (kind, value) in struct.items():
        if kind in (thrift.STRUCT, thrift.LIST) and data.draw(st.booleans()):
            inner = [value] if kind == thrift.STRUCT else value.values if value.kind == thrift.STRUCT else []
            found[number] = some_of({key: field for each in inner for key, field in each.items()}, data)
    return found


def decoded(struct: dict[int, Field]) -> dict[int, Field]:
    """Decodes all fields that are still `Encoded`, also those of nested structs."""
    found = {}
    for number, (kind, value) in struct.items():
        if isinstance(value, thrift.Encoded):
            value = read_struct(bytes([1 << 4 | kind]) + value + b"\x00")[0][1].value
        elif kind == thrift.STRUCT:
            value = decoded(value)
        elif kind == thrift.LIST and value.kind == thrift.STRUCT:
            value = Items(value.kind, [decoded(each) for each in value.values])
        found[number] = Field(kind, value)
    return found


@given(structs(), st.data())
def test_nested_fields_that_are_not_wanted_keep_their_bytes(struct: dict[int, Field], data: st.DataObject) -> None:
    written = write_struct(struct)
    found, end = read_struct(b"ab" + written + b"more", 2, wanted=some_of(struct, data))
    assert end == 2 + len(written)
    assert write_struct(found) == written
    assert decoded(found) == struct
    none, _ = read_struct(written, wanted={})
    assert all(isinstance(field.value, thrift.Encoded) for field in none.values() if field.kind in (9, 12))
    with pytest.raises(TruncatedError):
        read_struct(written[: data.draw(st.integers(0, len(written) - 1))], wanted={})


@given(structs(), st.data())
def test_a_struct_that_ends_early_raises_truncated_error(struct: dict[int, Field], data: st.DataObject) -> None:
    written = write_struct(struct)
    with pytest.raises(TruncatedError):
        read_struct(written[: data.draw(st.integers(0, len(written) - 1))])


@given(st.binary(max_size=300))
def test_any_bytes_are_a_struct_or_a_typed_error(content: bytes) -> None:
    with suppress(ThriftError):
        read_struct(content, wanted={})
    try:
        found, end = read_struct(content)
    except ThriftError:
        return
    assert end <= len(content)
    assert read_struct(write_struct(found))[0] == found


@pytest.mark.parametrize(
    "content",
    [b"\x1c" * 100_000 + b"\x00", b"\x19\x19" + b"\x19" * 100_000, b"\x19\xfc" + b"\xff" * 20, b"\x15\x02\x05\x02\x02"],
    ids=["deep structs", "deep lists", "endless count", "a field twice"],
)
@pytest.mark.parametrize("wanted", [None, {}])
def test_hostile_bytes_are_refused(content: bytes, wanted: dict[int, Any] | None) -> None:
    with pytest.raises(ThriftError):
        read_struct(content, wanted=wanted)


def test_a_list_longer_than_its_bytes_raises_truncated_error() -> None:
    with pytest.raises(TruncatedError):
        read_struct(b"\x19\xf6\xff\xff\xff\xff\x07" + b"\x00" * 100)


def test_a_footer_of_pyarrow_is_written_again_byte_for_byte() -> None:
    buffer = io.BytesIO()
    table = pa.table({"a": [1, None], "b": [["x"], []], "c": [{"d": 1.5}, None], "e": [True, False]})
    pq.write_table(table, buffer, write_page_index=True, sorting_columns=[pq.SortingColumn(0)])
    content = buffer.getvalue()
    footer = content[-8 - int.from_bytes(content[-8:-4], "little") : -8]
    found, end = read_struct(footer)
    assert end == len(footer)
    assert write_struct(found) == footer
