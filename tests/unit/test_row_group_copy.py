"""Row groups are copied as bytes exactly if the keys prove that all their rows go to one file; the rows stay the
same."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from jobs.dataplane import column_chunks, row_group_copy
from jobs.dataplane.column_chunks import CopyWriter, RawFile
from jobs.dataplane.key_digest import KeyDigest
from jobs.dataplane.not_copyable import NotCopyableError
from jobs.dataplane.rewrite import rewrite_base_file
from jobs.dataplane.row_group_copy import copied
from jobs.dataplane.split_writer import Rewrite, Source
from jobs.errors import RefusedError
from jobs.format.bucket_hash import bucket_ids
from jobs.storage.paths import of_hadoop

if TYPE_CHECKING:
    from pathlib import Path

KEY, NAME = "_hoodie_record_key", "_hoodie_file_name"
INSTANT = "20260101000000000"
KEYS = pa.array([f"k{number}" for number in range(6000)])


def keys_of(bucket: int, modulus: int) -> list[str]:
    return KEYS.filter(pa.array(bucket_ids(KEYS, ("id",), modulus) == bucket)).to_pylist()


def rows(keys: list[str]) -> pa.Table:
    """Rows of many types, in which the values depend on the key."""
    numbers = [int(key[1:]) for key in keys]
    return pa.table(
        {
            "_hoodie_commit_time": ["20250101000000000"] * len(keys),
            KEY: keys,
            NAME: ["old"] * len(keys),
            "id": keys,
            "city": pa.array([None if number % 11 == 0 else f"city {number % 7}" for number in numbers]),
            "price": pa.array([Decimal(number) / 100 for number in numbers], pa.decimal128(12, 2)),
            "tags": pa.array([[f"t{each}" for each in range(number % 4)] or None for number in numbers]),
            "more": pa.array([{"a": number, "b": [{"c": float(number)}]} for number in numbers]),
            "map": pa.array([[("x", number)] for number in numbers], pa.map_(pa.string(), pa.int64())),
            "flag": pa.array([number % 3 == 0 for number in numbers]),
        }
    )


def write(path: Path, tables: list[pa.Table], **options: Any) -> None:
    settings = {"compression": "zstd", "write_page_index": True, "data_page_size": 512, "write_batch_size": 64}
    with pq.ParquetWriter(path, tables[0].schema, **{**settings, **options}) as writer:
        for table in tables:
            writer.write_table(table, row_group_size=max(table.num_rows, 1))


def work(tmp_path: Path, **more: Any) -> Rewrite:
    return Rewrite(of_hadoop(str(tmp_path), {}), INSTANT, ("id",), **more)


def in_halves(path: Path) -> Source:
    """Returns a source of bucket 1 of 4 that is split into buckets of 8."""
    return Source("", path.stem[:38], 1, 8, (1, 5), str(path))


def try_copy(what: Rewrite, source: Source) -> list[Any] | None:
    with what.storage.open_file(source.base_file or "") as file:
        return copied(what, source, "0-0-0", file)


def without_name(table: pa.Table) -> pa.Table:
    return table.drop_columns([NAME])


@pytest.mark.parametrize("options", [
    {}, {"compression": "gzip"}, {"compression": "none"}, {"use_dictionary": False}, {"data_page_version": "2.0"},
    {"write_page_index": False}, {"version": "1.0"},
    {"use_dictionary": ["city"], "column_encoding": {"id": "DELTA_BYTE_ARRAY"}},
    {"bloom_filter_options": {"id": {"ndv": 100, "fpp": 0.01}}},
], ids=str)  # fmt: skip
def test_row_groups_of_one_bucket_each_are_copied_with_their_pages(tmp_path: Path, options: dict[str, Any]) -> None:
    stay, go = keys_of(1, 8), keys_of(5, 8)
    groups = [rows(stay[:300]), rows(go[:200]), rows(go[200:]), rows(stay[300:])]
    path = tmp_path / "00000001-in.parquet"
    write(path, groups, **options)

    found = try_copy(work(tmp_path), in_halves(path))

    assert found is not None
    expected = {1: pa.concat_tables([groups[0], groups[3]]), 5: pa.concat_tables(groups[1:3])}
    before = pq.ParquetFile(path)
    for file in found:
        bucket = int(file.file_id[:8])
        target = tmp_path / file.file_name
        assert without_name(pq.read_table(target)).equals(without_name(expected[bucket]))
        assert pq.read_table(target).column(NAME).unique().to_pylist() == [file.file_name]
        assert (file.rows, file.bytes) == (expected[bucket].num_rows, target.stat().st_size)
        assert KeyDigest.parse(file.rows, file.key_digest) == KeyDigest.of(expected[bucket].column(KEY))
        after = pq.ParquetFile(target)
        assert after.metadata.schema.equals(before.metadata.schema)
        assert after.metadata.created_by == before.metadata.created_by
        for number, old in enumerate((0, 3) if bucket == 1 else (1, 2)):
            require_same_chunks(before.metadata.row_group(old), after.metadata.row_group(number), file.file_name)
        require_readable_by_pages(target, expected[bucket])
    markers = {each.name for each in (tmp_path / ".hoodie/.temp" / INSTANT).iterdir()}
    assert markers == {f"{file.file_name}.marker.CREATE" for file in found}


def require_same_chunks(before: Any, after: Any, file_name: str) -> None:
    assert (before.num_rows, before.num_columns) == (after.num_rows, after.num_columns)
    for number in range(before.num_columns):
        old, new = before.column(number), after.column(number)
        assert old.path_in_schema == new.path_in_schema
        if new.path_in_schema == NAME:
            assert (new.statistics.min, new.statistics.max, new.statistics.null_count) == (file_name, file_name, 0)
            continue
        assert old.total_compressed_size == new.total_compressed_size
        assert old.encodings == new.encodings
        assert old.compression == new.compression
        assert old.statistics is None or old.statistics.to_dict() == new.statistics.to_dict()
        assert (old.has_offset_index, old.has_column_index) == (new.has_offset_index, new.has_column_index)
        assert (old.bloom_filter_length is None) == (new.bloom_filter_length is None)


def require_readable_by_pages(path: Path, expected: pa.Table) -> None:
    """Asserts the rows of a filtering reader, which uses statistics and both kinds of page indexes."""
    wanted = expected.column(KEY)[len(expected) // 2].as_py()
    found = pq.read_table(path, filters=pc.field(KEY) == wanted)
    assert without_name(found).equals(without_name(expected.filter(pc.equal(expected.column(KEY), wanted))))


def test_row_groups_of_few_rows_are_copied_too(tmp_path: Path) -> None:
    path = tmp_path / "00000001-in.parquet"
    write(path, [rows(keys_of(1, 8)[:3]), rows(keys_of(5, 8)[:2])])
    assert [file.rows for file in try_copy(work(tmp_path), in_halves(path)) or ()] == [3, 2]


def test_the_indexes_of_pages_point_to_the_pages(tmp_path: Path) -> None:
    path = tmp_path / "00000001-in.parquet"
    write(path, [rows(keys_of(5, 8)), rows(keys_of(1, 8))])
    for file in try_copy(work(tmp_path), in_halves(path)) or pytest.fail("not copied"):
        target = tmp_path / file.file_name
        content = target.read_bytes()
        pages = 0
        with pa.OSFile(str(target)) as opened:
            raw = RawFile(opened)
            for chunk in raw.groups[0].chunks:
                index, length = chunk.struct[4].value, chunk.struct[5].value
                found, _ = column_chunks.read_struct(content[index : index + length])
                for page in found[1].value.values:
                    header, end = column_chunks.read_struct(content[page[1].value :])
                    assert header[1].value == 0
                    assert end + header[3].value == page[2].value
                    pages += 1
        assert pages > 50


def test_one_row_of_another_bucket_makes_all_rows_be_decoded_and_the_result_is_right(tmp_path: Path) -> None:
    stay, go = keys_of(1, 8), keys_of(5, 8)
    path = tmp_path / "00000001-in.parquet"
    write(path, [rows([*stay[:400], go[0]]), rows(go[1:])])
    assert try_copy(work(tmp_path), in_halves(path)) is None
    found = {file.file_id[:8]: file for file in rewrite_base_file(work(tmp_path), in_halves(path), "0-0-0")}
    assert {bucket: file.rows for bucket, file in found.items()} == {"00000001": 400, "00000005": len(go)}


def test_a_bucket_whose_rows_all_stay_is_copied_and_its_other_child_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "00000001-in.parquet"
    write(path, [rows(keys_of(1, 8))])
    found = {file.file_id[:8]: file for file in try_copy(work(tmp_path), in_halves(path)) or ()}
    assert {bucket: file.rows for bucket, file in found.items()} == {"00000001": len(keys_of(1, 8)), "00000005": 0}
    empty = pq.read_table(tmp_path / found["00000005"].file_name)
    assert empty.schema.names == rows([]).schema.names


def test_a_misplaced_row_is_refused_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "00000001-in.parquet"
    write(path, [rows(keys_of(1, 8)), rows([*keys_of(5, 8), keys_of(2, 8)[0]])])
    assert try_copy(work(tmp_path), in_halves(path)) is None
    with pytest.raises(RefusedError, match="bucket 1"):
        rewrite_base_file(work(tmp_path), in_halves(path), "0-0-0")
    assert [each.name for each in tmp_path.glob("*.parquet")] == [path.name]


@pytest.mark.parametrize(
    "more", [{"codec": "gzip"}, {"sort_by": ("id",)}, {"apart": 2}, {"leaves_out": frozenset()}], ids=str
)
def test_row_groups_are_not_copied_if_their_bytes_have_to_change(tmp_path: Path, more: dict[str, Any]) -> None:
    path = tmp_path / "00000001-in.parquet"
    write(path, [rows(keys_of(1, 8))])
    assert try_copy(work(tmp_path, **more), in_halves(path)) is None
    assert try_copy(work(tmp_path, codec="zstd"), in_halves(path))


def test_rows_kept_apart_are_sorted_in_each_part_and_the_next_expansion_copies_them(tmp_path: Path) -> None:
    mixed = [*keys_of(1, 8), *keys_of(5, 8)]
    random.Random(1).shuffle(mixed)
    path = tmp_path / "00000001-in.parquet"
    write(path, [rows(mixed[:500]), rows(mixed[500:])])
    stays = Source("", "00000001-in", 1, 4, (1,), str(path))

    [prepared] = rewrite_base_file(work(tmp_path, sort_by=("city", "id"), apart=4), stays, "0-0-0")

    file = tmp_path / prepared.file_name
    residues = bucket_ids(pq.read_table(file).column(KEY), ("id",), 16).tolist()
    assert residues == sorted(residues)
    everything = pq.read_table(file)
    for residue in (1, 5, 9, 13):
        some = without_name(everything.filter(pa.array([each == residue for each in residues])))
        expected = rows(keys_of(residue, 16))
        assert some.equals(without_name(expected.sort_by([("city", "ascending"), ("id", "ascending")])))
    assert sum(each.rows for each in try_copy(work(tmp_path), in_halves(file)) or ()) == len(mixed)
    into_four = replace(in_halves(file), modulus=16, residues=(1, 5, 9, 13))
    assert [each.rows for each in try_copy(work(tmp_path), into_four) or ()] == [
        residues.count(residue) for residue in (1, 5, 9, 13)
    ]


@pytest.mark.parametrize("least", [0, 1 << 30])
def test_files_of_a_contraction_are_put_one_after_the_other_unless_their_row_groups_are_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    monkeypatch.setattr(row_group_copy, "MIN_ROW_GROUP_BYTES", least)
    parts = []
    for bucket in (5, 1):
        path = tmp_path / f"{bucket:08d}-in.parquet"
        write(path, [rows(keys_of(bucket, 8))])
        parts.append(Source("", path.stem, bucket, 8, (bucket,), str(path), new_number=4))
    source = replace(parts[0], merged_with=(parts[1],))

    assert (copied(work(tmp_path), source, "0-0-0", None) is None) == (least > 0)
    [file] = rewrite_base_file(work(tmp_path), source, "0-0-0")

    found = pq.ParquetFile(tmp_path / file.file_name)
    expected = pa.concat_tables([rows(keys_of(5, 8)), rows(keys_of(1, 8))])
    assert without_name(found.read()).equals(without_name(expected))
    assert found.num_row_groups == (1 if least else 2)
    assert KeyDigest.parse(file.rows, file.key_digest) == KeyDigest.of(expected.column(KEY))


def test_files_of_several_schemas_or_writers_are_not_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_group_copy, "MIN_ROW_GROUP_BYTES", 0)
    first, other = tmp_path / "00000001-in.parquet", tmp_path / "00000005-in.parquet"
    write(first, [rows(keys_of(1, 8))])
    write(other, [rows(keys_of(5, 8))], version="1.0", use_deprecated_int96_timestamps=True)
    part = Source("", "00000005-in", 5, 8, (5,), str(other), new_number=4)
    source = Source("", "00000001-in", 1, 8, (1,), str(first), new_number=4, merged_with=(part,))
    assert copied(work(tmp_path), source, "0-0-0", None)
    table = rows(keys_of(5, 8))
    write(other, [table.replace_schema_metadata({"parquet.avro.schema": "{}"})])
    assert copied(work(tmp_path), source, "0-0-0", None) is None
    write(other, [table.set_column(0, "_hoodie_commit_time", table.column(0).cast(pa.large_binary()))])
    assert copied(work(tmp_path), source, "0-0-0", None) is None


@pytest.mark.slow
def test_a_damaged_file_is_copied_or_refused_with_one_typed_error(tmp_path: Path) -> None:
    """The test does not compare with pyarrow, which crashes the process for some footers."""
    path = tmp_path / "00000001-in.parquet"
    write(path, [rows(keys_of(1, 8)[:40]), rows(keys_of(5, 8)[:40])], compression="none")
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    chance = random.Random(7)
    ends = {"copied": 0, "refused": 0}
    for _ in range(400):
        damaged = bytearray(content)
        at = chance.randrange(footer - 600, len(content)) if chance.random() < 0.8 else chance.randrange(len(content))
        damaged[at] = chance.randrange(256)
        target = pa.BufferOutputStream()
        try:
            raw = RawFile(pa.BufferReader(bytes(damaged)))
            writer = CopyWriter(target, raw)
            for number in range(len(raw.groups)):
                writer.add(raw, number)
            writer.close({})
            ends["copied"] += 1
            assert target.getvalue().size <= len(content) + 200
        except NotCopyableError:
            ends["refused"] += 1
    assert min(ends.values()) > 20


def test_pages_that_do_not_hold_what_the_footer_says_are_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path, [rows(keys_of(1, 8))])
    for field_id, change in ((5, 1), (5, -1), (7, -1), (7, 1), (9, 1), (9, -1), (11, 4), (11, 1 << 40)):
        with pa.OSFile(str(path)) as opened, pa.OSFile(str(tmp_path / "b.parquet"), "wb") as target:
            raw = RawFile(opened)
            chunk = next(each for each in raw.groups[0].chunks if each.path[0] == b"city")
            kind, value = chunk.meta[field_id]
            chunk.meta[field_id] = column_chunks.Field(kind, value + change)
            with pytest.raises(NotCopyableError):
                copy_first(raw, target)


def copy_first(raw: RawFile, target: pa.NativeFile) -> None:
    raw.groups[0] = column_chunks.RowGroup.of(raw.groups[0].struct)
    CopyWriter(target, raw).add(raw, 0)
