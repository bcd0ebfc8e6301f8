"""A base file of 1 GiB is sorted in less than 512 MiB of memory, on the disk. Takes minutes and 6 GiB of disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from jobs.hudi.session import MEMORY_OF_TASKS

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1024 * 1024
ROOT = Path(__file__).parents[2]
ROWS, GROUPS = 500_000, 12

# The sort has its own process, as a Spark task does.
SORT = """
import re, sys, time
from pathlib import Path
from jobs.dataplane.split_writer import Rewrite, Source
from jobs.dataplane.rewrite import rewrite_base_file
from jobs.dataplane.python_worker import prepare_process
from jobs.storage.paths import Storage

prepare_process()
base, file_name, curve, apart = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
work = Rewrite(Storage(base), "20260101000000000", ("id",), sort_by=("city", "amount"), curve=curve, apart=apart)
[written] = rewrite_base_file(work, Source("p", file_name[:38], 0, 1, (0,), f"{base}/p/{file_name}"), "0-0-0")
# Not `ru_maxrss`, which a process inherits from the one that started it.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text()).group(1)
print(peak, written.rows, written.file_name, time.process_time())
"""


@pytest.fixture(scope="module")
def base_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Writes row groups of about 90 MiB, which hardly compress; the file has 1.6 GiB in Arrow's format."""
    path = tmp_path_factory.mktemp("large") / "p/00000000-aaaa-4aaa-8aaa-aaaaaaaaaaaa-0_0-0-0_20250101000000000.parquet"
    path.parent.mkdir()
    random = np.random.default_rng(7)
    writer = None
    for number in range(GROUPS):
        first = number * ROWS
        keys = pa.array([f"k{each:09d}" for each in range(first, first + ROWS)])
        noise = pa.py_buffer(random.bytes(ROWS * 160))
        offsets = pa.py_buffer(np.arange(0, (ROWS + 1) * 160, 160, dtype=np.int32))
        table = pa.table(
            {
                "_hoodie_commit_time": pa.array(["20250101000000000"] * ROWS),
                "_hoodie_record_key": keys,
                "_hoodie_file_name": pa.array([path.name] * ROWS),
                "id": keys,
                "city": pa.array([f"city {each}" for each in random.integers(0, 5000, ROWS)]),
                "amount": pa.array(random.integers(0, 1 << 40, ROWS)),
                "payload": pa.Array.from_buffers(pa.binary(), ROWS, [None, offsets, noise]),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema, compression="snappy")
        writer.write_table(table, row_group_size=ROWS)
    assert writer
    writer.close()
    assert path.stat().st_size > 1000 * MIB
    yield path
    path.unlink()


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("curve", "apart"), [("linear", 1), ("linear", 2), ("hilbert", 1)])
def test_a_large_file_is_sorted_in_little_memory(base_file: Path, tmp_path: Path, curve: str, apart: int) -> None:
    base = base_file.parents[1]

    ran = subprocess.run(
        [sys.executable, "-c", SORT, str(base), base_file.name, curve, str(apart)], cwd=ROOT,
        env={**os.environ, **MEMORY_OF_TASKS, "SPARK_LOCAL_DIRS": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    peak_kib, rows, name, seconds = ran.stdout.split()
    written = base / "p" / name
    groups = [pq.read_metadata(written).row_group(each) for each in range(pq.read_metadata(written).num_row_groups)]
    sizes = sorted(round(each.total_byte_size / MIB) for each in groups)
    print(f"{curve}, apart {apart}: peak {int(peak_kib) / 1024:.0f} MiB, {seconds} CPU s, row groups (MiB) {sizes}")
    found = pq.read_table(written, columns=["id", "city", "amount"], partitioning=None)
    written.unlink()
    assert list(tmp_path.iterdir()) == []
    assert int(rows) == found.num_rows == ROWS * GROUPS
    assert len(pc.unique(found.column("id"))) == found.num_rows
    if curve == "linear" and apart == 1:
        order = pc.sort_indices(found, sort_keys=[("city", "ascending"), ("amount", "ascending")])
        assert order.equals(pa.array(range(found.num_rows), pa.uint64()))
    assert int(peak_kib) < 512 * 1024
    assert sum(sizes) / len(sizes) > 16
