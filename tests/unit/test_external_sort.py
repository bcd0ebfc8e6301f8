"""A sort on the disk has the same order as a sort in memory for all types, and leaves no files."""

from __future__ import annotations

import decimal
import os
import signal
import subprocess
import sys
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.dataplane import external_sort, spill
from jobs.dataplane.external_sort import ExternalSort
from jobs.dataplane.row_buffer import RowBuffer
from jobs.dataplane.space_curve import sort_indices
from jobs.dataplane.spill import SpillFolder
from jobs.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]

# There are few different values, so that ties exist within and across runs.
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int64(), st.integers(-3, 3)),
    "small": (pa.int8(), st.integers(-128, 127)),
    "double": (pa.float64(), st.sampled_from([float("nan"), -0.0, 0.0, 1.5, float("inf"), -float("inf")])),
    "text": (pa.string(), st.sampled_from(["", "a", "b", "ä", "😀", "a" * 40])),
    "binary": (pa.binary(), st.sampled_from([b"", b"\x00", b"\xff", b"ab"])),
    "flag": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.sampled_from([date(1969, 12, 31), date(2026, 1, 1)])),
    "clock": (pa.time64("us"), st.sampled_from([time(0, 0), time(23, 59, 59)])),
    "moment": (pa.timestamp("us", "UTC"), st.sampled_from([datetime(1900, 1, 1), datetime(2026, 1, 1, 3, 4, 5)])),
    "money": (pa.decimal128(12, 2), st.sampled_from([decimal.Decimal("-1.50"), decimal.Decimal("0.00")])),
    "fixed": (pa.binary(2), st.sampled_from([b"ab", b"ac"])),
}


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


@st.composite
def cases(draw: st.DrawFn) -> tuple[pa.Table, list[str], list[int]]:
    """Generates a table with row numbers, the columns to sort by, and the rows after which a new run begins."""
    columns = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3, unique=True))
    count = draw(st.integers(0, 60))
    arrays = {}
    for name in columns:
        kind, values = KINDS[name]
        arrays[name] = pa.array(draw(st.lists(st.none() | values, min_size=count, max_size=count)), kind)
    arrays["row"] = pa.array(range(count), pa.int64())
    # The writer's tables have such columns; dictionaries differ between runs.
    arrays["city"] = pa.array([f"city {number % 7}" for number in range(count)]).dictionary_encode()
    cuts = sorted(draw(st.lists(st.integers(0, count), max_size=6)))
    return pa.table(arrays), columns, cuts


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cases(), st.sampled_from(["linear", "zorder", "hilbert"]), st.integers(1, 50), st.sampled_from([2, 3, 64]))
def test_rows_sorted_on_the_disk_come_in_the_order_of_memory(
    case: tuple[pa.Table, list[str], list[int]], curve: str, group: int, most_runs: int
) -> None:
    table, columns, cuts = case
    folder = SpillFolder()
    buffer = RowBuffer(columns, curve, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(external_sort, "BATCH_BYTES", 64)
        patch.setattr("jobs.dataplane.curve_sort.BATCH_BYTES", 64)
        patch.setattr("jobs.dataplane.curve_sort._BATCH", 5)
        patch.setattr(external_sort, "MOST_RUNS", most_runs)
        for first, end in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
            for batch in _recoded(table.slice(first, end - first)).to_batches():
                buffer.add(batch)
            buffer.spill()
        found = list(buffer.tables(group, 1 << 30))
        folder.remove()

    expected = table.take(sort_indices(table, columns, curve))
    assert [each.num_rows for each in found[:-1]] == [group] * (len(found) - 1)
    got = pa.concat_tables(found).unify_dictionaries() if found else table.slice(0, 0)
    assert got.column("row").to_pylist() == expected.column("row").to_pylist()
    for name in got.column_names:
        # The values are compared as texts, because NaN is not equal to itself.
        assert str(got.column(name).to_pylist()) == str(expected.column(name).to_pylist())


def _recoded(table: pa.Table) -> pa.Table:
    city = table.column("city").cast(pa.string()).combine_chunks().dictionary_encode()
    return table.set_column(table.schema.get_field_index("city"), "city", city)


@pytest.mark.parametrize("given", ["sorted", "reversed", "mixed", "equal"])
def test_runs_of_any_order_are_merged_in_few_steps(given: str) -> None:
    rows = 30_000
    values = {
        "sorted": list(range(rows)),
        "reversed": list(range(rows, 0, -1)),
        "mixed": [number * 7919 % rows for number in range(rows)],
        "equal": [1] * rows,
    }[given]
    table = pa.table({"value": values, "row": range(rows), "wide": ["x" * 300] * rows})
    folder = SpillFolder()
    sort = ExternalSort(["value"], folder)
    for first in range(0, rows, 3000):
        sort.add(table.slice(first, 3000))
    found = pa.concat_tables(sort.tables(1000))
    folder.remove()
    assert found.equals(table.take(pc.sort_indices(table, sort_keys=[("value", "ascending")])))


@pytest.mark.slow
def test_a_full_disk_is_a_typed_error_and_leaves_nothing(
    temporary: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.mktemp("table")
    keys = [f"k{number}" for number in range(20_000)]
    table = pa.table({"_hoodie_record_key": keys, "_hoodie_file_name": ["f"] * len(keys), "n": range(len(keys))})
    pq.write_table(table, base / "00000000-in.parquet")
    code = """
import resource, signal, sys
from jobs.dataplane.rewrite import rewrite_base_file
from jobs.dataplane.split_writer import Rewrite, Source
from jobs.errors import RefusedError
from jobs.storage.paths import of_hadoop

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # The ignored signal makes a write fail as on a full disk.
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 15, 1 << 15))
base = sys.argv[1]
work = Rewrite(of_hadoop(base, {}), "20260101000000000", ("id",), sort_by=("n",), sort_bytes=1 << 18)
try:
    rewrite_base_file(work, Source("", "00000000-in", 0, 1, (0,), f"{base}/00000000-in.parquet"), "0-0-0")
except RefusedError as error:
    print(error.problem().type, error.problem().retriable)
"""
    ran = subprocess.run([sys.executable, "-c", code, base], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.stdout.split() == ["local-disk-full", "True"], ran.stderr
    assert [path.name for path in base.glob("*.parquet")] == ["00000000-in.parquet"]


@pytest.mark.slow
def test_the_folder_of_a_killed_process_is_removed_by_the_next_one_and_that_of_a_living_one_is_not(
    temporary: Path,
) -> None:
    code = """
import sys, time
import pyarrow as pa
from jobs.dataplane.spill import SpillFolder
folder = SpillFolder()
folder.write([pa.table({"a": [1]})], 1)
print(folder.path, flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    theirs = Path(process.stdout.readline().strip())
    try:
        spill.remove_abandoned(temporary)
        assert (theirs / "1.arrow").exists()
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert theirs.exists()
    folder = SpillFolder()
    folder.write([pa.table({"a": [1]})], 1)
    assert not theirs.exists()
    folder.remove()


def test_another_error_of_the_disk_stays_what_it_is(monkeypatch: pytest.MonkeyPatch, temporary: Path) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(temporary / "nowhere"))
    with pytest.raises(OSError, match="nowhere"):
        SpillFolder().write([pa.table({"a": [1]})], 1)
    assert not isinstance(OSError(), RefusedError)
