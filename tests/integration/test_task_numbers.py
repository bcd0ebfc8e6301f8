"""No two sessions give the tasks of a plan the same numbers, by which Hudi names files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from jobs.contract import Outcome
from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from jobs.hudi import task_numbers
from jobs.hudi.client import WriteClient
from jobs.hudi.jvm import jvm_of
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.services.compaction import DUE
from tests.integration import tables
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import hudi_table, run_job, work_order

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares

# Spark counts from 0, and no session of the tests has as many tasks.
COUNTED = 100_000


def test_hudi_names_files_by_numbers_that_only_this_session_has(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, table_type="MERGE_ON_READ", count=60, updates=2, partitioned=False)
    logs = [path.name for path in base.glob(".*.log.*") if path.suffix != ".crc"]
    tokens = [found.write_token for name in logs if (found := parse_log_file_name(name))]
    of_logs = len(tokens)
    tokens += [found.write_token for path in base.glob("*.parquet") if (found := parse_base_file_name(path.name))]
    assert 0 < of_logs < len(tokens)
    for token in tokens:
        _, stage, attempt = map(int, token.split("-"))
        assert min(stage, attempt) > COUNTED, token
    # Hudi reads them as integers of 32 bits.
    utils = jvm_of(spark).hudi.common.fs.FSUtils
    path = jvm_of(spark).hudi.storage.StoragePath
    assert all(utils.getTaskAttemptIdFromLogPath(path(f"/p/{name}")) > COUNTED for name in logs)


def test_a_session_keeps_its_numbers(spark: SparkSession) -> None:
    def stage() -> int:
        return int(spark.sparkContext.parallelize([1], 1).map(_stage).collect()[0])

    before = stage()
    task_numbers.begin_at_random_numbers(spark)
    assert before < stage() <= before + 2


def _stage(_: int) -> int:
    from pyspark import TaskContext

    task = TaskContext.get()
    return task.stageId() if task else -1


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", [9, 6])
def test_two_fresh_workers_name_the_files_of_one_plan_differently(
    spark: SparkSession, base: Path, spares: Spares, version: int
) -> None:
    """The first one is suspended in the midst of a file, and goes on when the second one has committed."""
    options = tables.write_table(
        spark, base, table_type="MERGE_ON_READ", version=version, count=60, updates=2, partitioned=False
    )
    before = tables.snapshot(spark, base)
    with WriteClient(hudi_table(spark, base, tables.INDEX), UNDER_OUR_LOCK, DUE) as client:
        plan = client.schedule_compaction()
    order = work_order(base, "compaction", {"plans": [plan], "engine": "hudi"})
    suspended, second = spares.take(), spares.take(is_last=True)
    seen: list[set[str]] = []
    files: dict[Path, int] = {}

    def names_of_files() -> set[str]:
        return {path.name for path in base.rglob(f"*_{plan}.parquet")}

    def the_second_commits() -> None:
        seen.append(names_of_files())
        done = second.run(replace(order, attempt=2), {"at": "end"})
        assert done.result, second.log.read_text()[-4000:]
        assert Outcome(done.result["outcome"]) is Outcome.SUCCEEDED, done
        seen.append(names_of_files())
        files.update({path: path.stat().st_mtime_ns for path in base.rglob("*.parquet")})

    point = {"at": "file", "name": f"*_{plan}.parquet", "freeze": True, "overtaken": True}
    suspended.run(order, point, meanwhile=the_second_commits)
    assert seen[0], suspended.log.read_text()[-4000:]
    assert seen[0] & seen[1] == set()
    assert {path: path.stat().st_mtime_ns for path in files} == files
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    tables.upsert(tables.rows(spark, 0, 80, ts=9), base, options)
    assert (len(tables.snapshot(spark, base)), tables.duplicates(spark, base)) == (80, 0)
    assert run_job(spark, base, "audit").details["clean"]
