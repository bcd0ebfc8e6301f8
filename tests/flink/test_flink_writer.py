"""Tests the service's assumptions about Flink jobs with a real one."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from jobs.contract import Outcome
from jobs.errors import RefusedError
from tests.flink import timeline
from tests.flink.check import differences
from tests.flink.job import FlinkJob
from tests.integration import tables
from tests.integration.run import run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.cluster import FlinkCluster

# A Flink job beside other writers takes the same lock as they do. The job does not look for conflicts, because under
# optimistic concurrency control its own commits would conflict.
BESIDE_OTHERS = {
    **tables.LOCK,
    "hoodie.write.concurrency.mode": "single_writer",
    "write.extra.metadata.enabled": "true",
}


def change(spark: SparkSession, base: Path, num_buckets: int, kind: str = "bucket_expansion") -> None:
    """Changes the number of buckets, although a Flink job may be running: if it commits meanwhile, the change is
    refused, and tried again."""
    params = {"num_buckets": num_buckets, "settle_seconds": 0}
    for _ in range(10):
        try:
            result = run_job(spark, base, kind, params, writers_stopped=True)
        except RefusedError as error:
            if [each.type for each in error.reasons] != ["flink-may-be-running"]:
                raise
        else:
            assert result.outcome is Outcome.SUCCEEDED
            return
    raise AssertionError("the job always commits meanwhile")


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_a_flink_job_is_detected_by_its_files_and_an_idle_one_commits_nothing(
    flink: FlinkCluster, tmp_path: Path, table_type: str
) -> None:
    base = tmp_path / "numbers"
    job = FlinkJob(base, last=100, checkpoint_seconds=1, stays=True, table_type=table_type, options=BESIDE_OTHERS)
    running = flink.start(job)
    flink.wait_for_checkpoints(running, 6)
    flink.stop_with_savepoint(running)
    timeline.wait_until_complete(base)

    commits = timeline.commits(base)
    assert {commit.operation for commit in commits} == {"UPSERT"}
    assert {commit.inflight_bytes for commit in commits} == {0}
    # The number is the number of the previous checkpoint, and -1 for a job's first one.
    numbers = [int(commit.extra["flink_checkpoint_id"]) for commit in commits]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == -1
    # Each checkpoint has a commit, even if there was nothing to write.
    assert commits[0].files > 0
    assert commits[-1].files == 0
    assert len(commits) >= 5
    # Only Flink's writers share the address of their timeline server by a file.
    assert (base / ".hoodie" / ".aux" / "view_storage_conf").exists()


@pytest.mark.exhaustive
def test_by_default_a_flink_job_leaves_no_mark_in_its_commits_and_locks_elsewhere(
    flink: FlinkCluster, tmp_path: Path
) -> None:
    base = tmp_path / "numbers"
    running = flink.start(FlinkJob(base, last=100, checkpoint_seconds=1, stays=True))
    locks = set()
    while flink.checkpoints(running) < 4:
        with suppress(FileNotFoundError):  # A folder may vanish while it is listed.
            locks |= {path.parent.name for path in (base / ".hoodie").glob("**/lock")}
        time.sleep(0.005)
    flink.stop_with_savepoint(running)
    timeline.wait_until_complete(base)

    commits = timeline.commits(base)
    assert {key for commit in commits for key in commit.extra} == {"schema"}
    assert {commit.inflight_bytes for commit in commits} == {0}
    assert (base / ".hoodie" / ".aux" / "view_storage_conf").exists()
    # The lock is not in `.hoodie`, where every other writer of Hudi has its filesystem lock.
    assert locks == {".aux"}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "number"), [("bucket_expansion", 8), ("bucket_count", 7), ("bucket_count", 3)])
def test_a_job_that_was_stopped_is_given_the_new_number_of_buckets_whatever_its_options_say(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, kind: str, number: int
) -> None:
    base = tmp_path / "numbers"
    job = FlinkJob(base, last=2000, keys=600, late=450, rate=50, options=BESIDE_OTHERS)
    running = flink.start(job)
    flink.wait_for_checkpoints(running, 1)
    before = flink.savepoint(running)
    flink.wait_for_checkpoints(running, 3)
    stopped = flink.stop_with_savepoint(running)
    # Flink calls a job finished while its coordinator still commits.
    timeline.wait_until_complete(base)
    change(spark, base, number, kind)

    faster = replace(job, rate=500)
    flink.wait(flink.start(faster, savepoint=stopped), "FINISHED")
    timeline.wait_until_complete(base)
    found = differences(spark, base, job.expected(), num_buckets=number)
    assert found.none, found

    # The job repeats all writes after an older savepoint, and the ordering field lets no old row win.
    flink.wait(flink.start(faster, savepoint=before), "FINISHED")
    timeline.wait_until_complete(base)
    for metadata in (True, False):
        found = differences(spark, base, job.expected(), num_buckets=number, metadata=metadata)
        assert found.none, found
