"""A Flink batch overwrites a table (`INSERT OVERWRITE`) after, and in the midst of, jobs of this service. Hudi
(1.2.0) gives the new file groups the ids of those that it replaces if the writers do not block each other (NBCC), and
no reader sees a row of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import RefusedError
from tests.flink import timeline
from tests.flink.check import differences
from tests.flink.job import FlinkJob
from tests.flink.test_beside_flink import COW, MOR
from tests.flink.test_flink_writer import BESIDE_OTHERS
from tests.integration import tables
from tests.integration.run import run_job
from tests.integration.writers import At

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.cluster import FlinkCluster

NON_BLOCKING = {
    **tables.LOCK,
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "metadata.enabled": "true",
}
KEYS, LATE = 300, 250


@dataclass(frozen=True)
class Overwrite(FlinkJob):
    """Overwrites the whole table with its numbers, as a batch."""

    def settings(self) -> dict[str, str]:
        return {**super().settings(), "execution.runtime-mode": "batch"}

    def statements(self) -> list[str]:
        source, table, insert = super().statements()
        bound = f"'number-of-rows' = '{self.last - self.first + 1}'"
        return [source.replace("WITH (", f"WITH ({bound}, "), table, insert.replace("INSERT INTO", "INSERT OVERWRITE")]


def job_of(base: Path, options: dict[str, str], **more: Any) -> FlinkJob:
    return FlinkJob(base, last=599, keys=KEYS, late=LATE, rate=2000, checkpoint_seconds=1, options=options, **more)


def overwrite_of(job: FlinkJob, first: int) -> FlinkJob:
    return Overwrite(
        job.base,
        first=first,
        last=first + KEYS - 1,
        keys=KEYS,
        late=LATE,
        rate=10_000,
        parallelism=1,
        table_type=job.table_type,
        options=job.options,
    )


def finished(flink: FlinkCluster, base: Path, job: FlinkJob) -> None:
    """Runs the job to its last commit. A job of this service may have an instant meanwhile."""
    before = set(timeline.pending(base)) if base.exists() else set()
    flink.wait(flink.start(job), "FINISHED")
    deadline = time.monotonic() + timeline.PATIENCE_SECONDS
    while left := set(timeline.pending(base)) - before:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def test_an_overwrite_that_hides_its_own_rows_is_found_and_rolled_back(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "numbers"
    job = job_of(base, NON_BLOCKING, parallelism=1)
    finished(flink, base, job)
    assert run_job(spark, base, "audit").details["clean"]

    finished(flink, base, overwrite_of(job, 600))

    assert spark.read.format("hudi").load(str(base)).count() == 0
    audit = run_job(spark, base, "audit").details
    [hidden] = audit["stale_writes"]
    assert (audit["clean"], hidden["operation"], hidden["doubt"]) == (False, "INSERT_OVERWRITE_TABLE", "itself")
    # A cleaning would delete the only files with these rows, and with those from before.
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "cleaning", {"retain": 1})
    assert [each.type for each in refused.value.reasons] == ["stale-write-committed"]

    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "repair", {"instants": [hidden["instant"]]})
    assert [each.type for each in refused.value.reasons] == ["overwrite-hides-itself"]

    run_job(spark, base, "rollback", {"instant": hidden["instant"], "table_name": "test"}, writers_stopped=True)

    assert differences(spark, base, job.expected(), num_buckets=4).none
    assert run_job(spark, base, "audit").details["clean"]
    finished(flink, base, replace(job, first=600, last=899))
    assert differences(spark, base, job.expected(899), num_buckets=4).none


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_the_rows_of_an_overwrite_after_or_during_a_job_are_those_that_remain(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    base = tmp_path / "numbers"
    job = job_of(base, {**BESIDE_OTHERS, "metadata.enabled": "true"}, table_type=table_type)
    finished(flink, base, job)
    run_job(spark, base, "bucket_expansion", {"num_buckets": 8}, writers_stopped=True)
    finished(flink, base, overwrite_of(job, 600))
    assert differences(spark, base, job.expected(899), num_buckets=8).none

    first = 900
    jobs: dict[str, dict[str, Any]] = {"clustering": {"sort_by": ["num"]}, "bucket_expansion": {"num_buckets": 16}}
    if table_type == MOR:
        finished(flink, base, replace(job, first=600, last=899))
        jobs = {"compaction": {}, **jobs}
    for kind, params in jobs.items():
        begun: list[int] = []

        def overwrite_now(first: int = first, begun: list[int] = begun) -> None:
            begun.append(first)
            finished(flink, base, overwrite_of(job, first))

        step = "comparing" if kind == "compaction" else "rewriting"
        run_job(spark, base, kind, params, writers_stopped=True, context=At(step, overwrite_now))
        assert begun
        buckets = 16 if kind == "bucket_expansion" else 8
        found = differences(spark, base, job.expected(first + KEYS - 1), num_buckets=buckets)
        assert found.none, (kind, found)
        assert run_job(spark, base, "audit").details["clean"]
        first += KEYS
    run_job(spark, base, "cleaning", {"retain": 1})
    finished(flink, base, replace(job, first=first, last=first + KEYS - 1))
    assert differences(spark, base, job.expected(first + KEYS - 1), num_buckets=16).none
