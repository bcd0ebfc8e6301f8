"""No diagnosis of a healthy table finds anything while writers run."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex
from jobs.hudi.table import HudiTable
from tests.acceptance.daemon import children
from tests.acceptance.storage import pending
from tests.integration import ceaseless_writer, sql_writer, streaming_sink, tables
from tests.integration.run import proved, run_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"
STATEMENTS = {"merge", "update", "overwrite", "delete"}
SEED = 54  # has all of them soon
SHAPES = [(MOR, 9), (COW, 9), (MOR, 6), (COW, 6)]


def diagnosed(spark: SparkSession, base: Path, enough: Callable[[], bool] = lambda: True, **more: Any) -> list[Any]:
    """Returns the findings and the omitted checks of at least six consecutive diagnoses, until `enough`."""
    results: list[Any] = []
    while len(results) < 6 or not enough():
        results.append(run_job(spark, base, "diagnosis", **more).details)
        assert len(results) < 100
    return [each for details in results for each in (*details["findings"], *details["unchecked"])]


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_a_diagnosis_finds_nothing_whatever_is_written_between_its_two_readings(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch, table_type: str
) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False, table_type=table_type)
    partitions, written = HudiTable.partitions, []

    def write_first(self: HudiTable) -> list[str]:
        """Writes a whole batch before each listing of the storage."""
        written.append(len(written) + 1)
        tables.upsert(tables.rows(spark, 0, 60, ts=written[-1]), base, options)
        return partitions(self)

    monkeypatch.setattr(HudiTable, "partitions", write_first)
    details = run_job(spark, base, "diagnosis", {"rows": False}).details
    assert (details["findings"], details["unchecked"]) == ([], [])
    assert run_job(spark, base, "metadata_table").details["findings"] == []
    assert len(written) >= 4


@pytest.mark.exhaustive
@pytest.mark.parametrize(("table_type", "version"), SHAPES[:1])
def test_a_diagnosis_finds_nothing_beside_a_session_of_spark_sql(
    spark: SparkSession, tmp_path: Path, table_type: str, version: int
) -> None:
    base = tmp_path / "sales"
    with sql_writer.running(tmp_path / "user", base, table_type=table_type, version=version, seed=SEED) as user:
        user.give({**tables.LOCK, "hoodie.bucket.index.query.pruning": "false"})
        declared: dict[str, Any] = {"index": BucketIndex(2, ("id",)), "writers_query_pruning_off": True}
        found = diagnosed(spark, base, lambda: user.ledger().done.keys() >= STATEMENTS, **declared)
    assert found == []
    ledger = user.ledger()
    assert sql_writer.found(spark, base) == (ledger.rows, 0)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("table_type", "version"), SHAPES)
def test_a_diagnosis_finds_nothing_beside_a_structured_stream(
    spark: SparkSession, tmp_path: Path, table_type: str, version: int
) -> None:
    base = tmp_path / "numbers"
    options = tables.writer_options(base, table_type=table_type, version=version)
    with streaming_sink.running(spark, tmp_path / "stream", base, options):
        found = diagnosed(spark, base)
    assert found == []
    rows, wrong = streaming_sink.differences(spark, base)
    assert (rows, wrong) == (streaming_sink.KEYS, [])


@contextmanager
def frozen(folder: Path) -> Iterator[None]:
    """Suspends the processes that were started with a path in `folder`, as on a swapping machine, and continues
    them."""
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
@pytest.mark.parametrize("version", [9, 6])
def test_a_diagnosis_finds_nothing_beside_a_writer_that_is_frozen_for_a_minute(
    spark: SparkSession, tmp_path: Path, base: Path, version: int
) -> None:
    options = tables.writer_options(base, version=version)
    with ceaseless_writer.running(tmp_path / "writer", base, options) as ledger:
        instant = _in_the_midst(base)
        with frozen(tmp_path / "writer"):
            began = time.monotonic()
            assert pending(base) == {instant}
            # A writer without a heartbeat counts as dead if the table declares that its writers retry.
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
    """Waits for a write that has just begun to write files, and returns its instant."""
    while True:
        instants, before = pending(base), set(base.glob("p*/*"))
        if not instants:
            time.sleep(0.005)
            continue
        while pending(base) == instants:
            # The checksums of Hadoop's local file system do not count as files of the write.
            if {path for path in set(base.glob("p*/*")) - before if path.suffix != ".crc"}:
                return instants.pop()
