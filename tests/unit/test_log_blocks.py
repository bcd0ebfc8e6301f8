"""The reader of log files reads Hudi's blocks, refuses all other content, and never reads past its end."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.errors import NotProvedError
from jobs.format import log_blocks
from jobs.format.log_blocks import (
    BlockType,
    Header,
    LogBlock,
    avro_content,
    blocks_of,
    deletes_of,
    read_content,
)
from tests.support.log_file import block

if TYPE_CHECKING:
    from collections.abc import Callable


def read(content: bytes) -> list[LogBlock]:
    return list(blocks_of(pa.BufferReader(content), len(content)))


INSTANT = {0: "20260101000000000"}
GOOD = block(3, {**INSTANT, 2: '{"type":"ü"}'}, b"records") + block(0, {1: "20260102000000000", 3: "0"}, b"")


def test_blocks_come_in_order_with_headers_and_content() -> None:
    data, command = read(GOOD)
    assert (data.kind, data.instant, data.header[Header.SCHEMA]) == (BlockType.AVRO_DATA, INSTANT[0], '{"type":"ü"}')
    assert read_content(pa.BufferReader(GOOD), data).to_pybytes() == b"records"
    assert read_content(pa.BufferReader(GOOD), data, 2, 3).to_pybytes() == b"cor"
    assert command.header == {Header.TARGET_INSTANT_TIME: "20260102000000000", Header.COMMAND_BLOCK_TYPE: "0"}
    with pytest.raises(NotProvedError):
        read_content(pa.BufferReader(GOOD), data, 5, 3)


@pytest.mark.parametrize(
    "content",
    [
        GOOD[:-1],
        GOOD + b"#HU",
        GOOD + b"\0" * 100,
        b"x" + GOOD,
        block(3, INSTANT, b"", more=1),
        block(3, INSTANT, b"", version=0),
        block(7, INSTANT, b""),
        block(-1, INSTANT, b""),
        block(3, {9: "x"}, b""),
        block(3, INSTANT, b"").replace(struct.pack(">q", 0), struct.pack(">q", -1), 1),
        block(3, INSTANT, b"").replace(struct.pack(">q", 0), struct.pack(">q", 2**62), 1),
    ],
)
def test_content_that_is_no_whole_block_is_refused(content: bytes) -> None:
    with pytest.raises(NotProvedError):
        read(content)


@given(st.data())
@settings(max_examples=200)
def test_changed_bytes_give_other_blocks_or_are_refused(data: st.DataObject) -> None:
    broken = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 5))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(broken[: data.draw(st.integers(0, len(broken)))])
    try:
        found = read(cut)
    except NotProvedError:
        return
    assert all(each.start + each.length <= len(cut) for each in found)


def test_large_entries_of_headers_are_passed_over_or_refused() -> None:
    (found,) = read(block(3, {**INSTANT, 5: "x" * 5_000_000}, b"records"))
    assert found.header == {Header.INSTANT_TIME: INSTANT[0], Header.RECORD_POSITIONS: ""}
    with pytest.raises(NotProvedError, match="4 MiB"):
        read(block(3, {**INSTANT, 2: "x" * 5_000_000}, b"records"))


def test_a_block_without_instant_says_so() -> None:
    with pytest.raises(NotProvedError, match="instant"):
        _ = read(block(3, {}, b""))[0].instant


def test_the_number_of_records_is_compared_with_the_content() -> None:
    def avro_range(content: bytes) -> tuple[int, int]:
        written = block(3, INSTANT, content)
        return avro_content(pa.BufferReader(written), read(written)[0])

    assert avro_range(struct.pack(">iii", 3, 1, 0)) == (1, 8)
    for wrong in (b"", struct.pack(">ii", 2, 0), struct.pack(">iii", 3, 2, 0), struct.pack(">ii", 3, -1)):
        with pytest.raises(NotProvedError):
            avro_range(wrong)


def deletes(*records: tuple[str | None, Any]) -> bytes:
    wrapped = [{"recordKey": key, "partitionPath": "p", "orderingVal": value} for key, value in records]
    content = io.BytesIO()
    schema = {"type": "array", "items": log_blocks._delete_schema()}
    fastavro.schemaless_writer(content, schema, wrapped)
    return struct.pack(">ii", 3, len(content.getvalue())) + content.getvalue()


def wrapper(name: str, value: Any) -> tuple[str, Any]:
    return f"org.apache.hudi.avro.model.{name}Wrapper", {"value": value}


def test_deletes_come_with_the_java_class_of_their_ordering_value() -> None:
    several = (
        "org.apache.hudi.avro.model.ArrayWrapper",
        {"wrappedValues": [wrapper("Long", 7), wrapper("String", "x")]},
    )
    content = deletes(("a", None), ("b", wrapper("Int", 0)), ("ü", wrapper("Long", 5)), ("d", several))
    assert deletes_of(content) == (
        ["a", "b", "ü", "d"],
        [None, ("Int", 0), ("Long", 5), ("Array", (("Long", 7), ("String", "x")))],
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: struct.pack(">i", 2) + content[4:],
        lambda content: struct.pack(">ii", 3, 1) + content[8:],
        lambda content: content[:8] + b"\xff" * (len(content) - 8),
        lambda content: content[:4],
        lambda _: deletes((None, None)),
    ],
)
def test_deletes_that_cannot_be_read_are_refused(change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(NotProvedError):
        deletes_of(change(deletes(("a", wrapper("Long", 5)))))


@given(st.data())
@settings(max_examples=150)
def test_changed_bytes_of_deletes_give_other_deletes_or_are_refused(data: st.DataObject) -> None:
    broken = bytearray(deletes(("a", wrapper("Long", 5)), ("b", wrapper("String", "x"))))
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    try:
        keys, values = deletes_of(bytes(broken))
    except NotProvedError:
        return
    assert len(keys) == len(values)
    assert all(isinstance(key, str) for key in keys)
