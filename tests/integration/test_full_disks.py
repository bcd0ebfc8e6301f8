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

    from jobs.contract import BucketIndex

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
PAGE = 4096
# Pages that are left when the disk fills up: too few for a data file, and enough for some files.
ROOM = (1, 12)


@dataclass(frozen=True)
class Case:
    kind: str
    params: dict[str, Any] = field(default_factory=dict)
    table_type: str = MOR
    index: BucketIndex | None = tables.INDEX
    metadata: bool = True


CASES = {
    "expansion": Case("bucket_expansion", {"factor": 2}),
    "compaction": Case("compaction"),
    "compaction by Hudi": Case("compaction", {"engine": "hudi"}),
    "clustering in buckets": Case("clustering", {"sort_by": ["city"]}),
    "joined files": Case("clustering", {}, COW, None),
    "sorted by Hudi": Case("clustering", {"sort_by": ["city"]}, COW, None),
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


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", CASES)
def test_wherever_the_disk_fills_up_no_row_changes_and_the_next_attempt_succeeds(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    case, disk = CASES[name], tmp_path / "disk"
    index = case.index
    shape: dict[str, Any] = {"table_type": case.table_type, "partitioned": False, "metadata": case.metadata}
    shape["num_buckets"] = index.num_buckets if index else None
    more = {} if index else {"hoodie.parquet.small.file.limit": "0"}
    with unwritable.small_disk(disk, "64m"):
        base, kept = disk / "trips", tmp_path / "kept"
        options = {**tables.write_table(spark, base, count=40, updates=2, **shape), **more}
        tables.upsert(tables.rows(spark, 40, 60), base, options)
        before = tables.snapshot(spark, base)
        shutil.copytree(base, kept)
        order = work_order(base, case.kind, case.params, index=index)
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
                audit = run_job(spark, base, "audit", index=index).details
                assert (audit["clean"], audit["rows"]) == (True, 60), (where, audit)
                tables.upsert(tables.rows(spark, 0, 70, ts=9), base, options)
                assert (len(tables.snapshot(spark, base)), tables.duplicates(spark, base)) == (70, 0), where
        assert failures > 1


@pytest.mark.parametrize("is_killed", [True, pytest.param(False, marks=pytest.mark.exhaustive)])
def test_a_rollback_of_the_metadata_table_that_could_not_be_written_is_continued(
    spark: SparkSession, tmp_path: Path, is_killed: bool
) -> None:
    disk = tmp_path / "disk"
    with unwritable.small_disk(disk, "64m"):
        base = disk / "trips"
        options = tables.write_table(spark, base, count=60, partitioned=False)
        before = tables.snapshot(spark, base)
        order = work_order(base, "clustering", {"sort_by": ["city"]})
        context = Filling(disk, 3, 12)
        with pytest.raises(StorageFullError):
            perform_order(spark, order, context)
        (disk / "filling").unlink()
        internal = base / ".hoodie/metadata/.hoodie"
        [plan] = (internal / "timeline").glob("*.rollback.requested")
        if is_killed:
            # A process that has failed removes its heartbeat; one that is killed leaves it.
            (internal / ".heartbeat" / plan.name.partition(".")[0]).touch(exist_ok=False)
        else:
            tables.upsert(tables.rows(spark, 0, 1, ts=1), base, {**options, "hoodie.clean.automatic": "true"})
            before = tables.snapshot(spark, base)
        perform_order(spark, replace(order, attempt=2, earlier_instants=tuple(context.instants)))
        assert tables.left_behind(base) == []
        assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before
        assert run_job(spark, base, "audit").details["clean"]
