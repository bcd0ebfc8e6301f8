"""Tests joins of base files: the rows, footers and indexes of the new file, and which files are copied."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.dataplane import bloom_filter, column_chunks, joined_files, parquet_layout
from jobs.dataplane.bloom_filter import BloomFilter, FilterKind
from jobs.dataplane.column_chunks import Chunk, CopyWriter, RawFile
from jobs.dataplane.compacted_file import Compaction
from jobs.dataplane.joined_files import JoinedFile, join
from jobs.dataplane.key_footer import KeyFooter
from jobs.dataplane.merge_rules import SliceFiles
from jobs.errors import NotProvedError, RefusedError
from jobs.format.compact_thrift import I64, Field, read_struct, write_struct
from jobs.storage.paths import Output, of_hadoop
from jobs.table_errors import DamagedFileError
from tests.unit.test_slice_merge import META, RULES, T3

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from jobs.format.compact_thrift import Struct

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in META),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("city", pa.string()),
        pa.field("place", pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])),
        pa.field("number", pa.int64()),
    ]
)
KIND = FilterKind("DYNAMIC_V0", bits=4314, hashes=30, keys_per_row=100, most_rows=1000)
KEY, PATH, NAME = META[2], META[3], META[4]


def rows(first: int, last: int) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                **dict.fromkeys(META, "x"),
                KEY: f"k{number:04}",
                PATH: "p",
                "ts": number,
                "city": None if number % 3 else f"city {number % 7}",
                "place": None if number % 5 == 0 else {"a": number, "b": ["x"] * (number % 3)},
                "number": number,
            }
            for number in range(first, last)
        ],
        SCHEMA,
    )


def write(
    folder: Path, name: str, table: pa.Table, *, footer: bool = True, kind: FilterKind = KIND, **options: Any
) -> SliceFiles:
    (folder / "p").mkdir(exist_ok=True)
    path = folder / "p" / f"{name}-0_0-0-0_{T3}.parquet"
    options = {"compression": "gzip", "store_schema": False, "write_page_index": True, **options}
    with pq.ParquetWriter(path, table.schema, **options) as writer:
        writer.write_table(table, row_group_size=max(1, table.num_rows // 2))
        if footer:
            keys = KeyFooter(kind)
            keys.add(table[KEY].combine_chunks())
            writer.add_key_value_metadata({**keys.entries(), **(table.schema.metadata or {})})
    return SliceFiles("p", f"{name}-0", f"p/{path.name}", (), path.stat().st_size)


def work(folder: Path, like: SliceFiles, copies_from: int = 0) -> Compaction:
    with pq.ParquetFile(folder / (like.base or "")) as reader:
        layout = replace(parquet_layout.of_file(reader), schema=SCHEMA, keys=FilterKind.default(), dictionary=None)
    return Compaction(of_hadoop(str(folder), {}), T3, RULES, layout, None, copies_from)


def require_rows(folder: Path, made: JoinedFile, expected: pa.Table) -> pq.FileMetaData:
    """Proves the rows by three readers, the indexes of keys, and that no other file remains."""
    path = folder / "p" / made.written.file_name
    found = pq.read_table(path, partitioning=None)
    plain = expected.drop_columns([NAME]).sort_by("ts")
    assert found.drop_columns([NAME]).sort_by("ts").equals(plain)
    assert found[NAME].unique().to_pylist() == [path.name]
    assert polars.read_parquet(path).height == expected.num_rows == made.written.rows
    query = f"select count(*), min({KEY}), max({KEY}) from '{path}' where {NAME} >= '' and ts >= 0"
    metadata = pq.read_metadata(path)
    entries = metadata.metadata or {}
    least, most = (entries[name].decode() for name in (b"hoodie_min_record_key", b"hoodie_max_record_key"))
    assert duckdb.sql(query).limit(1).fetchall()[0] == (expected.num_rows, least, most)
    found_filter = BloomFilter.stored(entries[b"org.apache.hudi.bloomfilter"], "DYNAMIC_V0")
    assert found_filter.has(expected[KEY].combine_chunks()).all()
    assert not found_filter.has(pa.array([f"absent {number}" for number in range(50)])).any()
    assert (folder / ".hoodie" / ".temp" / T3 / "p" / f"{path.name}.marker.CREATE").exists()
    assert len(list((folder / "p").glob(f"*_0-1-0_{T3}.parquet"))) == 1
    return metadata


@pytest.mark.parametrize("codec", ["gzip", "snappy", "zstd", "none"])
@pytest.mark.parametrize(
    "options", [{}, {"write_page_checksum": True}, {"use_dictionary": False, "write_page_index": False}]
)
def test_files_of_the_same_layout_are_copied(tmp_path: Path, codec: str, options: dict[str, Any]) -> None:
    tables = [rows(0, 300), rows(300, 350), rows(350, 351)]
    slices = tuple(
        write(tmp_path, f"f{number}", each, compression=codec, **options) for number, each in enumerate(tables)
    )
    made = join(work(tmp_path, slices[0]), slices, "0-1-0")
    metadata = require_rows(tmp_path, made, pa.concat_tables(tables))
    assert (made.copied, made.decoded, made.rows_before) == (slices, (), 351)
    assert (made.written.copied, metadata.num_row_groups) == (True, 5)
    assert metadata.row_group(0).column(4).compression == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())
    # The new file can be copied again.
    path = f"p/{made.written.file_name}"
    again = join(work(tmp_path, slices[0]), (SliceFiles("p", "f", path, (), 1),), "0-2-0")
    assert (again.written.copied, again.written.rows) == (True, 351)


@pytest.mark.parametrize(
    "other",
    [
        {"compression": "snappy"},
        {"created_by": "old"},
        {"schema": SCHEMA.remove(SCHEMA.get_field_index("city"))},
        {"schema": SCHEMA.set(SCHEMA.get_field_index("number"), pa.field("number", pa.int32()))},
        {"footer": False},
    ],
)
def test_a_file_that_differs_is_decoded(tmp_path: Path, other: dict[str, Any]) -> None:
    table = rows(300, 340)
    if schema := other.pop("schema", None):
        table = table.select(schema.names).cast(schema)
    slices = (
        write(tmp_path, "a", rows(0, 300)),
        write(tmp_path, "b", table, **{name: value for name, value in other.items() if name != "created_by"}),
    )
    if "created_by" in other:
        content = (tmp_path / (slices[1].base or "")).read_bytes()
        (tmp_path / (slices[1].base or "")).write_bytes(content.replace(b"parquet-cpp-arrow", b"parquet-old-thing"))
    made = join(work(tmp_path, slices[0]), slices, "0-1-0")
    for name in set(SCHEMA.names) - set(table.column_names):
        table = table.append_column(name, pa.nulls(table.num_rows, SCHEMA.field(name).type))
    require_rows(tmp_path, made, pa.concat_tables([rows(0, 300), table.select(SCHEMA.names).cast(SCHEMA)]))
    # Without a filter in the footer only the keys are read.
    expected = (slices, ()) if "footer" in other else (slices[:1], slices[1:])
    assert (made.copied, made.decoded) == expected


def test_a_filter_that_cannot_grow_is_replaced_by_one_that_can(tmp_path: Path) -> None:
    small = FilterKind("SIMPLE", bits=100, hashes=3)
    slices = tuple(write(tmp_path, f"f{first}", rows(first, first + 100), kind=small) for first in (0, 100))
    made = join(work(tmp_path, slices[0]), slices, "0-1-0")
    require_rows(tmp_path, made, rows(0, 200))
    assert made.copied == slices


def test_small_row_groups_are_decoded_to_large_ones(tmp_path: Path) -> None:
    slices = tuple(write(tmp_path, f"f{number}", rows(number * 20, number * 20 + 20)) for number in range(6))
    made = join(work(tmp_path, slices[0], 1 << 20), slices, "0-1-0")
    metadata = require_rows(tmp_path, made, rows(0, 120))
    assert (made.decoded, metadata.num_row_groups) == (slices, 1)


def test_a_file_never_gets_more_column_chunks_than_can_be_copied_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined_files, "_MOST_CHUNKS", 60)
    slices = tuple(write(tmp_path, f"f{number}", rows(number * 20, number * 20 + 20)) for number in range(6))
    made = join(work(tmp_path, slices[0]), slices, "0-1-0")
    metadata = require_rows(tmp_path, made, rows(0, 120))
    assert (len(made.copied), metadata.num_row_groups) == (3, 7)


def test_files_without_rows_are_joined_to_one_file(tmp_path: Path) -> None:
    slices = tuple(write(tmp_path, name, rows(0, 0), footer=False) for name in "ab")
    made = join(work(tmp_path, slices[0]), slices, "0-1-0")
    assert pq.read_table(tmp_path / "p" / made.written.file_name, partitioning=None).num_rows == 0


def test_pages_that_are_other_than_the_footer_says_are_left_to_hudi(tmp_path: Path) -> None:
    slices = (write(tmp_path, "a", rows(0, 300)), write(tmp_path, "b", rows(300, 400)))
    path = tmp_path / (slices[1].base or "")
    place = pq.read_metadata(path).row_group(0).column(5).data_page_offset
    content = bytearray(path.read_bytes())
    content[place : place + 40] = b"\xff" * 40
    path.write_bytes(content)
    made = work(tmp_path, slices[0])
    if pq.read_metadata(path).row_group(0).column(5).has_offset_index:
        # A page that is found by an index is copied without being read, so the damage stays.
        join(made, slices, "0-1-0")
    with pytest.raises((NotProvedError, OSError, pa.ArrowException)):
        join(replace(made, copies_from=1 << 20), slices, "0-2-0")
    assert not list((tmp_path / "p").glob("*_0-2-0_*"))


def test_a_copy_of_a_wrong_row_group_is_detected_by_its_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slices = tuple(write(tmp_path, f"f{first}", rows(first, first + 100)) for first in (0, 100))
    copied = CopyWriter._copied

    def of_the_first_group(self: CopyWriter, source: RawFile, chunk: Chunk) -> Struct:
        same = next(each for each in source.groups[0].chunks if each.path == chunk.path)
        return copied(self, source, same)

    monkeypatch.setattr(CopyWriter, "_copied", of_the_first_group)
    with pytest.raises(NotProvedError, match="other rows"):
        join(work(tmp_path, slices[0]), slices, "0-1-0")
    assert not list((tmp_path / "p").glob("*_0-1-0_*"))


def test_a_new_file_that_the_storage_cuts_off_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slices = (write(tmp_path, "a", rows(0, 100)), write(tmp_path, "b", rows(100, 200)))
    closed = Output.close

    def cut_off(self: Output) -> int:
        size = closed(self)
        os.truncate(self._path, size // 2)
        return size

    monkeypatch.setattr(Output, "close", cut_off)
    with pytest.raises(DamagedFileError):
        join(work(tmp_path, slices[0]), slices, "0-1-0")
    assert not list((tmp_path / "p").glob("*_0-1-0_*"))


def _drop_group(footer: Struct) -> None:
    footer[column_chunks.ROW_GROUPS].value.values.pop()


def _lose_rows(footer: Struct) -> None:
    """Makes the first row group shorter, and the whole file."""
    first = footer[column_chunks.ROW_GROUPS].value.values[0]
    first[3] = Field(I64, 20)
    footer[column_chunks.NUM_ROWS] = Field(I64, 70)


def _lose_column(footer: Struct) -> None:
    footer[column_chunks.ROW_GROUPS].value.values[1][1].value.values.pop(3)


@pytest.mark.parametrize("change", [_drop_group, _lose_rows, _lose_column])
def test_a_footer_that_contradicts_itself_is_left_to_hudi(tmp_path: Path, change: Callable[[Struct], None]) -> None:
    slices = (write(tmp_path, "a", rows(0, 300)), write(tmp_path, "b", rows(300, 400)))
    path = tmp_path / (slices[1].base or "")
    content = path.read_bytes()
    begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer, _ = read_struct(content[begin:-8])
    change(footer)
    changed = write_struct(footer)
    path.write_bytes(content[:begin] + changed + len(changed).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(NotProvedError, match="a base file has"):
        join(work(tmp_path, slices[0]), slices, "0-1-0")
    assert not list((tmp_path / "p").glob("*_0-1-0_*"))


@pytest.mark.parametrize("copies_from", [0, 1 << 20])
@pytest.mark.parametrize(("day", "kind"), [("1582-10-14", pa.date32()), ("1899-12-31T00Z", pa.timestamp("us", "UTC"))])
def test_old_dates_of_an_unknown_calendar_are_left_to_hudi(
    tmp_path: Path, day: str, kind: pa.DataType, copies_from: int
) -> None:
    def written(name: str, day: str, first: int, version: bytes | None = None) -> SliceFiles:
        table = rows(first, first + 20).append_column(pa.field("day", kind), pa.array([day] * 20).cast(kind))
        entries = {"org.apache.spark.version": version} if version else None
        return write(tmp_path, name, table.replace_schema_metadata(entries))

    known, today = written("known", day, 0, b"3.5.9"), day.replace(day[:10], "1970-01-01")
    settings = work(tmp_path, known, copies_from)
    like = SCHEMA.append(pa.field("day", kind)).with_metadata({"org.apache.spark.version": "3.5.9"})
    settings = replace(settings, layout=replace(settings.layout, schema=like))
    made = join(settings, (known, written("today", today, 20)), "0-1-0")
    assert (len(made.copied), made.written.rows) == (0 if copies_from else 2, 40)
    with pytest.raises(NotProvedError, match="calendar"):
        join(settings, (known, written("unknown", day, 40)), "0-2-0")
    assert not list((tmp_path / "p").glob("*_0-2-0_*"))


@pytest.mark.parametrize("is_plain", [True, False])
def test_encrypted_files_are_refused(tmp_path: Path, *, is_plain: bool) -> None:
    slices = (write(tmp_path, "a", rows(0, 30)), write(tmp_path, "b", rows(30, 60)))
    path = tmp_path / (slices[1].base or "")
    content = path.read_bytes()
    if is_plain:
        # The footer gets an encryption algorithm as its last field (8), which is a struct without fields.
        length = int.from_bytes(content[-8:-4], "little")
        footer = content[-8 - length : -8]
        footer = footer[:-1] + bytes([(8 - 7) << 4 | 12, 0, 0])
        content = content[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    else:
        content = content[:-4] + b"PARE"
    path.write_bytes(content)
    with pytest.raises(RefusedError) as refused:
        join(work(tmp_path, slices[0]), slices, "0-1-0")
    assert [each.type for each in refused.value.reasons] == ["encrypted-base-files"]
    assert not list((tmp_path / "p").glob("*_0-1-0_*"))


def test_merged_filters_hold_all_keys_and_are_not_larger_than_hudis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bloom_filter, "_DEFAULT_MOST_KEYS", 400)
    kind = replace(KIND, most_rows=4)
    keys = KeyFooter(kind)
    for first in range(0, 900, 60):
        part = KeyFooter(kind)
        part.add(pa.array([f"k{number}" for number in range(first, first + 60)]))
        assert keys.take(part.entries(), 60)
    keys.add(pa.array(["last"]))
    merged = BloomFilter.of(keys.entries()[b"org.apache.hudi.bloomfilter"], kind)
    assert merged.has(pa.array([*(f"k{number}" for number in range(900)), "last"])).all()
    assert len(merged._rows) == 4


def test_a_footer_whose_key_range_may_have_another_order_is_not_used() -> None:
    for last in ("\U0001f600", "\uff5e"):
        part = KeyFooter(KIND)
        part.add(pa.array([last, "b"] if last > "\uffff" else [last]))
        assert not KeyFooter(KIND).take(part.entries(), 2 if last > "\uffff" else 1)
    part = KeyFooter(KIND)
    part.add(pa.array(["a", "b"]))
    assert not KeyFooter(KIND).take(part.entries(), 3)  # The filter lacks a key.
    assert not KeyFooter(replace(KIND, keys_per_row=50)).take(part.entries(), 2)
