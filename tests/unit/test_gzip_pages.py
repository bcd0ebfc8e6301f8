"""A file whose pages ISA-L has compressed equals pyarrow's uncompressed file, except for sizes and positions."""

from __future__ import annotations

import gzip
import io
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.dataplane import gzip_pages, parquet_layout
from jobs.dataplane.column_chunks import COLUMN_INDEX, OFFSET_INDEX, Chunk, RawFile
from jobs.dataplane.gzip_pages import BrokenPagesError, GzipPages
from jobs.dataplane.logical_types import NO_ANNOTATIONS
from jobs.dataplane.parquet_writer import ParquetWriter
from jobs.format.compact_thrift import Struct, read_struct, write_struct
from jobs.format.gzip_level import LEVEL_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 700
COLUMNS: dict[str, Callable[[int], Any]] = {
    "number": lambda row: row,
    "city": lambda row: None if row % 11 == 0 else f"city {row % 7}",
    "key": lambda row: f"key {row * 7919}",
    "none": lambda row: None,
    "flag": lambda row: row % 3 == 0,
    "fixed": lambda row: b"%08d" % row,
    "tags": lambda row: [f"t{each}" for each in range(row % 4)] or None,
    "more": lambda row: {"a": row, "b": [{"c": float(row % 5)}] * (row % 3)},
    "map": lambda row: [(f"k{row % 5}", row)] if row % 2 else None,
    "wide": lambda row: b"%d" % row * 300,
}
TYPES = {
    "number": pa.int64(), "city": pa.string(), "key": pa.string(), "none": pa.string(), "flag": pa.bool_(),
    "fixed": pa.binary(8), "tags": pa.list_(pa.string()), "map": pa.map_(pa.string(), pa.int64()), "wide": pa.binary(),
    "more": pa.struct({"a": pa.int64(), "b": pa.list_(pa.struct({"c": pa.float64()}))}),
}  # fmt: skip


def rows(names: list[str], count: int = COUNT) -> pa.Table:
    return pa.table({name: pa.array([COLUMNS[name](row) for row in range(count)], TYPES[name]) for name in names})


ALL = rows(list(COLUMNS))


def written(table: pa.Table, rows_of_group: int | None = None, **options: Any) -> bytes:
    out = io.BytesIO()
    with ParquetWriter(out, table.schema, NO_ANNOTATIONS, **options) as writer:
        writer.write_table(table, row_group_size=rows_of_group)
        writer.add_key_value_metadata({"hoodie_min_record_key": "k0"})
    return out.getvalue()


def parts(plain: bytes) -> tuple[bytes, bytes]:
    """Returns the pages, with the magic bytes before them, and the end of a file."""
    last = RawFile(pa.BufferReader(plain)).groups[-1].chunks[-1]
    return plain[: last.start + last.length], plain[last.start + last.length :]


def compressed(pages: bytes, end: bytes, step: int = 1 << 30) -> bytes:
    """Compresses the pages, which it gets in pieces of this number of bytes."""
    out = io.BytesIO()
    sink = GzipPages(out)
    for at in range(0, len(pages), step):
        sink.write(pages[at : at + step])
    out.write(sink.end(end))
    return out.getvalue()


class Page(NamedTuple):
    at: int
    header: Struct
    header_bytes: int
    body: bytes

    @property
    def plain(self) -> bytes:
        """Returns the page decompressed by zlib, except for the levels before the values."""
        if 8 not in self.header:
            return gzip.decompress(self.body)
        of_kind = self.header[8].value
        levels = of_kind[5].value + of_kind[6].value
        values = self.body[levels:]
        return self.body[:levels] + (gzip.decompress(values) if of_kind[7].value else values)


def pages(raw: RawFile, chunk: Chunk) -> list[Page]:
    data = raw.content(chunk.start, chunk.length) if chunk.length else b""
    found, at = [], 0
    while at < len(data):
        header, begin = read_struct(data, at)
        end = begin + header[3].value
        found.append(Page(chunk.start + at, header, begin - at, data[begin:end]))
        at = end
    assert at == len(data)
    return found


def require_same_but_compressed(content: bytes, plain: bytes) -> None:
    """Compares each page, each number in the footer and each index with the uncompressed file."""
    new, old = RawFile(pa.BufferReader(content)), RawFile(pa.BufferReader(plain))
    assert {**new.footer, 4: None} == {**old.footer, 4: None}
    for group, before in zip(new.groups, old.groups, strict=True):
        assert {**group.struct, **dict.fromkeys((1, 2, 5, 6))} == {**before.struct, **dict.fromkeys((1, 2, 5, 6))}
        assert group.struct[5].value == group.chunks[0].start
        assert group.struct[6].value == sum(chunk.length for chunk in group.chunks)
        assert group.struct[2].value == group.uncompressed_bytes
        for chunk, was in zip(group.chunks, before.chunks, strict=True):
            require_same_chunk(new, chunk, old, was)


def require_same_chunk(new: RawFile, chunk: Chunk, old: RawFile, was: Chunk) -> None:
    positions = dict.fromkeys((4, 6, 7, 9, 11, 14))
    assert {**chunk.meta, **positions} == {**was.meta, **positions}
    assert chunk.codec == 2
    found, expected = pages(new, chunk), pages(old, was)
    for page, raw in zip(found, expected, strict=True):
        assert page.plain == raw.body
        assert page.header[2].value == len(raw.body)
        assert {**page.header, 3: None, 4: None, 8: None} == {**raw.header, 3: None, 4: None, 8: None}
        if 4 in raw.header:
            assert page.header[4].value & 0xFFFFFFFF == zlib.crc32(page.body)
    assert chunk.number(6) == sum(page.header_bytes + page.header[2].value for page in found)
    moved = {raw.at: page for page, raw in zip(found, expected, strict=True)}
    for number in (9, 11):
        assert chunk.number(number) == (moved[was.number(number)].at if was.number(number) else 0)
    for which in (COLUMN_INDEX, OFFSET_INDEX):
        assert (chunk.index(which) is None) == (was.index(which) is None)
    if (place := chunk.index(COLUMN_INDEX)) and (before := was.index(COLUMN_INDEX)):
        assert new.content(*place) == old.content(*before)
    if (place := chunk.index(OFFSET_INDEX)) and (before := was.index(OFFSET_INDEX)):
        index, last = read_struct(new.content(*place))[0], read_struct(old.content(*before))[0]
        for location, raw_location in zip(index[1].value.values, last[1].value.values, strict=True):
            page = moved[raw_location[1].value]
            size = page.header_bytes + len(page.body)
            assert (location[1].value, location[2].value) == (page.at, size)
            assert location[3] == raw_location[3]
        assert {**index, 1: None} == {**last, 1: None}
    if (place := chunk.index((14, 15))) and (before := was.index((14, 15))):
        assert new.content(*place) == old.content(*before)


@settings(max_examples=60)
@given(st.data())
def test_every_page_and_number_is_that_of_the_uncompressed_file(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=4, unique=True), "columns")
    table = ALL.select(names).slice(0, data.draw(st.integers(0, COUNT), "rows"))
    options = {
        "data_page_version": data.draw(st.sampled_from(["1.0", "2.0"]), "version"),
        "data_page_size": data.draw(st.sampled_from([64, 1000, 1024 * 1024]), "page size"),
        "write_batch_size": data.draw(st.sampled_from([1, 30, 1024]), "batch"),
        "use_dictionary": data.draw(st.booleans(), "dictionary"),
        "dictionary_pagesize_limit": data.draw(st.sampled_from([100, 1024 * 1024]), "limit"),
        "write_page_index": data.draw(st.booleans(), "index"),
        "write_page_checksum": data.draw(st.booleans(), "checksum"),
        "write_statistics": data.draw(st.booleans(), "statistics"),
        "store_schema": data.draw(st.booleans(), "Arrow's schema"),
    }
    rows_of_group = data.draw(st.sampled_from([1, 100, None]) if len(table) < 50 else st.sampled_from([100, None]))
    content = written(table, rows_of_group, compression="gzip", **options)

    checks = options["write_page_checksum"]
    assert pq.ParquetFile(io.BytesIO(content), page_checksum_verification=checks).read().equals(table)
    require_same_but_compressed(content, written(table, rows_of_group, compression="none", **options))


def test_bloom_filters_of_columns_stay() -> None:
    options: dict[str, Any] = {
        "write_page_index": True,
        "bloom_filter_options": {"key": {"ndv": 100, "fpp": 0.01}, "number": {"ndv": 100, "fpp": 0.01}},
    }
    content = written(ALL, 100, compression="gzip", **options)
    assert pq.ParquetFile(io.BytesIO(content)).metadata.row_group(1).column(2).bloom_filter_length
    require_same_but_compressed(content, written(ALL, 100, compression="none", **options))


def test_a_filter_finds_rows_by_the_indexes_of_pages() -> None:
    content = written(ALL, 300, compression="gzip", write_page_index=True, data_page_size=256, write_batch_size=16)
    for number in (0, 299, 300, 650):
        assert pq.read_table(io.BytesIO(content), filters=pc.field("number") == number).equals(ALL.slice(number, 1))


def test_the_compressed_file_does_not_depend_on_the_size_of_the_pieces() -> None:
    table = ALL.select(["number", "more"])
    plain = written(table, 100, compression="none", write_page_index=True)
    for step in (1, 3, 1000, 1 << 30):
        found = compressed(*parts(plain), step)
        assert found == written(table, 100, compression="gzip", write_page_index=True), step


def test_pages_leave_one_by_one_and_only_the_end_is_held() -> None:
    table = pa.table({"wide": [bytes([row % 251]) * 1000 + b"%d" % row for row in range(20_000)]})
    out = io.BytesIO()
    sizes = []

    class Stream(io.RawIOBase):
        def write(self, data: Any) -> int:
            sizes.append(len(data))
            return out.write(data)

    writer = ParquetWriter(Stream(), table.schema, NO_ANNOTATIONS, compression="gzip", use_dictionary=False)
    writer.write_table(table, row_group_size=len(table))
    before = len(sizes)
    assert before > 20
    assert max(sizes) < 1024 * 1024
    writer.close()
    assert sizes[before:] == sizes[-1:]
    assert pq.read_table(out).equals(table)


# -- What is refused


def footer_at(end: bytes | bytearray) -> int:
    return len(end) - 8 - int.from_bytes(end[-8:-4], "little")


def with_header(**fields: int) -> Callable[[bytearray, bytearray], None]:
    numbers = {"type": 1, "uncompressed": 2, "size": 3}

    def change(pages: bytearray, end: bytearray) -> None:
        header, behind = read_struct(bytes(pages), 4)
        for name, value in fields.items():
            header[numbers[name]] = header[numbers[name]]._replace(value=value)
        pages[4:behind] = write_struct(header)

    return change


def without_last_byte(pages: bytearray, end: bytearray) -> None:
    del pages[-1]


def no_header(pages: bytearray, end: bytearray) -> None:
    pages[4:20] = b"\xff" * 16


def no_magic(pages: bytearray, end: bytearray) -> None:
    pages[0] = 0


def encrypted(pages: bytearray, end: bytearray) -> None:
    end[-4:] = b"PARE"


def with_a_gap(pages: bytearray, end: bytearray) -> None:
    end[footer_at(end) : footer_at(end)] = b"12345"


def of_another_file(pages: bytearray, end: bytearray) -> None:
    other = written(ALL.select(["wide"]), compression="none")
    end[footer_at(end) :] = other[footer_at(other) :]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (with_header(type=1), "a page of type 1"),
        (with_header(size=-3), "-3 bytes"),
        (with_header(uncompressed=9), "9 before its compression"),
        (with_header(size=10**6, uncompressed=10**6), "the last page is not complete"),
        (without_last_byte, "the last page is not complete"),
        (no_header, "the header of a page"),
        (no_magic, "a file that begins with"),
        (encrypted, "PARE"),
        (with_a_gap, "5 bytes before the footer"),
        (of_another_file, "the footer"),
    ],
)
def test_content_that_is_no_file_of_uncompressed_pages_is_refused(change: Any, why: str) -> None:
    halves = parts(written(ALL.select(["number"]), compression="none", use_dictionary=False))
    pages, end = map(bytearray, halves)
    change(pages, end)
    assert (pages, end) != halves
    with pytest.raises(BrokenPagesError, match=why) as refused:
        compressed(bytes(pages), bytes(end))
    assert refused.value.problem().type == "rows-differ"


def test_compressed_pages_are_not_compressed_again() -> None:
    content = written(ALL, compression="snappy", data_page_version="1.0")
    with pytest.raises(BrokenPagesError, match="before its compression"):
        GzipPages(io.BytesIO()).write(content)


def test_a_stream_that_fails_fails_the_file_and_an_abandoned_one_says_nothing_more() -> None:
    class FullStream(io.RawIOBase):
        def write(self, data: Any) -> int:
            if len(data) > 100:
                raise OSError(28, "no space is left")
            return len(data)

    table = ALL.select(["wide"])
    for end in ("close", "abandon"):
        writer = ParquetWriter(FullStream(), table.schema, NO_ANNOTATIONS, compression="gzip", use_dictionary=False)
        with pytest.raises(OSError, match="no space is left"):
            writer.write_table(table)
        if end == "abandon":
            writer.abandon()
        else:
            with pytest.raises((OSError, BrokenPagesError)):
                writer.close()


# -- The codec of base files


def test_a_gzip_file_is_compressed_by_isa_l_and_by_pyarrow_where_that_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = ALL.select(["key"])
    source = io.BytesIO()
    pq.write_table(table, source, compression="gzip", use_dictionary=False)
    with pq.ParquetFile(source) as reader:
        layouts = {codec: parquet_layout.of_file(reader, codec) for codec in (None, "gzip", "zstd")}
    assert layouts[None] == layouts["gzip"]

    def file_with(codec: str | None) -> bytes:
        out = io.BytesIO()
        with layouts[codec].writer(out) as writer:
            writer.write_table(table)
        return out.getvalue()

    def by_pyarrow(codec: str, level: int) -> bytes:
        out = io.BytesIO()
        options = {**layouts[codec].options(), "compression_level": level}
        with pq.ParquetWriter(out, table.schema, **options) as writer:
            writer.write_table(table)
        return out.getvalue()

    assert gzip_pages.IS_AVAILABLE
    assert file_with("zstd") == by_pyarrow("zstd", parquet_layout.LEVELS["zstd"])
    assert file_with(None) == written_like(layouts["gzip"], table)
    assert len(file_with(None)) < 1.05 * len(by_pyarrow("gzip", 6))  # Hudi's level
    monkeypatch.setattr(gzip_pages, "IS_AVAILABLE", False)
    assert file_with(None) == by_pyarrow("gzip", 3)


def written_like(layout: parquet_layout.Layout, table: pa.Table) -> bytes:
    """Compresses pyarrow's uncompressed file."""
    plain = io.BytesIO()
    with replace(layout, codec="none").writer(plain) as writer:
        writer.write_table(table)
    return compressed(*parts(plain.getvalue()))


def test_the_level_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    table = ALL.select(["key"])

    def size() -> int:
        out = io.BytesIO()
        with ParquetWriter(out, table.schema, NO_ANNOTATIONS, compression="gzip", use_dictionary=False) as writer:
            writer.write_table(table)
        return len(out.getvalue())

    monkeypatch.delenv(LEVEL_VARIABLE, raising=False)
    usual = size()
    monkeypatch.setenv(LEVEL_VARIABLE, "0")
    assert size() > usual
    monkeypatch.setenv(LEVEL_VARIABLE, "9")
    with pytest.raises(ValueError, match="one of 0, 1, 2, 3, not '9'"):
        size()
