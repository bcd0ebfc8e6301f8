"""Tests rewriting slices with logs, and which files remain if the rewrite finds halfway that Hudi has to merge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.dataplane import parquet_layout
from jobs.dataplane.compacted_file import Compaction, compact_slice
from jobs.dataplane.merge_rules import SliceFiles
from jobs.dataplane.rewrite import rewrite_slice_with_logs
from jobs.dataplane.split_writer import Rewrite, Source
from jobs.errors import NotProvedError
from jobs.storage.paths import of_hadoop
from tests.unit.test_slice_merge import RULES, SCHEMA, T0, T1, T3, data, row

if TYPE_CHECKING:
    from pathlib import Path

    from jobs.format.written_file import WrittenFile


ENTRIES = {"pandas": "of the old columns", "hoodie_max_record_key": "k9", "a tool of others": "1"}


def rewritten(folder: Path, keys: list[int], log: bytes) -> list[WrittenFile]:
    """Splits a slice of one bucket into two. The slice's base file has row groups of 100 rows, and so must the new
    files."""
    (folder / "p").mkdir()
    base, logs = f"p/00000000_0-0-0_{T0}.parquet", f"p/.00000000_{T1}.log.1_0-0-0"
    schema = SCHEMA.with_metadata(ENTRIES)
    pq.write_table(pa.Table.from_pylist([row(key, 5) for key in keys], schema), folder / base, row_group_size=100)
    (folder / logs).write_bytes(log)
    work = Rewrite(of_hadoop(str(folder), {}), T3, ("id",))
    source = Source("p", "00000000", 0, 2, (0, 1), None, model=str(folder / base))
    with pq.ParquetFile(folder / base) as reader:
        latest = parquet_layout.of_schema(reader, {b"parquet.avro.schema": b"latest"}, None)
    files = SliceFiles("p", "00000000", base, (logs,))
    return rewrite_slice_with_logs(work, source, files, "0-0-0", rules=RULES, latest=latest)


def test_the_rows_of_logs_are_in_the_new_files(tmp_path: Path) -> None:
    written = rewritten(tmp_path, list(range(400)), data(T1, [row(1, 9, T1), row(900, 9, T1)]))
    assert sum(each.rows for each in written) == 401
    found = pa.concat_tables(pq.ParquetFile(tmp_path / "p" / each.file_name).read() for each in written)
    newer = [key for key, ts in zip(found["_hoodie_record_key"], found["ts"], strict=True) if ts.as_py() == 9]
    assert sorted(map(str, newer)) == ["k1", "k900"]
    for each in written:
        entries = pq.read_metadata(tmp_path / "p" / each.file_name).metadata
        assert entries == {b"parquet.avro.schema": b"latest", b"a tool of others": b"1"}


def test_a_compacted_file_keeps_entries_of_others(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    base, log = f"p/00000000_0-0-0_{T0}.parquet", f"p/.00000000_{T1}.log.1_0-0-0"
    pq.write_table(pa.Table.from_pylist([row(1, 5)], SCHEMA.with_metadata(ENTRIES)), tmp_path / base)
    (tmp_path / log).write_bytes(data(T1, [row(2, 9, T1)]))
    with pq.ParquetFile(tmp_path / base) as reader:
        layout = parquet_layout.of_schema(reader, {b"hoodie.vector.columns": b"v:VECTOR(2)"}, None)
    work = Compaction(of_hadoop(str(tmp_path), {}), T3, RULES, layout, None)
    file = tmp_path / "p" / compact_slice(work, SliceFiles("p", "00000000", base, (log,)), "0-0-1").file_name
    assert pq.read_metadata(file).num_rows == 2
    assert pq.read_metadata(file).metadata == {b"hoodie.vector.columns": b"v:VECTOR(2)", b"a tool of others": b"1"}


def test_no_file_of_a_slice_that_is_left_to_hudi_remains_but_its_markers(tmp_path: Path) -> None:
    # The log has a position in the base file, which has the key again in its last row group.
    log = data(T1, [row(1, 9, T1)], header={5: "AAAA", 8: T0})
    with pytest.raises(NotProvedError, match="several rows of one key"):
        rewritten(tmp_path, [*range(400), 1], log)
    assert [path.name for path in tmp_path.rglob("*.parquet")] == [f"00000000_0-0-0_{T0}.parquet"]
    markers = list((tmp_path / ".hoodie/.temp" / T3 / "p").iterdir())
    assert len(markers) == 2
