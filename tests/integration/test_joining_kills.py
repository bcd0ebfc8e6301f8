"""After a SIGKILL of the worker at any step of a join of small files, the next attempt succeeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.integration import tables
from tests.integration.dying_job import DyingJob
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import hudi_table, run_job, work_order

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
ROLLED_BACK = ".hoodie/**/*.rollback"
IN_METADATA = ".hoodie/metadata/.hoodie/**/*.deltacommit.requested"
FOUND = ({"at": "after", "name": "the commit"}, {"at": "end"})

# The points at which one attempt after the other dies.
_DEATHS: list[tuple[dict[str, Any], ...]] = [
    ({"at": "file", "name": "*/*.parquet", "nth": 2}, {"at": "before", "name": "the commit"}),
    ({"at": "after", "name": "inflight"}, {"at": "after", "name": "the rollback"}),
    ({"at": "unheard"}, {"at": "before", "name": "inflight"}),
    ({"at": "step", "name": "rewriting", "only": "python"}, {"at": "file", "name": ROLLED_BACK}),
    ({"at": "step", "name": "waiting for writers"}, {"at": "step", "name": "committing"}),
    ({"at": "file", "name": IN_METADATA}, {"at": "before", "name": "the rollback"}),
    *((each,) for each in FOUND),
]


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize("points", _DEATHS)
@pytest.mark.parametrize(("table_type", "version"), [(MOR, 9), (COW, 6)])
def test_wherever_the_worker_is_killed_the_next_attempt_succeeds(
    spark: SparkSession,
    base: Path,
    spares: Spares,
    table_type: str,
    version: int,
    points: tuple[dict[str, Any], ...],
) -> None:
    alone = {"hoodie.parquet.small.file.limit": "0"}
    options = tables.writer_options(base, table_type=table_type, version=version, num_buckets=None, **alone)
    for first in (0, 60, 120):
        tables.upsert(tables.rows(spark, first, first + 60).coalesce(1), base, options)
    tables.upsert(tables.rows(spark, 30, 90, ts=1), base, options)
    before = tables.snapshot(spark, base)
    job = DyingJob(spark, work_order(base, "clustering", index=None), spares)
    for point, death in zip(points, job.deaths(points), strict=True):
        assert death.result is None or point["at"] == "end"
        assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before

    done = job.finish().details

    assert ("found_completed" in done) == (points[-1] in FOUND)
    assert len(hudi_table(spark, base, None).file_slices()) == 3
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before
    assert tables.left_behind(base) == []
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    tables.upsert(tables.rows(spark, 150, 220, ts=9), base, options)
    found = tables.snapshot(spark, base)
    assert (len(found), tables.duplicates(spark, base)) == (220, 0)
    audit = run_job(spark, base, "audit", index=None).details
    assert (audit["clean"], audit["pending_instants"]) == (True, []), audit
