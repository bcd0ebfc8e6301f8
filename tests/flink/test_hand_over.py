"""Jobs replace file groups while a Flink job is stopped; rows that a running Flink job loses are repaired."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from jobs.contract import WriterEngine
from jobs.errors import RefusedError
from tests.acceptance.conftest import SETTINGS
from tests.acceptance.daemon import Daemon
from tests.flink import timeline
from tests.flink.check import differences
from tests.flink.job import FlinkJob
from tests.flink.test_flink_writer import BESIDE_OTHERS, change
from tests.integration.run import run_job
from tests.integration.writers import At

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.cluster import FlinkCluster


@pytest.mark.parametrize(
    ("kind", "number"), [("bucket_expansion", 8), pytest.param("bucket_count", 7, marks=pytest.mark.exhaustive)]
)
def test_a_change_of_the_number_stops_the_flink_job_by_itself_and_no_row_is_lost(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, kind: str, number: int
) -> None:
    base = tmp_path / "numbers"
    job = FlinkJob(base, last=3000, keys=600, late=450, rate=100, name="numbers to lake", options=BESIDE_OTHERS)
    running = flink.start(job)
    flink.wait_for_checkpoints(running, 2)
    with Daemon(tmp_path / "service", flink_hosts=urlsplit(flink.url).netloc, poll_seconds="1", **SETTINGS) as daemon:
        writers = {
            "hudi_version": "1.2.0",
            "engines": ["flink"],
            "flink": {
                "rest_url": flink.url,
                "job": "numbers to lake",
                "savepoint_folder": (tmp_path / "saved").as_uri(),
            },
        }
        table = daemon.register(base, writers=writers)
        daemon.wait_for_worker()
        asked = time.monotonic()
        done = daemon.wait(daemon.submit(table, kind, num_buckets=number))
        assert done["state"] == "succeeded", (done, daemon.log.read_text()[-4000:])
        assert done["hand_over"]["state"] == "stopped"
        assert flink.state(running) == "FINISHED"
        faster = replace(job, rate=1000)
        resumed = flink.start(faster, savepoint=done["hand_over"]["savepoint"])
        paused = time.monotonic() - asked
        flink.wait(resumed, "FINISHED")
        timeline.wait_until_complete(base)
        audit = daemon.succeed(table, "audit")
    print(f"from the order to the job running again: {paused:.1f} s")
    assert (audit["clean"], audit["stale_writes"]) == (True, [])
    found = differences(spark, base, job.expected(), num_buckets=number)
    assert found.none, found


@pytest.mark.exhaustive
def test_beside_a_running_flink_job_nothing_is_replaced(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "numbers"
    job = FlinkJob(base, last=40_000, rate=20, options=BESIDE_OTHERS)
    running = flink.start(job)
    flink.wait_for_checkpoints(running, 2)

    def commits() -> None:
        # The first may have begun before the job.
        before = len(timeline.commits(base))
        while len(timeline.commits(base)) < before + 2:
            time.sleep(0.1)

    changes: list[tuple[str, dict[str, Any]]] = [
        ("bucket_expansion", {"num_buckets": 8}),
        ("clustering", {"sort_by": ["num"]}),
        ("bucket_count", {"num_buckets": 7}),
    ]
    for kind, params in changes:
        with pytest.raises(RefusedError, match="Flink"):
            run_job(spark, base, kind, params)
        for told in ({"writers_stopped": True}, {"declared": {"writers_engines": (WriterEngine.SPARK,)}}):
            # Neither is true.
            with pytest.raises(RefusedError, match="committed by Flink"):
                run_job(spark, base, kind, params, context=At("rewriting", commits), **told)
    flink.stop_with_savepoint(running)
    timeline.wait_until_complete(base)
    assert timeline.pending(base) == []
    for kind, params in changes:
        run_job(spark, base, kind, params, writers_stopped=True)
    assert run_job(spark, base, "audit").details["clean"]
    last = max(row["ver"] for row in spark.read.format("hudi").load(str(base)).select("ver").collect())
    found = differences(spark, base, job.expected(last), num_buckets=7)
    assert found.none, found


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "number"), [("bucket_expansion", 8), ("bucket_count", 7), ("bucket_count", 3)])
def test_rows_that_a_wrongly_declared_stopped_job_writes_to_replaced_file_groups_are_repaired(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, kind: str, number: int
) -> None:
    base = tmp_path / "numbers"
    job = FlinkJob(base, last=40_000, keys=600, late=450, rate=40, checkpoint_seconds=5, options=BESIDE_OTHERS)
    running = flink.start(job)
    flink.wait_for_checkpoints(running, 3)
    change(spark, base, number, kind)
    flink.wait_for_checkpoints(running, flink.checkpoints(running) + 3)
    saved = flink.stop_with_savepoint(running)
    timeline.wait_until_complete(base)

    audit = run_job(spark, base, "audit").details
    assert not audit["clean"]
    assert {stale["operation"] for stale in audit["stale_writes"]} == {"UPSERT"}
    instants = [commit.instant for commit in timeline.commits(base)]
    run_job(spark, base, "repair", {"instants": instants}, writers_stopped=True)

    flink.wait(flink.start(replace(job, rate=8000), savepoint=saved), "FINISHED")
    timeline.wait_until_complete(base)
    audit = run_job(spark, base, "audit").details
    assert audit["clean"], audit
    found = differences(spark, base, job.expected(), num_buckets=number)
    assert found.none, found
