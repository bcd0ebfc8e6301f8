"""DuckDB and Polars, which read Parquet by code of their own, find the rows of files that ISA-L has compressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import polars
import pytest

from tests.support import paged_rows
from tests.support.paged_rows import FILTERS

if TYPE_CHECKING:
    from pathlib import Path

# DuckDB and Polars return maps in forms of their own.
ROWS = paged_rows.ROWS.drop_columns(["map"])


@pytest.fixture(params=paged_rows.OPTIONS, ids=["checksums", "version 2", "no dictionaries"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    written = tmp_path / "file.parquet"
    paged_rows.write(written, ROWS, request.param)
    return written


def test_duckdb_finds_all_rows_and_those_of_filters(path: Path) -> None:
    with duckdb.connect() as connection:
        found = connection.sql(f"select * from '{path}' order by number").fetchall()
        assert found == [tuple(row.values()) for row in ROWS.to_pylist()]
        for condition, numbers in FILTERS.items():
            rows = connection.sql(f"select number from '{path}' where {condition} order by number").fetchall()
            assert [number for (number,) in rows] == numbers, condition


def test_polars_finds_all_rows_and_those_of_filters(path: Path) -> None:
    frame = polars.scan_parquet(path)
    assert frame.sort("number").collect().to_dicts() == ROWS.to_pylist()
    for condition, numbers in FILTERS.items():
        rows = frame.filter(polars.sql_expr(condition)).sort("number").collect()
        assert rows["number"].to_list() == numbers, condition
