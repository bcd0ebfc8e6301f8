"""Wherever in a job its disk fills up, the error has its name, no row changes, and the next attempt succeeds."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import JobError
from jobs.job_context import JobContext
from jobs.storage_errors import StorageFullError
from tests.integration import tables
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import perform_order, run_job, work_order
from tests.support import unwritable

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1800)]

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
PAGE = 4096
# Pages that are left when the disk fills up: too few for a data file, and enough for some files.
ROOM = (1, 12)


@dataclass(frozen=True)
class Case:
    kind: str
    params: dict[str, Any] = field(default_factory=dict)
    table_type: str = MOR
    metadata: bool = True


CASES = {
    "expansion": Case("bucket_expansion", {"factor": 2}),
    "compaction": Case("compaction"),
    "compaction by Hudi": Case("compaction", {"engine": "hudi"}),
    "clustering in buckets": Case("clustering", {"sort_by": ["city"]}),
    "expansion without metadata table": Case("bucket_expansion", {"factor": 2}, COW, metadata=False),
}


class Filling(JobContext):
    """Fills the disk at the beginning of the given step, and notes all steps."""

    def __init__(self, disk: Path, number: int = 0, room: int = 0) -> None:
        super().__init__()
        self.seen: list[str] = []
        self._disk, self._number, self._room = disk, number, room

    def step(self, name: str, *, bytes_total: int = 0) -> None:
        super().step(name, bytes_total=bytes_total)
        self.seen.append(name)
        if len(self.seen) == self._number:
            (self._disk / "room").write_bytes(bytes(PAGE * self._room))
            unwritable.fill(self._disk)
            (self._disk / "room").unlink()


@pytest.mark.parametrize("name", CASES)
def test_wherever_the_disk_fills_up_no_row_changes_and_the_next_attempt_succeeds(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    case, disk = CASES[name], tmp_path / "disk"
    shape: dict[str, Any] = {"table_type": case.table_type, "partitioned": False, "metadata": case.metadata}
    with unwritable.small_disk(disk, "64m"):
        base, kept = disk / "trips", tmp_path / "kept"
        options = tables.write_table(spark, base, count=40, updates=2, **shape)
        tables.upsert(tables.rows(spark, 40, 60), base, options)
        before = tables.snapshot(spark, base)
        shutil.copytree(base, kept)
        order = work_order(base, case.kind, case.params)
        whole = Filling(disk)
        perform_order(spark, order, whole)
        failures = 0
        for number in range(1, len(whole.seen) + 1):
            for room in ROOM[: 1 if number == 1 else None]:
                where = f"{name}, step {number}: {whole.seen[number - 1]}, {room} pages"
                shutil.rmtree(base)
                shutil.copytree(kept, base)
                context = Filling(disk, number, room)
                error: JobError | None = None
                try:
                    perform_order(spark, order, context)
                except JobError as failed:
                    error = failed
                    failures += 1
                assert error is None or isinstance(error, StorageFullError), (where, error)
                assert tables.snapshot(spark, base) == before, where
                (disk / "filling").unlink()
                assert tables.snapshot(spark, base, metadata=False) == before, where
                perform_order(spark, replace(order, attempt=2, earlier_instants=tuple(context.instants)))
                assert tables.left_behind(base) == [], where
                assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before, where
                assert rows_by_hudi_rs(base) == rows_by_spark(spark, base), where
                audit = run_job(spark, base, "audit").details
                assert (audit["clean"], audit["rows"]) == (True, 60), (where, audit)
                tables.upsert(tables.rows(spark, 0, 70, ts=9), base, options)
                assert (len(tables.snapshot(spark, base)), tables.duplicates(spark, base)) == (70, 0), where
        assert failures > 1
