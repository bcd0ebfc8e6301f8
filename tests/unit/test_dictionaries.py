"""Columns are read as Arrow dictionaries only if all their rows have few different texts, with any codec of the
file."""

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.storage import dictionaries
from jobs.storage.dictionaries import columns_with_small_ones
from jobs.storage.paths import Storage, batches_of

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 40_000
SMALL = ["city", "bytes", "nulls", "none"]


@cache
def columns() -> dict[str, pa.Array]:
    """Returns the columns. Each process of a test run imports this module, and few of them need the columns."""
    return {
        "city": pa.array([f"city {row % 100}" for row in range(COUNT)]),
        "bytes": pa.array([b"%d" % (row % 100) for row in range(COUNT)]),
        "nulls": pa.array([None if row % 3 else f"{row % 50}" for row in range(COUNT)]),
        "none": pa.array([None] * COUNT, pa.string()),
        # The writer stops using these dictionaries but leaves them in the file. All texts begin alike, so the
        # dictionaries compress well.
        "sequence": pa.array([f"20261125100000000_3_{row}" for row in range(COUNT)]),
        "late": pa.array([f"20261125100000000_{0 if row < COUNT - 5000 else row}" for row in range(COUNT)]),
        # The dictionaries of these columns do not exceed the writer's limit.
        "many": pa.array([f"{row % 5000}" for row in range(COUNT)]),
        "long": pa.array(["x" * 4000 + str(row % 20) for row in range(COUNT)]),
        "number": pa.array([row % 10 for row in range(COUNT)]),
        "list": pa.array([[f"{row % 10}"] for row in range(COUNT)]),
    }


def write(path: Path, names: list[str] | None = None, **options: Any) -> pa.Table:
    table = pa.table(columns()).select(names or list(columns()))
    settings = {"compression": "zstd", "dictionary_pagesize_limit": 100_000, "row_group_size": 30_000, **options}
    pq.write_table(table, path, store_schema=False, **settings)
    return table


@pytest.mark.parametrize("codec", ["zstd", "gzip", "none"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_columns_of_few_texts_come_as_dictionaries_and_others_as_texts(
    tmp_path: Path, codec: str, version: str
) -> None:
    path = tmp_path / "file.parquet"
    table = write(path, compression=codec, data_page_version=version)
    with Storage(str(tmp_path)).read_parquet(str(path), plain=("bytes",), rows=True) as reader:
        assert columns_with_small_ones(pa.OSFile(str(path)), reader.metadata) == SMALL
        encoded = [field.name for field in reader.schema_arrow if pa.types.is_dictionary(field.type)]
        assert encoded == [name for name in SMALL if name != "bytes"]
        batches = list(batches_of(reader))
    assert pa.Table.from_batches(batches).cast(table.schema).equals(table)


def test_the_dictionary_that_was_given_up_looks_small_by_its_compressed_size(tmp_path: Path) -> None:
    """The test above depends on this property."""
    write(tmp_path / "file.parquet", ["sequence", "late"])
    group = pq.read_metadata(tmp_path / "file.parquet").row_group(0)
    for number in range(2):
        chunk = group.column(number)
        assert chunk.has_dictionary_page
        assert chunk.data_page_offset - chunk.dictionary_page_offset < 16 * 1024


def test_a_column_without_a_dictionary_in_one_row_group_comes_as_texts(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    schema = pa.schema([("a", pa.string())])
    with pq.ParquetWriter(path, schema, dictionary_pagesize_limit=1000) as writer:
        writer.write_table(pa.table({"a": ["x"] * 5000}))
        writer.write_table(pa.table({"a": [f"text {row}" for row in range(5000)]}))
    assert columns_with_small_ones(pa.OSFile(str(path)), pq.read_metadata(path)) == []


def test_no_offset_of_a_footer_is_taken_on_trust(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    write(path, ["city"])
    other = tmp_path / "other.parquet"
    other.write_bytes(b"PAR1" + b"\xff" * 10)
    assert columns_with_small_ones(pa.OSFile(str(other)), pq.read_metadata(path)) == []


@pytest.mark.parametrize(("version", "pages_are_read"), [("1.0", False), ("2.6", True)])
def test_pages_are_examined_only_if_the_encodings_do_not_decide(
    monkeypatch: pytest.MonkeyPatch, version: str, *, pages_are_read: bool
) -> None:
    """Hudi's files have format 1. Pages of single values would take longer to look at than to read."""
    content = io.BytesIO()
    pq.write_table(pa.table({"city": ["Ulm", "Bern"] * 50}), content, version=version)
    source, metadata = pa.BufferReader(content.getvalue()), pq.ParquetFile(content).metadata
    assert columns_with_small_ones(source, metadata) == ["city"]
    monkeypatch.setattr(dictionaries, "_MOST_PAGES", 0)
    assert columns_with_small_ones(source, metadata) == ([] if pages_are_read else ["city"])


def test_a_page_header_with_long_statistics_is_not_looked_at_any_further(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"long": ["x" * 2000] * 50, "city": ["Ulm"] * 50}), path, write_page_index=False)
    assert columns_with_small_ones(pa.OSFile(str(path)), pq.read_metadata(path)) == ["city"]
