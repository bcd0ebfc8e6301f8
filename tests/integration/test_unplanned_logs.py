"""Tests writers that begin while a compaction is planned, before table version 8: the plan does not name their logs.
The plan's instant is earlier than the writer's, but the plan's file appears later, so in Hudi neither of them sees the
other."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from jobs.format.instants import instant_of, wall_clock
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.job_params import CompactionEngine
from jobs.services.compaction import DUE
from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import HeldWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = 60


def planned_beside(spark: SparkSession, base: Path, options: dict[str, str]) -> tuple[HeldWriter, str]:
    """Yields an inflight writer, and the plan of a compaction that does not include its logs."""
    writer = HeldWriter(tables.rows(spark, 0, ROWS, ts=5), base, options).start()
    table = hudi_table(spark, base, INDEX)
    (begun,) = table.pending_writes()
    instant = instant_of(wall_clock(begun.requested) - timedelta(milliseconds=1))
    with WriteClient(table, UNDER_OUR_LOCK, DUE) as client:
        assert client._client.scheduleCompactionAtInstant(instant, table.jvm.nothing())
    return writer, instant


def newest(spark: SparkSession, base: Path) -> int:
    """Returns the number of rows with the writer's values."""
    return spark.read.format("hudi").load(str(base)).where("ts = 5").count()


@pytest.mark.parametrize(
    "engine", [CompactionEngine.ARROW, pytest.param(CompactionEngine.HUDI, marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("ended", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_a_plan_gets_the_logs_of_a_writer_that_did_not_know_of_it(
    spark: SparkSession, base: Path, engine: CompactionEngine, ended: bool
) -> None:
    options = tables.write_table(spark, base, count=ROWS, updates=1, partitioned=False, version=6, metadata=ended)
    writer, plan = planned_beside(spark, base, options)
    if ended:
        writer.let_go()
        writer.finish()
        tables.upsert(tables.rows(spark, 0, 9, ts=5), base, options)
    else:
        writer.let_go_after(3)

    done = run_job(spark, base, "compaction", {"engine": engine})

    writer.finish()
    assert plan in done.instants
    assert newest(spark, base) == ROWS
    assert len(tables.snapshot(spark, base, metadata=False)) == ROWS
    assert run_job(spark, base, "audit").details["clean"]
    tables.upsert(tables.rows(spark, 0, ROWS + 5, ts=6), base, options)
    assert len(tables.snapshot(spark, base)) == ROWS + 5


@pytest.mark.exhaustive
def test_an_audit_sees_logs_that_a_compaction_has_left(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=ROWS, updates=1, partitioned=False, version=6)
    writer, plan = planned_beside(spark, base, options)
    writer.let_go()
    writer.finish()
    assert newest(spark, base) == ROWS
    assert run_job(spark, base, "audit").details["clean"]
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK) as client:
        begun = client.begin_compaction(plan)
        client.execute_compaction(begun)
        client.commit_compaction(plan, begun)
    assert newest(spark, base) == 0

    findings = run_job(spark, base, "audit", {"rows": False}).details["findings"]

    assert [each["type"] for each in findings] == ["compaction-left-logs"]
    assert f"left by {plan}" in findings[0]["detail"]
