"""A million files are cleaned with a small heap, in several cleans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jobs.contract import JobKind, WorkOrder
from jobs.kinds.cleaning import FILES_PER_CLEAN
from tests.integration import tables
from tests.integration.doomed import Spares, Surroundings
from tests.integration.many_files import data_files, fill
from tests.integration.run import hudi_table
from tests.integration.tables import INDEX
from tests.support.session_jars import jars_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_a_small_heap_is_enough_for_a_million_files_and_a_killed_worker_deletes_none_twice(
    spark: SparkSession, tmp_path: Path, base: Path
) -> None:
    options = tables.write_table(spark, base, count=60, table_type="COPY_ON_WRITE", metadata=False)
    tables.upsert(tables.rows(spark, 0, 60, ts=2), base, options)
    deletable = fill(base, partitions=10_000, groups=10, versions=10)
    all_files = len(data_files(base))
    order = WorkOrder("job_killed", 1, JobKind.CLEANING, hudi_table(spark, base, INDEX).declared, {"retain": 1})
    spares = Spares(jars_of(spark), tmp_path, Surroundings(heap="512m"))
    killed = spares.take().run(order, {"at": "after", "name": "the clean", "nth": 3})
    left = len(data_files(base))
    # A clean has all 9 files of a group or none.
    assert 3 * (FILES_PER_CLEAN - 9) < all_files - left <= 3 * FILES_PER_CLEAN

    done = spares.take(is_last=True).run(order, {"at": "end"})

    assert done.result
    details = done.result["details"]
    print("MiB of Python and the JVM:", killed.memory, done.memory, details)
    assert details["files_deleted"] == left - len(data_files(base))
    assert deletable <= all_files - len(data_files(base)) <= deletable + 12
    assert details["failed_deletes"] == 0
    # The steps say how far the job is.
    assert sum(step.startswith("deleting: clean") for step in done.steps) == details["cleans"] == 7
    # Beside its heap a JVM needs some 300 MiB for classes, compiled code and threads.
    assert max(killed.memory[0], done.memory[0]) < 512
    assert max(killed.memory[1], done.memory[1]) < 512 + 400
