"""No diagnosis of a healthy table finds anything, whoever writes meanwhile."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.daemon import children
from tests.acceptance.storage import pending
from tests.integration import ceaseless_writer, streaming_sink, tables
from tests.integration.run import proved, run_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"
SHAPES = [(MOR, 9), (COW, 9), (MOR, 6), (COW, 6)]


def diagnosed(spark: SparkSession, base: Path, enough: Callable[[], bool] = lambda: True, **more: Any) -> list[Any]:
    """What six diagnoses in a row, and more until it is enough, have found, and could not look at."""
    results: list[Any] = []
    while len(results) < 6 or not enough():
        results.append(run_job(spark, base, "diagnosis", **more).details)
        assert len(results) < 100
    return [each for details in results for each in (*details["findings"], *details["unchecked"])]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("table_type", "version"), SHAPES)
def test_beside_a_structured_stream(spark: SparkSession, tmp_path: Path, table_type: str, version: int) -> None:
    base = tmp_path / "numbers"
    options = tables.writer_options(base, table_type=table_type, version=version)
    with streaming_sink.running(spark, tmp_path / "stream", base, options):
        found = diagnosed(spark, base)
    assert found == []
    rows, wrong = streaming_sink.differences(spark, base)
    assert (rows, wrong) == (streaming_sink.KEYS, [])


@contextmanager
def frozen(folder: Path) -> Iterator[None]:
    """The processes that were started with a path in `folder` stand still, as on a machine that swaps, and go on."""
    here = [pid for pid in children(os.getpid()) if str(folder) in Path(f"/proc/{pid}/cmdline").read_text()]
    pids = [*here, *(child for pid in here for child in children(pid))]
    assert len(pids) >= 2
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9])
def test_beside_a_writer_that_stands_still_for_a_minute(spark: SparkSession, tmp_path: Path, version: int) -> None:
    base = tmp_path / "trips"
    options = tables.writer_options(base, version=version)
    with ceaseless_writer.running(tmp_path / "writer", base, options) as ledger:
        instant = _in_the_midst(base)
        with frozen(tmp_path / "writer"):
            began = time.monotonic()
            assert pending(base) == {instant}
            # Whoever declares that writers retry says that one without a heartbeat is dead.
            found = diagnosed(spark, base, writers_retry_conflicts=True)
            time.sleep(max(0.0, began + 60 - time.monotonic()))
            found += diagnosed(spark, base, writers_retry_conflicts=True)
        batches = len(ceaseless_writer.read(ledger))
        enough = lambda: len(ceaseless_writer.read(ledger)) >= batches + 2  # noqa: E731
        found += diagnosed(spark, base, enough, writers_retry_conflicts=True)
    assert found == []
    lines = ceaseless_writer.read(ledger)
    assert [line.error for line in lines if line.error] == []
    assert ceaseless_writer.found(spark, base) == ceaseless_writer.expected(lines)
    proved(spark, base, 4)


def _in_the_midst(base: Path) -> str:
    """The instant of the write that has just begun to write files."""
    while True:
        instants, before = pending(base), set(base.glob("p*/*"))
        if not instants:
            time.sleep(0.005)
            continue
        while pending(base) == instants:
            # Without the checksums of Hadoop's local file system.
            if {path for path in set(base.glob("p*/*")) - before if path.suffix != ".crc"}:
                return instants.pop()
