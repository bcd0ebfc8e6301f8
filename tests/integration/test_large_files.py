"""Base files of 1 GiB are split, merged with logs and combined in less than 512 MiB of memory.

Takes two minutes and 3 GiB of disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.format.bucket_hash import bucket_ids
from jobs.hudi.session import MEMORY_OF_TASKS
from tests.unit.test_slice_merge import data

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1024 * 1024
ROOT = Path(__file__).parents[2]

# The rewrite has its own process, as a Spark task does, because the peak of this process would include earlier tests.
SPLIT = """
import re, sys
from dataclasses import replace
from pathlib import Path
from jobs.dataplane.split_writer import Rewrite, Source
from jobs.dataplane.rewrite import rewrite_base_file
from jobs.dataplane.python_worker import prepare_process
from jobs.storage.paths import Storage

prepare_process()
base, file_name, factor = sys.argv[1], sys.argv[2], int(sys.argv[3])
work = Rewrite(Storage(base), "20260101000000000", ("id",))
source = Source("p", file_name[:38], 1, 4 * factor, tuple(range(1, 4 * factor, 4)), f"{base}/p/{file_name}")
if factor == 0:  # merged with itself, in a contraction
    source = replace(source, modulus=4, residues=(1,), new_number=1)
    source = replace(source, merged_with=(source,))
written = rewrite_base_file(work, source, "0-0-0")
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text()).group(1)
print(peak, sum(item.rows for item in written))
"""

# The program merges the file with its logs. The argument "compact" makes one file, as a compaction does; a number
# makes so many files, which are sorted if a * follows.
MERGE = """
import re, sys
from pathlib import Path
import pyarrow.parquet as pq
from jobs.dataplane import parquet_layout
from jobs.dataplane.compacted_file import Compaction, compact_slice
from jobs.dataplane.rewrite import rewrite_slice_with_logs
from jobs.dataplane.slice_merge import MergeRules, SliceFiles
from jobs.dataplane.split_writer import Rewrite, Source
from jobs.dataplane.python_worker import prepare_process
from jobs.storage.paths import Storage

prepare_process()
base, file_name, log_name, how = sys.argv[1:]
storage, instant = Storage(base), "20260101000000000"
with pq.ParquetFile(f"{base}/p/{file_name}") as reader:
    layout = parquet_layout.of_file(reader)
rules = MergeRules("COMMIT_TIME_ORDERING", (), 9, frozenset(), "20251231000000000")
files = SliceFiles("p", file_name[:38], f"p/{file_name}", (f"p/{log_name}",))
if how == "compact":
    rows = compact_slice(Compaction(storage, instant, rules, layout, None), files, "0-0-0").counts.rows
else:
    factor, sort_by = int(how.rstrip("*")), ("_hoodie_commit_seqno",) if how.endswith("*") else ()
    work = Rewrite(storage, instant, ("id",), sort_by=sort_by)
    residues = tuple(range(1, 4 * factor, 4))
    source = Source("p", file_name[:38], 1, 4 * factor, residues, None, model=f"{base}/p/{file_name}")
    rows = sum(each.rows for each in rewrite_slice_with_logs(work, source, files, "0-0-0", rules=rules, latest=layout))
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text()).group(1)
print(peak, rows)
"""


def keys_of_bucket(bucket: int, num_buckets: int, count: int) -> list[str]:
    keys = pa.array([f"k{number:09d}" for number in range(count * num_buckets * 11 // 10)])
    found = keys.filter(pa.array(bucket_ids(keys, ("id",), num_buckets) == bucket))
    return found.slice(0, count).to_pylist()


def row_groups(file_name: str) -> Iterator[pa.Table]:
    """Writes row groups of about 120 MiB, Hudi's default, the last two with wide rows; each page has at least 100
    rows."""
    random = np.random.default_rng(7)
    shape = [(40_000, 3000)] * 7 + [(1200, 100 * 1024)] * 2
    keys = keys_of_bucket(1, 4, sum(rows for rows, _ in shape))
    noise = pa.py_buffer(random.bytes(max(rows * width for rows, width in shape)))
    for rows, width in shape:
        some, keys = keys[:rows], keys[rows:]
        offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
        payload = pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), noise])
        yield pa.table(
            {
                "_hoodie_commit_time": pa.array(["20250101000000000"] * rows),
                "_hoodie_commit_seqno": pa.array([f"0_0_{number}" for number in range(rows)]),
                "_hoodie_record_key": pa.array(some),
                "_hoodie_partition_path": pa.array(["p"] * rows),
                "_hoodie_file_name": pa.array([file_name] * rows),
                "id": pa.array(some),
                "repeated": pa.array(["x" * 300] * rows),
                "payload": payload,
            }
        )


@pytest.fixture(scope="module")
def base_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = (
        tmp_path_factory.mktemp("large")
        / "p"
        / "00000001-aaaa-4aaa-8aaa-aaaaaaaaaaaa-0_0-0-0_20250101000000000.parquet"
    )
    path.parent.mkdir()
    writer = None
    for table in row_groups(path.name):
        writer = writer or pq.ParquetWriter(path, table.schema, compression="snappy", write_batch_size=100)
        writer.write_table(table, row_group_size=table.num_rows)
    assert writer
    writer.close()
    assert path.stat().st_size > 1000 * MIB
    yield path
    path.unlink()


def in_little_memory(program: str, base_file: Path, *more: str) -> tuple[int, list[list[int]]]:
    """Runs the program on the file, with less than 512 MiB. Returns the number of rows and, for each new file, the
    bytes of its row groups; the new files are deleted."""
    base = base_file.parents[1]
    ran = subprocess.run(
        [sys.executable, "-c", program, str(base), base_file.name, *more],
        cwd=ROOT, env={**os.environ, **MEMORY_OF_TASKS}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    peak_kib, rows = (int(number) for number in ran.stdout.split())
    written = [path for path in base.glob("p/*.parquet") if path != base_file]
    groups = [row_group_bytes(path) for path in written]
    mib = [sorted(round(size / MIB) for size in sizes) for sizes in groups]
    print(f"{more}: peak {peak_kib / 1024:.0f} MiB, row groups (MiB) {mib}")
    for path in written:
        path.unlink()
    assert peak_kib < 512 * 1024
    return rows, groups


def row_group_bytes(path: Path) -> list[int]:
    metadata = pq.read_metadata(path)
    return [metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)]


def average(groups: list[list[int]]) -> float:
    return sum(map(sum, groups)) / sum(map(len, groups))


@pytest.mark.exhaustive
@pytest.mark.parametrize("factor", [2, 8, 16])
def test_a_large_file_is_split_in_little_memory_into_row_groups_of_a_sensible_size(
    base_file: Path, factor: int
) -> None:
    rows, groups = in_little_memory(SPLIT, base_file, str(factor))
    assert rows == pq.read_metadata(base_file).num_rows
    assert len(groups) == factor
    # Each file ends with a row group of the remaining rows. A job writes no more than sixteen files at once.
    assert average(groups) > (16 if factor < 16 else 12) * MIB


@pytest.fixture(scope="module")
def log_file(base_file: Path) -> Iterator[Path]:
    """Writes new versions of every fifth row that is not wide: 56 000 records of 3 kB."""
    path = base_file.with_name(f".{base_file.name[:38]}_20251230000000000.log.1_0-0-0")
    names = [name for name in pq.read_schema(base_file).names if name not in {"payload", "_hoodie_file_name"}]
    fields = [{"name": name, "type": ["null", "string"]} for name in [*names, "_hoodie_file_name"]]
    avro = {"type": "record", "name": "r", "fields": [*fields, {"name": "payload", "type": ["null", "bytes"]}]}
    random = np.random.default_rng(8)
    with path.open("wb") as log:
        for number in range(7):
            rows = pq.ParquetFile(base_file).read_row_group(number, columns=names).to_pylist()[::5]
            log.write(data("20251230000000000", [{**row, "payload": random.bytes(3000)} for row in rows], avro=avro))
    yield path
    path.unlink()


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", ["compact", "2", "8", "1*"])
def test_a_large_file_is_merged_with_its_logs_in_little_memory(base_file: Path, log_file: Path, how: str) -> None:
    rows, groups = in_little_memory(MERGE, base_file, log_file.name, how)
    assert rows == pq.read_metadata(base_file).num_rows
    # The widest rows determine the size of the sorted parts.
    assert how.endswith("*") or average(groups) > 16 * MIB


@pytest.mark.exhaustive
def test_large_files_are_merged_in_little_memory(base_file: Path) -> None:
    rows, groups = in_little_memory(SPLIT, base_file, "0")
    assert rows == 2 * pq.read_metadata(base_file).num_rows
    assert len(groups) == 1
    assert sum(groups[0]) > 2000 * MIB
    assert average(groups) > 16 * MIB
