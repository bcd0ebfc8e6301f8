"""Writes Parquet files with rows of many types in small pages that ISA-L compresses. Readers other than ours have to
read them, also with filters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.dataplane.logical_types import NO_ANNOTATIONS
from jobs.dataplane.parquet_writer import ParquetWriter

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 6000
_HEADER_OF_ISA_L = b"\x1f\x8b\x08" + 6 * b"\0" + b"\xff"
ROWS = pa.table(
    {
        "number": pa.array(range(COUNT), pa.int64()),
        "key": [f"key {row:06d}" for row in range(COUNT)],
        "city": [None if row % 11 == 0 else f"city {row // 500}" for row in range(COUNT)],
        "none": pa.array([None] * COUNT, pa.string()),
        "flag": [row % 3 == 0 for row in range(COUNT)],
        "tags": [[f"t{each}" for each in range(row % 4)] or None for row in range(COUNT)],
        "more": [{"a": row, "b": [{"c": float(row % 5)}] * (row % 3)} for row in range(COUNT)],
        "map": pa.array([[(f"k{row % 5}", row)] for row in range(COUNT)], pa.map_(pa.string(), pa.int64())),
    }
)
# Each filter skips most pages by the page indexes.
FILTERS = {
    "number = 3210": [3210],
    "key >= 'key 005990'": list(range(5990, COUNT)),
    "city = 'city 7' and number < 3510": [row for row in range(3500, 3510) if row % 11],
    "city is null and number between 1995 and 2020": [row for row in range(1995, 2021) if row % 11 == 0],
    "key = 'none of them'": [],
}
# pyarrow's options of such a file.
OPTIONS: tuple[dict[str, Any], ...] = (
    {"data_page_version": "1.0", "write_page_checksum": True},
    {"data_page_version": "2.0", "dictionary_pagesize_limit": 2000},
    {"data_page_version": "1.0", "use_dictionary": False},
)


def write(path: Path, rows: pa.Table, options: dict[str, Any]) -> None:
    """Writes a file of three row groups with small pages."""
    settings = {"data_page_size": 2000, "write_batch_size": 50, "write_page_index": True, **options}
    with (
        pa.OSFile(str(path), "wb") as stream,
        ParquetWriter(stream, rows.schema, NO_ANNOTATIONS, compression="gzip", **settings) as writer,
    ):
        writer.write_table(rows, row_group_size=2500)
    assert pq.read_metadata(path).row_group(0).column(0).compression == "GZIP"


def writer(path: Path) -> str:
    """Returns what the footer says about the program that has encoded the file."""
    return str(pq.read_metadata(path).created_by)


def has_pages_of_isa_l(path: Path) -> bool:
    """Returns whether ISA-L has compressed pages: unlike zlib, it leaves the operating system in the gzip header open
    (RFC 1952)."""
    return _HEADER_OF_ISA_L in path.read_bytes()
