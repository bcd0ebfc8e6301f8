"""After a SIGKILL of the worker at any step of a repair, or of the execution of a writer's plan, the next attempt
succeeds. `test_rows_out_of_use` kills repairs that take file groups out of use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from tests.integration import tables
from tests.integration.dying_job import DyingJob
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.plans import schedule_clustering
from tests.integration.run import hudi_table, proved, run_job, work_order
from tests.integration.test_stale_writes import UPDATE, UPDATED, written_stale

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(900)]

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
# The next attempt waits for the end of a heartbeat.
SOON = {"hudi_options": {"hoodie.client.heartbeat.interval_in_ms": "1000"}}
MARK, CHECK = "the mark", {"at": "step", "name": "verifying the repair"}


def timeline(version: int, name: str) -> dict[str, Any]:
    """Returns the point at which a file of this name appears on the timeline."""
    return {"at": "file", "name": f".hoodie/{'timeline/' if version > 6 else ''}{name}"}


@pytest.mark.parametrize(
    ("table_type", "version", "points"),
    [
        (MOR, 9, (timeline(9, "*.deltacommit.inflight"), CHECK, {"at": "before", "name": MARK})),
        (COW, 6, (timeline(6, "*.inflight"), {"at": "before", "name": MARK})),
    ],
)
def test_wherever_a_repair_is_killed_the_next_attempt_brings_the_rows_back_once(
    spark: SparkSession, base: Path, spares: Spares, table_type: str, version: int, points: tuple[dict[str, Any], ...]
) -> None:
    options = written_stale(spark, base, UPDATE, table_type=table_type, version=version)
    job = DyingJob(spark, work_order(base, "repair", declared=SOON), spares)
    brought = lambda: sum("'fare': -1.0" in each for each in tables.snapshot(spark, base))  # noqa: E731
    for point, death in zip(points, job.deaths(points), strict=True):
        assert death.result is None, point
        # A reader sees all rows of the repair, or none.
        assert brought() in (0, UPDATED)

    job.finish()

    assert brought() == UPDATED
    rows = proved(spark, base, 4)
    assert (len(rows), tables.left_behind(base)) == (300, [])
    assert tables.snapshot(spark, base, metadata=False) == rows
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    tables.upsert(tables.rows(spark, 0, 320, ts=9), base, options)
    assert len(proved(spark, base, 4)) == 320


def test_wherever_the_runner_of_a_writers_clustering_is_killed_the_next_attempt_executes_the_plan(
    spark: SparkSession, base: Path, spares: Spares
) -> None:
    shape: dict[str, Any] = {"num_buckets": None, "table_type": COW, "hoodie.parquet.small.file.limit": "0"}
    options = tables.write_table(spark, base, count=60, updates=2, partitioned=False, **shape)
    tables.upsert(tables.rows(spark, 60, 70), base, options)
    with WriteClient(hudi_table(spark, base, None), UNDER_OUR_LOCK) as client:
        plan = schedule_clustering(client)
    before = tables.snapshot(spark, base)
    job = DyingJob(spark, work_order(base, "clustering", {"plans": [plan]}, index=None), spares)
    for death in job.deaths(({"at": "file", "name": "*.parquet"}, {"at": "step", "name": "waiting for a moment"})):
        assert death.result is None
        assert tables.snapshot(spark, base) == before

    done = job.finish()

    assert plan in done.instants
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    assert tables.left_behind(base) == []
    tables.upsert(tables.rows(spark, 0, 80, ts=9), base, options)
    assert (len(tables.snapshot(spark, base)), tables.duplicates(spark, base)) == (80, 0)
    audit = run_job(spark, base, "audit", index=None).details
    assert (audit["clean"], audit["rows"], audit["pending_instants"]) == (True, 80, []), audit
