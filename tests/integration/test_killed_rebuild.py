"""After a SIGKILL of the worker process during a rebuild of the metadata table, the next attempt restores the table's
indexes and their definitions. `test_indexes` loses such an attempt without a SIGKILL, in every run."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.hudi.held_lock import FRESH_SECONDS
from jobs.hudi.metadata_table import MetadataTable
from jobs.lock_errors import LockLostError
from tests.integration import indexed, tables
from tests.integration.dying_job import DyingJob
from tests.integration.indexed import COUNT, NOTE, assert_right, index_state
from tests.integration.run import perform_order, run_job, work_order

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares

SECONDARY = {**indexed.GLOBAL, **indexed.SECONDARY_ON_CITY}
REBUILD = {"action": "rebuild"}
STOPPED = {"writers_stopped": True}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("indexes", "at", "number", "unbuilt"),
    [
        (SECONDARY, "before", 2, {"secondary_index_city"}),
        (indexed.ALL, "before", 1, None),
        (indexed.ALL, "after", 2, {"secondary_index_city"}),
    ],
    ids=["before the second", "before the first", "after the second"],
)
def test_a_killed_rebuild_is_reported_and_completed_by_the_next_one(
    spark: SparkSession,
    base: Path,
    spares: Spares,
    indexes: dict[str, str],
    at: str,
    number: int,
    unbuilt: set[str] | None,
) -> None:
    options = indexed.write(spark, base, indexes, table_type="COPY_ON_WRITE")
    rows, state = tables.snapshot(spark, base), index_state(spark, base)
    groups = indexed.file_groups(base)
    job = DyingJob(spark, work_order(base, "metadata_table", REBUILD, index=None, declared=STOPPED), spares)
    death = job.die_at({"at": at, "name": "the building", "nth": number})
    assert (death.result, (base / NOTE).exists()) == (None, True), death
    assert tables.snapshot(spark, base) == rows

    findings = run_job(spark, base, "audit", {"rows": False}, index=None).details["findings"]
    (found,) = [each for each in findings if each["type"] == "indexes-unbuilt"]
    assert unbuilt is None or set(found["detail"].split(", ")) == unbuilt
    assert (found["cure"]["kind"], found["cure"]["params"]) == ("metadata_table", REBUILD)
    job.finish()

    assert (index_state(spark, base), (base / NOTE).exists()) == (state, False)
    assert indexed.file_groups(base) == groups
    assert tables.snapshot(spark, base) == rows
    tables.upsert(tables.rows(spark, 0, COUNT, ts=3), base, options)
    assert_right(spark, base)
    assert run_job(spark, base, "audit", index=None).details["clean"]


@pytest.mark.exhaustive
def test_a_rebuild_that_was_frozen_deletes_no_metadata_table_that_the_next_attempt_has_built(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = indexed.write(spark, base, indexed.GLOBAL, table_type="COPY_ON_WRITE", partitioned=False)
    first = work_order(base, "metadata_table", REBUILD, index=None, declared=STOPPED)
    buildable, expected = MetadataTable.buildable, []

    def next_attempt_and_writer() -> None:
        perform_order(spark, replace(first, attempt=2))
        tables.upsert(tables.rows(spark, 10, COUNT + 10, ts=5), base, options)
        expected.extend([index_state(spark, base), indexed.file_groups(base)])

    def frozen(*given: Any) -> Any:
        """Stands for a worker that is suspended right before the deletion."""
        monkeypatch.undo()
        # The other worker and the writer run in another thread, because this thread has held the lock.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(next_attempt_and_writer).result()
        time.sleep(FRESH_SECONDS)
        return buildable(*given)

    monkeypatch.setattr(MetadataTable, "buildable", frozen)
    with pytest.raises(LockLostError):
        perform_order(spark, first)

    assert [index_state(spark, base), indexed.file_groups(base)] == expected
    tables.upsert(tables.rows(spark, 0, COUNT + 20, ts=6), base, options)
    assert (len(tables.snapshot(spark, base)), tables.duplicates(spark, base)) == (COUNT + 20, 0)
    assert run_job(spark, base, "audit", index=None).details["clean"]
