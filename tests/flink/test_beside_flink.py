"""While a Flink job writes a table, its checks raise no false alarm, and no row is lost."""

from __future__ import annotations

import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import WriterEngine
from jobs.errors import RefusedError
from tests.flink import timeline
from tests.flink.check import differences
from tests.flink.job import FlinkJob
from tests.flink.test_flink_writer import BESIDE_OTHERS
from tests.flink.test_state_index import PAUSE
from tests.integration.both_engines import compacted, require_equal
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.cluster import FlinkCluster

MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"
_MERGE_MODE = "hoodie.write.record.merge.mode"


def diagnosed(spark: SparkSession, base: Path, times: int = 6) -> list[Any]:
    """Returns the findings and the omitted checks of this number of consecutive diagnoses."""
    results = [run_job(spark, base, "diagnosis").details for _ in range(times)]
    return [each for details in results for each in (*details["findings"], *details["unchecked"])]


def finished(flink: FlinkCluster, job: FlinkJob, running: str, spark: SparkSession) -> None:
    """Stops the job, lets it send the remaining rows at once, and asserts that the table has all rows."""
    # A stop aborts a checkpoint that is under way, and Hudi may then give out no instant any more.
    flink.wait_for_checkpoints(running, flink.checkpoints(running) + 1)
    saved = flink.stop_with_savepoint(running)
    timeline.wait_until_complete(job.base)  # type: ignore[arg-type]
    flink.wait(flink.start(replace(job, rate=10_000), savepoint=saved), "FINISHED")
    timeline.wait_until_complete(job.base)  # type: ignore[arg-type]
    found = differences(spark, job.base, job.expected(), num_buckets=4)
    assert found.none, found


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_a_diagnosis_finds_nothing_while_a_job_writes_fails_over_or_stands_still(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    base = tmp_path / "numbers"
    job = FlinkJob(base, last=20_000, rate=100, table_type=table_type, checkpoint_seconds=1, options=BESIDE_OTHERS)
    job = replace(job, more_settings={PAUSE: "2 s"})
    running = flink.start(job)
    flink.wait_for_checkpoints(running, 2)
    before = flink.checkpoints(running)
    assert diagnosed(spark, base) == []
    assert flink.checkpoints(running) > before + 2

    flink.kill_task_manager()
    assert diagnosed(spark, base, 2) == []
    flink.start_task_manager()
    assert diagnosed(spark, base, 3) == []
    flink.wait(running)

    process = flink._processes["taskmanager"]
    before = flink.checkpoints(running)
    flink.wait_for_checkpoints(running, before + 1)
    process.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    try:
        assert diagnosed(spark, base, 3) == []
        time.sleep(max(0.0, began + 60 - time.monotonic()))
        assert diagnosed(spark, base, 1) == []
    finally:
        process.send_signal(signal.SIGCONT)
    assert diagnosed(spark, base, 3) == []
    flink.wait(running)
    flink.wait_for_checkpoints(running, flink.checkpoints(running) + 2)
    finished(flink, job, running, spark)
    assert diagnosed(spark, base, 1) == []


@pytest.mark.exhaustive
def test_bounded_compactions_archival_and_rollbacks_beside_a_job_keep_every_row(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "numbers"
    job = FlinkJob(base, last=30_000, rate=100, checkpoint_seconds=1, options=BESIDE_OTHERS)
    running = flink.start(job)
    flink.wait_for_checkpoints(running, 4)
    compacted = 0
    for params in ({"limit_bytes": 1}, {"limit_bytes": 200_000}, {"partitions": ["p1"]}, {}):
        compacted += len(run_job(spark, base, "compaction", params).instants)
        flink.wait_for_checkpoints(running, flink.checkpoints(running) + 1)
    assert compacted >= 3
    archived = run_job(spark, base, "archival", {"retain": 3}).details
    assert archived["archived"] > 0, archived
    # A commit of a running job is not rolled back, because the job's state counts its rows as written.
    last = hudi_table(spark, base, INDEX).commits()[-1].write.instant
    assert "flink-writer" in _types_of_refusals(spark, base, last)
    while not (pending := timeline.pending(base)):
        time.sleep(0.01)
    assert _types_of_refusals(spark, base, pending[0]) & {"writer-active", "flink-writer"}

    before = flink.savepoint(running)
    flink.wait_for_checkpoints(running, flink.checkpoints(running) + 2)
    flink.stop_with_savepoint(running)
    timeline.wait_until_complete(base)
    last = hudi_table(spark, base, INDEX).commits()[-1].write.instant
    run_job(spark, base, "rollback", {"instant": last, "table_name": "test"}, writers_stopped=True)
    assert diagnosed(spark, base, 1) == []
    # The job writes the rows again from an earlier state.
    running = flink.start(job, savepoint=before)
    flink.wait_for_checkpoints(running, 2)
    run_job(spark, base, "compaction", {"limit_bytes": 200_000})
    finished(flink, job, running, spark)
    while run_job(spark, base, "compaction", {"limit_bytes": 200_000}).details["left"]["file_groups"]:
        pass
    found = differences(spark, base, job.expected(), num_buckets=4)
    assert found.none, found
    assert diagnosed(spark, base, 1) == []


@pytest.mark.exhaustive
def test_the_metadata_table_is_compacted_beside_a_job(flink: FlinkCluster, spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "numbers"
    # Hudi's job does not compact the metadata table meanwhile.
    own = {"metadata.enabled": "true", "metadata.compaction.delta_commits": "1000"}
    job = FlinkJob(base, last=20_000, rate=100, checkpoint_seconds=1, options={**BESIDE_OTHERS, **own})
    running = flink.start(job)
    compacted = 0
    for _ in range(4):
        flink.wait_for_checkpoints(running, flink.checkpoints(running) + 3)
        done = run_job(spark, base, "metadata_table", {"action": "compact"}).details
        compacted += not done.get("nothing_to_do")
    assert compacted >= 3
    finished(flink, job, running, spark)
    assert diagnosed(spark, base, 1) == []
    found = differences(spark, base, job.expected(), num_buckets=4)
    assert found.none, found
    assert run_job(spark, base, "metadata_table", {"action": "validate"}).details["findings"] == []


@pytest.mark.exhaustive
def test_a_job_whose_options_name_no_lock_and_jobs_of_the_service_do_not_write_at_once(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "numbers"
    job = FlinkJob(base, last=20_000, rate=100, checkpoint_seconds=1, options={"metadata.enabled": "true"})
    running = flink.start(job)
    declared = {"writers_engines": (WriterEngine.FLINK,)}
    for _ in range(6):
        flink.wait_for_checkpoints(running, flink.checkpoints(running) + 1)
        for kind, params in (
            ("compaction", {}),
            ("cleaning", {"retain": 1}),
            ("metadata_table", {"action": "compact"}),
        ):
            run_job(spark, base, kind, params, declared=declared)
    assert run_job(spark, base, "metadata_table", {"action": "validate"}).details["findings"] == []
    assert flink.exceptions(running) == []
    finished(flink, job, running, spark)
    assert run_job(spark, base, "audit").details["clean"]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.exhaustive),
        pytest.param({"hoodie.write.table.version": "6"}, marks=pytest.mark.exhaustive),
        pytest.param({"hoodie.write.table.version": "8"}, marks=pytest.mark.exhaustive),
        pytest.param({"hoodie.logfile.data.block.format": "parquet"}, marks=pytest.mark.exhaustive),
        pytest.param({_MERGE_MODE: "COMMIT_TIME_ORDERING"}, marks=pytest.mark.exhaustive),
    ],
    ids=str,
)
def test_arrow_compacts_what_a_job_wrote_and_deleted_as_hudi_does(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    base = tmp_path / "numbers"
    job = FlinkJob(
        base, last=9_000, keys=300, late=250, checkpoint_seconds=1, deletes=True, options=BESIDE_OTHERS | options
    )
    running = flink.start(job)
    flink.wait_for_checkpoints(running, 4)
    assert run_job(spark, base, "compaction", {"engine": "arrow"}).instants
    flink.wait_for_checkpoints(running, flink.checkpoints(running) + 5)
    saved = flink.stop_with_savepoint(running)
    timeline.wait_until_complete(base)

    hudi, arrow = (compacted(spark, base, engine) for engine in ("hudi", "arrow"))
    require_equal(spark, hudi, arrow)
    assert sum(stat["numDeletes"] for stat in arrow.stats.values()) > 0
    if mode := options.get(_MERGE_MODE):
        assert f"hoodie.record.merge.mode={mode}" in (base / ".hoodie/hoodie.properties").read_text().split()
        # Flink writes the deletes of a batch after its rows. Ordered by commit time they win, also over a row that came
        # later in the batch: Hudi's own reader does not see the rows that the job was told to write.
        return
    assert run_job(spark, base, "compaction", {"engine": "arrow"}).instants
    flink.wait(flink.start(replace(job, rate=10_000), savepoint=saved), "FINISHED")
    timeline.wait_until_complete(base)
    run_job(spark, base, "compaction", {"engine": "arrow"})
    found = differences(spark, base, job.expected(), num_buckets=4)
    assert found.none, found
    assert diagnosed(spark, base, 1) == []


def _types_of_refusals(spark: SparkSession, base: Path, instant: str) -> set[str]:
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "rollback", {"instant": instant, "table_name": "test"})
    return {reason.type for reason in refused.value.reasons}
