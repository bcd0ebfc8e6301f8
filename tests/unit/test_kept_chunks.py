"""Tests compactions that copy the chunks of unchanged columns: the rows are the same as after a compaction that
writes all columns."""

from __future__ import annotations

import math
import random
import struct
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.dataplane import gzip_pages, kept_chunks, parquet_layout
from jobs.dataplane.bloom_filter import FilterKind
from jobs.dataplane.column_chunks import RawFile
from jobs.dataplane.compacted_file import Compaction, compact_slice
from jobs.dataplane.merge_rules import SliceFiles
from jobs.dataplane.not_copyable import NotCopyableError
from jobs.storage.paths import of_hadoop
from tests.unit.test_slice_merge import AVRO, META, RULES, T0, T1, T3, TEXT, Row, data, deleted, row

if TYPE_CHECKING:
    from pathlib import Path

    from jobs.dataplane.compacted_file import CompactedFile

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
INNER = {
    "type": "record",
    "name": "inner",
    "fields": [{"name": "a", "type": ["null", "long"]}, {"name": "b", "type": TEXT}],
}
MORE = {
    "fare": ["null", "double"],
    "ratio": "float",
    "is_paid": ["null", "boolean"],
    "blob": ["null", "bytes"],
    "price": ["null", DECIMAL],
    "at": ["null", {"type": "long", "logicalType": "timestamp-micros"}],
    "number": "int",
    "place": ["null", INNER],
    "scores": ["null", {"type": "map", "values": "double"}],
}
WIDE = {**AVRO, "fields": [*AVRO["fields"], *({"name": name, "type": kind} for name, kind in MORE.items())]}  # type: ignore[misc]
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in META),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("city", pa.string()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("fare", pa.float64()),
        pa.field("ratio", pa.float32(), nullable=False),
        pa.field("is_paid", pa.bool_()),
        pa.field("blob", pa.binary()),
        pa.field("price", pa.decimal128(12, 2)),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("number", pa.int32(), nullable=False),
        pa.field("place", pa.struct([("a", pa.int64()), ("b", pa.string())])),
        pa.field("scores", pa.map_(pa.string(), pa.float64())),
    ]
)
BASE, LOG = f"p/00000000_0-0-0_{T0}.parquet", f"p/.00000000_{T1}.log.1_0-0-0"


def wide_row(key: int, ts: int, instant: str, chance: random.Random) -> Row:
    fare = chance.choice([0.0, -0.0, math.nan, 2.5, None])
    more: Row = {
        "fare": fare,
        "ratio": struct.unpack("<f", struct.pack("<f", chance.choice([0.0, -0.0, 0.1])))[0],
        "is_paid": chance.choice([True, False, None]),
        "blob": chance.choice([None, b"", b"x" * chance.randrange(300)]),
        "price": chance.choice([None, Decimal("1.25"), Decimal("-3.10")]),
        "at": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=chance.randrange(9)),
        "number": chance.randrange(3),
        "place": chance.choice([None, {"a": None, "b": "x"}, {"a": 1, "b": None}]),
        "scores": chance.choice([None, {}, {"p": 0.0}, {"p": -0.0}]),
    }
    return row(key, ts, instant, **more)


def make(folder: Path, schema: pa.Schema, rows: list[Row], log: bytes, **options: Any) -> Compaction:
    (folder / "p").mkdir()
    table = pa.Table.from_pylist(
        [
            {**each, "scores": list((each.get("scores") or {}).items())}
            | ({"scores": None} if each.get("scores") is None else {})
            for each in rows
        ],
        schema,
    )
    pq.write_table(table, folder / BASE, **options)
    (folder / LOG).write_bytes(log)
    with pq.ParquetFile(folder / BASE) as reader:
        layout = replace(parquet_layout.of_file(reader), keys=FilterKind.default(), dictionary=None)
    return Compaction(of_hadoop(str(folder), {}), T3, RULES, layout, None)


def compacted(work: Compaction, folder: Path, copies_from: int) -> tuple[CompactedFile, Path]:
    files = SliceFiles("p", "00000000", BASE, (LOG,))
    file = compact_slice(replace(work, copies_from=copies_from), files, f"0-0-{min(copies_from, 1)}")
    return file, folder / "p" / file.file_name


def require_same_rows(copied: Path, written: Path) -> None:
    found, expected = (pq.read_table(path, partitioning=None).drop_columns([META[-1]]) for path in (copied, written))
    assert repr(found.to_pylist()) == repr(expected.to_pylist())  # -0.0 and NaN as well
    assert pq.read_metadata(copied).metadata == pq.read_metadata(written).metadata
    names = pq.read_table(copied, columns=[META[-1]], partitioning=None)[META[-1]].unique().to_pylist()
    assert names == [copied.name]


@pytest.mark.parametrize("seed", range(8))
def test_rows_are_those_of_a_compaction_that_writes_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    codec = ["none", "snappy", "gzip", "zstd"][seed % 4]
    if codec == "gzip" and seed > 4:
        monkeypatch.setattr(gzip_pages, "IS_AVAILABLE", False)
    rows = [wide_row(key, 5, T0, chance) for key in range(400)]
    names = chance.sample(list(MORE), 3)
    newer = [
        {
            **each,
            META[0]: T1,
            "ts": chance.choice([4, 5, 6]),
            **(
                {}
                if chance.random() < 0.5
                else {name: value for name, value in wide_row(0, 0, T1, chance).items() if name in names}
            ),
        }
        for each in chance.sample(rows, chance.choice([1, 30, 200]))
    ]
    inserts = [wide_row(key, 5, T1, chance) for key in range(900, 900 + chance.choice([0, 3]))]
    log = data(T1, [*newer, *inserts], avro=WIDE)
    options = {
        "row_group_size": chance.choice([77, 400]),
        "compression": codec,
        "use_dictionary": chance.choice([True, False, ["city"]]),
        "data_page_size": chance.choice([64, 1 << 20]),
        "write_batch_size": 10,
        "data_page_version": chance.choice(["1.0", "2.0"]),
        "write_page_index": chance.choice([True, False]),
        "write_page_checksum": chance.choice([True, False]),
    }
    work = make(tmp_path, SCHEMA, rows, log, **options)
    told: list[str] = []
    original = kept_chunks.copied

    def copy_and_record(*arguments: Any, **more: Any) -> int:
        size = original(*arguments, **more)
        told.append("copied")
        return size

    monkeypatch.setattr(kept_chunks, "copied", copy_and_record)
    copied, file = compacted(work, tmp_path, 0)
    assert told == ["copied"]
    written, other = compacted(work, tmp_path, 1 << 60)
    assert told == ["copied"]
    assert copied.counts == written.counts
    require_same_rows(file, other)
    assert copied.bytes == file.stat().st_size
    # Other readers find the same rows, also by the statistics and indexes of pages.
    mine, theirs = (polars.read_parquet(path, hive_partitioning=False).drop(META[-1]) for path in (file, other))
    assert repr(mine.to_dicts()) == repr(theirs.to_dicts())
    for key in ("k0", "k399", "k900", newer[0][META[2]]):
        query = f"select count(*), min(ts), min(city), min(number) from read_parquet(?) where {META[2]} = '{key}'"
        assert duckdb.execute(query, [str(file)]).fetchall() == duckdb.execute(query, [str(other)]).fetchall()


def chunks_of(path: Path) -> dict[bytes, bytes]:
    with pa.OSFile(str(path)) as source:
        raw = RawFile(source)
        return {chunk.path[0]: raw.content(chunk.start, chunk.length) for chunk in raw.groups[0].chunks}


def test_only_columns_with_changes_are_written_again(tmp_path: Path) -> None:
    chance = random.Random(1)
    rows = [wide_row(key, 5, T0, chance) for key in range(300)]
    log = data(T1, [{**rows[7], META[0]: T1, META[1]: "s", "ts": 6, "fare": -7.5}], avro=WIDE)
    work = make(tmp_path, SCHEMA, rows, log, compression="zstd")
    _, file = compacted(work, tmp_path, 0)
    before, after = chunks_of(tmp_path / BASE), chunks_of(file)
    # Floating-point numbers within others are not compared.
    changed = {META[0], META[1], META[4], "ts", "fare", "scores"}
    assert {name.decode() for name in after if after[name] != before[name]} == changed


def test_minus_zero_is_another_value(tmp_path: Path) -> None:
    rows = [wide_row(key, 5, T0, random.Random(key)) | {"fare": 0.0} for key in range(300)]
    work = make(tmp_path, SCHEMA, rows, data(T1, [{**rows[7], "ts": 6, "fare": -0.0}], avro=WIDE))
    _, file = compacted(work, tmp_path, 0)
    assert math.copysign(1, pq.read_table(file, partitioning=None)["fare"][7].as_py()) == -1


@pytest.mark.parametrize(
    ("reason", "options"),
    [("another codec", {"compression": {"city": "snappy", "ts": "zstd"}}), ("small row groups", {"row_group_size": 3})],
)
def test_files_that_cannot_be_copied_are_written(tmp_path: Path, reason: str, options: dict[str, Any]) -> None:
    rows = [wide_row(key, 5, T0, random.Random(key)) for key in range(90)]
    work = make(tmp_path, SCHEMA, rows, data(T1, [{**rows[7], "ts": 6}], avro=WIDE), **options)
    least = 0 if reason == "another codec" else 1000
    _, file = compacted(work, tmp_path, least)
    assert pq.read_table(file, partitioning=None)["ts"].to_pylist()[6:9] == [5, 6, 5]


@pytest.mark.parametrize("what", ["a column", "its changes"])
def test_a_file_that_turns_out_not_to_be_copyable_halfway_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    rows = [wide_row(key, 5, T0, random.Random(key)) for key in range(300)]
    work = make(
        tmp_path,
        SCHEMA,
        rows,
        data(T1, [{**rows[290], "ts": 6}, wide_row(800, 1, T1, random.Random(1))], avro=WIDE),
        row_group_size=100,
    )
    expected, other = compacted(work, tmp_path, 1 << 60)
    original = kept_chunks._column

    def too_large(reader: Any, number: int, *others: Any) -> Any:
        if number == 2:
            raise NotCopyableError("a large column")
        return original(reader, number, *others)

    if what == "a column":
        monkeypatch.setattr(kept_chunks, "_column", too_large)
    else:
        monkeypatch.setattr(kept_chunks, "_MOST_HELD", 0)
    found, file = compacted(work, tmp_path, 0)
    assert found.counts == expected.counts
    require_same_rows(file, other)


def test_a_slice_with_deletes_is_written(tmp_path: Path) -> None:
    rows = [wide_row(key, 5, T0, random.Random(key)) for key in range(90)]
    work = make(tmp_path, SCHEMA, rows, deleted(T1, 7))
    found, file = compacted(work, tmp_path, 0)
    assert (found.counts.deletes, pq.read_metadata(file).num_rows) == (1, 89)
