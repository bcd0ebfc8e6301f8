"""Rewritten files keep logical types that pyarrow cannot write, and footer entries."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.dataplane import footer_entries, parquet_layout
from jobs.dataplane.logical_types import NO_ANNOTATIONS
from jobs.dataplane.rewrite import rewrite_base_file
from jobs.dataplane.split_writer import Rewrite, Source
from jobs.errors import RefusedError
from jobs.format import compact_thrift as thrift
from jobs.format.bucket_hash import bucket_ids
from jobs.format.compact_thrift import STRUCT, Field, read_struct, write_struct
from jobs.storage.paths import of_hadoop

if TYPE_CHECKING:
    from pathlib import Path

KEY, NAME = "_hoodie_record_key", "_hoodie_file_name"
TEXTS = [b"INLINE", None, b"OUT_OF_LINE"] * 40
STRUCTS = pa.struct([pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary())])
# Numbers of the `ConvertedType` and the `LogicalType` of Parquet's writers.
ENUM, JSON, BSON, UUID, INTERVAL, GEOMETRY, VARIANT = (
    (4, 4),
    (19, 12),
    (20, 13),
    (None, 14),
    (21, None),
    (None, 17),
    (None, 16),
)
COLUMNS: dict[str, tuple[tuple[int | None, int | None], pa.Array]] = {
    "enum": (ENUM, pa.array(TEXTS)),
    "json": (JSON, pa.array([b'{"a": 1}', None, b"[]"] * 40)),
    "bson": (BSON, pa.array(TEXTS)),
    "uuid": (UUID, pa.array([b"0" * 16, None, b"\xff" * 16] * 40, pa.binary(16))),
    "interval": (INTERVAL, pa.array([b"0" * 12, None, b"1" * 12] * 40, pa.binary(12))),
    "geometry": (GEOMETRY, pa.array(TEXTS)),
    "variant": (VARIANT, pa.array([{"metadata": b"m", "value": b"v"}, None, {"metadata": b"n"}] * 40, STRUCTS)),
}


def annotated(content: bytes, kinds: dict[bytes, tuple[int | None, int | None]]) -> bytes:
    """Returns the file with these annotations on all columns of these names, at any depth."""
    length = int.from_bytes(content[-8:-4], "little")
    footer, _ = read_struct(content, len(content) - 8 - length)
    for element in footer[2].value.values[1:]:
        if element[4].value in kinds:
            converted, logical = kinds[element[4].value]
            element.pop(6, None)
            element.pop(10, None)
            if converted is not None:
                element[6] = Field(thrift.I32, converted)
            if logical is not None:
                element[10] = Field(STRUCT, {logical: Field(STRUCT, {})})
    written = write_struct(footer)
    return content[: -8 - length] + written + len(written).to_bytes(4, "little") + b"PAR1"


def table() -> pa.Table:
    columns = {KEY: [f"k{number}" for number in range(120)], NAME: ["old"] * 120}
    columns |= {name: values for name, (_, values) in COLUMNS.items()}
    columns["pic"] = pa.array([{"enum": text} for text in TEXTS])
    columns["many"] = pa.array([[text, text] for text in TEXTS])
    return pa.table(columns)


def write(path: Path, rows: pa.Table, entries: dict[str, str] | None = None) -> None:
    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, rows.schema, store_schema=False, write_page_index=True) as writer:
        writer.write_table(rows, row_group_size=50)
        writer.add_key_value_metadata(entries or {})
    kinds = {name.encode(): kind for name, (kind, _) in COLUMNS.items()} | {b"element": ENUM}
    path.write_bytes(annotated(buffer.getvalue(), kinds))


def rewrite(folder: Path, buckets: list[int], source: Source, **more: Any) -> list[Path]:
    work = Rewrite(of_hadoop(str(folder), {}), "20260101000000000", ("id",), **more)
    written = rewrite_base_file(work, source, "0-0-0")
    assert sorted(int(each.file_id[:8]) for each in written) == buckets
    return [folder / each.file_name for each in written]


def elements(path: Path) -> list[Any]:
    content = path.read_bytes()
    footer, _ = read_struct(content, len(content) - 8 - int.from_bytes(content[-8:-4], "little"))
    return [{field: each.get(field) for field in (1, 2, 3, 4, 6, 10)} for each in footer[2].value.values[1:]]


@pytest.mark.parametrize("more", [{}, {"sort_by": ("enum", KEY)}, {"codec": "zstd"}], ids=str)
def test_types_and_values_stay_when_rows_are_decoded_and_written(tmp_path: Path, more: dict[str, Any]) -> None:
    path = tmp_path / "00000000-in.parquet"
    write(path, table())

    written = rewrite(tmp_path, [0, 1], Source("", path.stem, 0, 2, (0, 1), str(path)), **more)

    options = {"arrow_extensions_enabled": False}
    found = pa.concat_tables([pq.read_table(each, **options) for each in written]).sort_by(KEY)
    expected = pq.read_table(path, **options).sort_by(KEY)
    assert found.drop_columns([NAME]).equals(expected.drop_columns([NAME]))
    for file in written:
        assert elements(file) == elements(path)
        footer = pq.ParquetFile(file)
        assert str(footer.schema).splitlines()[1:] == str(pq.ParquetFile(path).schema).splitlines()[1:]
        columns = [footer.metadata.row_group(0).column(number) for number in range(footer.metadata.num_columns)]
        assert {each.path_in_schema for each in columns if not each.is_stats_set} == {"interval", "geometry"}
        assert next(each for each in columns if each.path_in_schema == "enum").statistics.min_raw == b"INLINE"


def test_rows_copied_as_bytes_and_the_empty_files_beside_them_have_the_types(tmp_path: Path) -> None:
    keys = [key for key in table()[KEY].to_pylist() if bucket_ids(pa.array([key]), ("id",), 2)[0] == 0]
    path = tmp_path / "00000000-in.parquet"
    write(path, table().filter(pa.compute.is_in(table()[KEY], pa.array(keys))))
    for file in rewrite(tmp_path, [0, 1], Source("", path.stem, 0, 2, (0, 1), str(path))):
        assert elements(file) == elements(path)


def test_a_file_is_written_while_it_is_made_except_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    write(path, table())
    with pq.ParquetFile(path, arrow_extensions_enabled=False) as reader:
        layout = replace(parquet_layout.of_file(reader), codec="none")
        rows = reader.read()
    out = io.BytesIO()
    writer = layout.writer(out)
    wide = rows.set_column(
        rows.schema.get_field_index("bson"), "bson", pa.array([b"%d" % number * 5000 for number in range(120)])
    )
    writer.write_table(wide, row_group_size=120)
    before = out.tell()
    writer.close()
    assert out.tell() - before < 20_000 < before
    assert pq.read_table(out, arrow_extensions_enabled=False)["bson"].equals(wide["bson"])


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array(TEXTS), (None, 99)),  # A newer format has this type.
        (pa.array([{"a": 1}, None] * 60), VARIANT),
    ],
    ids=["unknown", "group"],
)
def test_a_column_whose_type_would_get_lost_is_refused(column: pa.Array, kind: tuple[int | None, int | None]) -> None:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"x": column}), buffer, store_schema=False)
    reader = pq.ParquetFile(io.BytesIO(annotated(buffer.getvalue(), {b"x": kind})))
    layout = replace(parquet_layout.of_file(reader), annotations=NO_ANNOTATIONS)
    with pytest.raises(RefusedError) as refused:
        parquet_layout.require_reproducible(layout, reader.schema, "file")
    assert refused.value.problem().type == "schema-not-reproducible"


# -- Footer entries

OF_ONE_FILE = {"hoodie_min_record_key": "k0", "original.created.by": "somebody"}
LASTING = {
    "hoodie.vector.columns": "v:VECTOR(4)", "parquet.avro.schema": "{}", "writer.model.name": "avro",
    "ARROW:schema": "", "pandas": "{}", "a tool of others": "1",
}  # fmt: skip


def test_all_entries_stay_but_those_of_one_file(tmp_path: Path) -> None:
    lasting = {key: value for key, value in LASTING.items() if key != "ARROW:schema"}
    path = tmp_path / "00000000-in.parquet"
    write(path, table(), lasting | OF_ONE_FILE)
    for file in rewrite(tmp_path, [0, 1], Source("", path.stem, 0, 2, (0, 1), str(path))):
        found = pq.read_metadata(file).metadata
        assert found == {key.encode(): value.encode() for key, value in lasting.items()}


def test_a_file_merged_from_several_has_the_footer_entries_of_all(tmp_path: Path) -> None:
    keys, parts = table()[KEY], []
    for bucket, entries in ((0, {"one": "1", "both": "of the first"}), (1, {"other": "2", "both": "of the second"})):
        path = tmp_path / f"{bucket:08d}-in.parquet"
        write(path, table().filter(pa.array(bucket_ids(keys.combine_chunks(), ("id",), 2) == bucket)), entries)
        parts.append(Source("", path.stem, bucket, 2, (bucket,), str(path), new_number=1))
    [file] = rewrite(tmp_path, [0], replace(parts[0], merged_with=(parts[1],)))
    assert pq.read_metadata(file).num_rows == 120
    assert pq.read_metadata(file).metadata == {b"one": b"1", b"other": b"2", b"both": b"of the first"}


def test_under_another_schema_only_entries_stay_that_do_not_depend_on_it(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    write(path, table(), {key: value for key, value in LASTING.items() if key != "ARROW:schema"} | OF_ONE_FILE)
    latest = {footer_entries.AVRO_SCHEMA: b"new", footer_entries.VECTOR_COLUMNS: b"v:VECTOR(4),w:VECTOR(2)"}
    with pq.ParquetFile(path) as reader:
        own = parquet_layout.of_schema(reader, latest, None)
        for layout in (own.like(reader, None), own.compressed_like(reader, None)):
            assert layout.footer(None) == {**latest, b"a tool of others": b"1"}
            assert layout.annotations == own.annotations != NO_ANNOTATIONS
