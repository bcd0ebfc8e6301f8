"""Tables that a Flink job partitions by a `TIMESTAMP(3)` column, of which it makes paths like `2024010100`. Hudi's
readers on Spark take that column for a text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.contract import BucketIndex
from tests.flink import timeline
from tests.flink.job import FlinkJob
from tests.flink.test_beside_flink import COW, MOR
from tests.flink.test_flink_writer import BESIDE_OTHERS, change
from tests.flink.test_goes_on import stopped
from tests.flink.test_state_index import LOADED, PAUSE, STATE
from tests.integration.run import hudi_table, run_job

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.cluster import FlinkCluster

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(900)]
FIRST = datetime(2024, 1, 1, microsecond=123_000, tzinfo=UTC)
HOUR = 3600
Stored = tuple[str, str, int, str, float, str, datetime]


@dataclass(frozen=True)
class ByTime(FlinkJob):
    """A job whose table has a partition for each hour of `at`: a key has a row in each hour."""

    timestamps: bool = True
    keys: int = 600
    late: int = 450

    def table(self) -> str:
        return super().table().replace("PARTITIONED BY (part)", "PARTITIONED BY (`at`)")

    def stored(self, last: int) -> set[Stored]:
        """Returns all rows after this number: path, record key, and columns."""
        return {
            self._stored(number)
            for number in {(number // HOUR, number % self.keys): number for number in range(last + 1)}.values()
        }

    def _stored(self, number: int) -> Stored:
        key = number % self.keys
        part = "late" if key >= self.late else f"p{key % 3}"
        at = FIRST + timedelta(seconds=number)
        return f"{at:%Y%m%d%H}", f"k{key:07d}", number, f"v{number * 31}", number / 7, part, at


def job_for(base: Path, table_type: str, *, last: int = 6000, **more: Any) -> ByTime:
    # A stop of a job on copy-on-write aborts a checkpoint that is under way, and Hudi may then give out no instant.
    own: dict[str, Any] = {"checkpoint_seconds": 10, "more_settings": {PAUSE: "10 s"}} if table_type == COW else {}
    given = {"rate": 60, "options": {**BESIDE_OTHERS, "metadata.enabled": "true"}, **own, **more}
    return ByTime(base, last=last, table_type=table_type, **given)


def require_rows(spark: SparkSession, job: ByTime, index: BucketIndex | None, last: int | None = None) -> None:
    """Asserts that an audit finds nothing, and compares each row of the base files, read without Hudi. `last` is the
    job's last number so far."""
    base: Any = job.base
    audit = run_job(spark, base, "audit", index=index).details
    assert (audit["clean"], audit["stale_writes"], audit["misplaced"]) == (True, [], 0), audit
    if job.table_type == MOR:
        run_job(spark, base, "compaction", index=index)
    slices = hudi_table(spark, base, index).file_slices()
    assert not any(item.log_files for item in slices)
    found = list(_read(item.base_file or "" for item in slices))
    assert len(found) == len(set(found))
    expected = job.stored(max(row[2] for row in found) if last is None else last)
    wrong = set(found) ^ expected
    assert not wrong, (len(wrong), sorted(wrong)[:6])
    # Without logs Hudi reads by another way.
    assert run_job(spark, base, "audit", index=index).details["clean"]


def _read(files: Iterable[str]) -> Iterable[Stored]:
    names = ["_hoodie_partition_path", "_hoodie_record_key", "ver", "val", "num", "part", "at"]
    rows = pa.concat_tables([pq.read_table(name.removeprefix("file:"), columns=names) for name in files])
    for row in rows.to_pylist():
        yield tuple(row[name] for name in names)


@pytest.mark.parametrize("table_type", [MOR, COW])
def test_tables_partitioned_by_time_are_expanded_and_the_job_goes_on(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    base = tmp_path / "numbers"
    job = job_for(base, table_type)
    saved = stopped(flink, job)

    change(spark, base, 8)

    flink.wait(flink.start(replace(job, rate=2000), savepoint=saved), "FINISHED")
    timeline.wait_until_complete(base)
    require_rows(spark, job, BucketIndex(8, ("id",)), job.last)


@pytest.mark.parametrize("table_type", [MOR, COW])
def test_tables_partitioned_by_time_adopt_a_bucket_index_and_give_it_up(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    base = tmp_path / "numbers"
    # All rows are of the first hour: Flink's state has one file group for a key, whatever the partitions of its rows.
    job = job_for(base, table_type, last=3500)
    stopped(flink, replace(job, options=STATE))
    index = BucketIndex(3, ("id",))

    run_job(spark, base, "bucket_index", {"action": "adopt", "num_buckets": 3}, index=None, writers_stopped=True)

    require_rows(spark, job, index)
    flink.wait(flink.start(replace(job, last=2500, rate=1000, buckets=3)), "FINISHED")
    timeline.wait_until_complete(base)

    run_job(spark, base, "bucket_index", {"action": "drop"}, index=index, writers_stopped=True)

    require_rows(spark, job, None, 2500)
    flink.wait(flink.start(replace(job, first=2000, rate=1000, options={**STATE, LOADED: "true"})), "FINISHED")
    timeline.wait_until_complete(base)
    require_rows(spark, job, None, job.last)


def test_rows_that_a_running_job_writes_to_replaced_file_groups_are_repaired(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "numbers"
    job = job_for(base, MOR, last=40_000, rate=60, checkpoint_seconds=5)
    running = flink.start(job)
    flink.wait_for_checkpoints(running, 3)
    change(spark, base, 8)
    # Some of the rows are of the next hour, for which the job makes buckets by the old number.
    while not (base / "2024010101").exists():
        flink.wait_for_checkpoints(running, flink.checkpoints(running) + 1)
    flink.wait_for_checkpoints(running, flink.checkpoints(running) + 3)
    saved = flink.stop_with_savepoint(running)
    timeline.wait_until_complete(base)
    index = BucketIndex(8, ("id",))
    assert run_job(spark, base, "audit", index=index).details["stale_writes"]

    instants = [commit.instant for commit in timeline.commits(base) if commit.rows]
    run_job(spark, base, "repair", {"instants": instants}, index=index, writers_stopped=True)

    require_rows(spark, job, index)
    flink.wait(flink.start(replace(job, rate=8000), savepoint=saved), "FINISHED")
    timeline.wait_until_complete(base)
    require_rows(spark, job, index, job.last)
