"""A Flink job goes on after jobs that change more than rows: the version, the metadata table, indexes, old files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import WriterEngine
from jobs.errors import RefusedError
from tests.flink import timeline
from tests.flink.check import differences
from tests.flink.job import FlinkJob
from tests.flink.test_beside_flink import COW, MOR
from tests.flink.test_flink_writer import BESIDE_OTHERS
from tests.flink.test_state_index import PAUSE
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX
from tests.integration.test_consistent_hashing import ENGINE
from tests.integration.test_upgrade import DECLARED

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.contract import BucketIndex
    from tests.flink.cluster import FlinkCluster

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(600)]
STATISTICS = {"hoodie.metadata.index.column.stats.enable": "true"}


def job_for(base: Path, table_type: str = MOR, **options: str) -> FlinkJob:
    job = FlinkJob(base, last=6000, keys=600, late=450, rate=60, table_type=table_type, checkpoint_seconds=2)
    if table_type == COW:
        # A stop aborts a checkpoint that is under way, and Hudi may then give out no instant any more.
        job = replace(job, checkpoint_seconds=10, more_settings={PAUSE: "10 s"})
    return replace(job, options={**BESIDE_OTHERS, "metadata.enabled": "true", **options})


def stopped(flink: FlinkCluster, job: FlinkJob, running: str | None = None) -> str:
    """Stops the job after a further commit, and returns its savepoint."""
    running = running or flink.start(job)
    flink.wait_for_checkpoints(running, flink.checkpoints(running) + 2)
    saved = flink.stop_with_savepoint(running)
    timeline.wait_until_complete(job.base)  # type: ignore[arg-type]
    return saved


def goes_on(
    flink: FlinkCluster, spark: SparkSession, job: FlinkJob, saved: str, index: BucketIndex | None = INDEX
) -> None:
    """Asserts that the job writes its remaining rows, and that readers and an audit find them all."""
    base: Any = job.base
    flink.wait(flink.start(replace(job, rate=1000), savepoint=saved), "FINISHED")
    timeline.wait_until_complete(base)
    for metadata in (True, False):
        found = differences(
            spark, base, job.expected(), num_buckets=index.num_buckets if index else 0, metadata=metadata
        )
        assert found.none, (metadata, found)
    audit = run_job(spark, base, "audit", index=index).details
    assert (audit["clean"], audit["stale_writes"], audit["pending_instants"]) == (True, [], []), audit


def refusal_types(spark: SparkSession, base: Path, kind: str, params: dict[str, Any], **more: Any) -> set[str]:
    with pytest.raises(RefusedError) as error:
        run_job(spark, base, kind, params, **more)
    return {reason.type for reason in error.value.reasons}


@pytest.mark.parametrize(("table_type", "version", "to"), [(MOR, 6, 9), (COW, 8, 9), (MOR, 9, 8)])
def test_a_job_goes_on_in_the_version_that_its_table_was_given(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, table_type: str, version: int, to: int
) -> None:
    base = tmp_path / "numbers"
    job = job_for(base, table_type, **{"hoodie.write.table.version": str(version)})
    running = flink.start(job)
    flink.wait_for_checkpoints(running, 2)
    beside = {**DECLARED, "writers_stopped": False}
    assert "writers-not-stopped" in refusal_types(spark, base, "upgrade", {"to_version": to}, declared=beside)
    saved = stopped(flink, job, running)

    run_job(spark, base, "upgrade", {"to_version": to}, declared=DECLARED)

    # After an upgrade the options may still name the old version. After a downgrade such options would undo the change.
    now = {} if to > version else {"hoodie.write.table.version": str(to), "hoodie.write.auto.upgrade": "false"}
    goes_on(flink, spark, replace(job, options={**job.options, **now}), saved)
    assert hudi_table(spark, base, INDEX).version == to


def test_a_job_goes_on_with_a_metadata_table_that_was_built_anew(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "numbers"
    job = job_for(base, **STATISTICS)
    saved = stopped(flink, job)
    before = hudi_table(spark, base, INDEX).metadata_partitions

    run_job(spark, base, "metadata_table", {"action": "rebuild"}, writers_stopped=True)

    assert hudi_table(spark, base, INDEX).metadata_partitions == before
    goes_on(flink, spark, job, saved)
    assert run_job(spark, base, "metadata_table", {"action": "validate"}).details["findings"] == []


@pytest.mark.parametrize("table_type", [MOR, COW])
def test_old_files_and_instants_are_removed_in_parts_beside_a_job(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    base = tmp_path / "numbers"
    # The source must not end before the jobs of the service have.
    job = replace(job_for(base, table_type), last=20_000)
    running = flink.start(job)
    for _ in range(3):
        flink.wait_for_checkpoints(running, flink.checkpoints(running) + 1)
        if table_type == MOR:
            run_job(spark, base, "compaction")
    cleaned = run_job(spark, base, "cleaning", {"retain": 1, "files_per_clean": 2})
    assert len(cleaned.instants) > 1
    flink.wait_for_checkpoints(running, flink.checkpoints(running) + 1)
    assert run_job(spark, base, "archival", {"retain": 2}).details["archived"] > 0
    goes_on(flink, spark, job, stopped(flink, job, running))


def test_no_index_is_built_for_a_job_and_one_is_dropped_beside_it(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "numbers"
    # The source must not end before the jobs of the service have.
    job = replace(job_for(base, **STATISTICS), last=20_000)
    running = flink.start(job)
    flink.wait_for_checkpoints(running, 2)
    for index in ("record", "bloom_filters"):
        assert "index-not-kept" in refusal_types(spark, base, "index", {"action": "build", "index": index})
    assert "column_stats" in hudi_table(spark, base, INDEX).metadata_partitions
    verified = run_job(spark, base, "index").details
    assert (verified["compared"], verified["differences"]) == (["column_stats", "partition_stats"], []), verified

    run_job(spark, base, "index", {"action": "drop", "index": "column_stats"})

    goes_on(flink, spark, job, stopped(flink, job, running))
    # The options of the job name the index, so its next commit builds it again, of all files.
    verified = run_job(spark, base, "index").details
    assert (verified["compared"], verified["differences"]) == (["column_stats", "partition_stats"], []), verified


# A record index is not built on merge-on-read tables with a bucket index.
@pytest.mark.parametrize(("index", "table_type"), [("record", COW), ("column_stats", MOR), ("bloom_filters", MOR)])
def test_a_job_goes_on_with_an_index_that_was_built_for_spark(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, index: str, table_type: str
) -> None:
    base = tmp_path / "numbers"
    job = job_for(base, table_type)
    saved = stopped(flink, job)
    only_spark = {"writers_engines": (WriterEngine.SPARK,)}
    run_job(spark, base, "index", {"action": "build", "index": index}, declared=only_spark)
    assert len(hudi_table(spark, base, INDEX).metadata_partitions) > 1
    goes_on(flink, spark, job, saved)
    # The options of the job do not name the index, so its first commit drops it.
    assert hudi_table(spark, base, INDEX).metadata_partitions == {"files"}


def test_ranges_of_consistent_hashing_are_not_changed_for_a_job_whether_it_runs_or_not(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "numbers"
    job = job_for(base, **ENGINE)
    running = flink.start(job)
    flink.wait_for_checkpoints(running, 2)
    assert refusal_types(spark, base, "bucket_resize", {}, index=None) >= {"flink-may-be-running"}
    saved = stopped(flink, job, running)
    assert refusal_types(spark, base, "bucket_resize", {}, index=None, writers_stopped=True) == {"flink-may-be-running"}
    goes_on(flink, spark, job, saved, None)
