"""After a SIGKILL of the worker at any step of the way to a bucket index, or back, the next attempt succeeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.integration import tables
from tests.integration.dying_job import DyingJob
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import run_job, work_order
from tests.integration.tables import left_behind
from tests.integration.test_bucket_index import (
    COW,
    MOR,
    STOPPED,
    bucketed,
    plain_table,
    proved,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares

ROLLED_BACK = ".hoodie/**/*.rollback"
IN_METADATA = ".hoodie/metadata/.hoodie/**/*.deltacommit.requested"

# The points at which one attempt after the other dies.
_DEATHS: list[tuple[dict[str, Any], ...]] = [
    ({"at": "file", "name": "*/*.parquet", "nth": 3}, {"at": "before", "name": "the commit"}),
    ({"at": "after", "name": "inflight"}, {"at": "after", "name": "the rollback"}),
    ({"at": "step", "name": "counting rows"}, {"at": "after", "name": "the instant"}),
    ({"at": "unheard"}, {"at": "before", "name": "inflight"}),
    ({"at": "step", "name": "waiting for writers"}, {"at": "file", "name": ROLLED_BACK}),
    ({"at": "step", "name": "committing"}, {"at": "step", "name": "rewriting", "only": "python"}),
    ({"at": "file", "name": IN_METADATA}, {"at": "before", "name": "the rollback"}),
    ({"at": "after", "name": "the commit"},),
    ({"at": "end"},),
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
    old = plain_table(spark, base, table_type=table_type, version=version, updates=1)
    before = tables.snapshot(spark, base)
    params = {"action": "adopt", "num_buckets": 4}
    job = DyingJob(spark, work_order(base, "bucket_index", params, index=None, declared=STOPPED), spares)
    for _ in job.deaths(points):
        assert tables.snapshot(spark, base) == before

    done = job.finish().details

    assert ("found_completed" in done) == (points[-1] in ({"at": "after", "name": "the commit"}, {"at": "end"}))
    assert (done["num_buckets"], done["hash_fields"]) == (4, ["id"])
    assert proved(spark, base, tables.INDEX) == before
    assert left_behind(base) == []
    tables.upsert(tables.rows(spark, 250, 320, ts=9), base, bucketed(old, done))
    assert len(proved(spark, base, tables.INDEX)) == 320


# Points of the way back; a copy-on-write table has no logs to compact.
_DEATHS_OF_DROP: list[tuple[str, tuple[dict[str, Any], ...]]] = [
    (MOR, ({"at": "step", "name": "scheduling"}, {"at": "before", "name": "the compaction"})),
    (MOR, ({"at": "file", "name": "*/*.parquet", "nth": 2}, {"at": "before", "name": "the mark"})),
    (MOR, ({"at": "after", "name": "the commit of the compaction"}, {"at": "after", "name": "the mark"})),
    (COW, ({"at": "before", "name": "the mark"}, {"at": "file", "name": ".hoodie/timeline/*.inflight"})),
    (COW, ({"at": "end"},)),
]


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("table_type", "points"), _DEATHS_OF_DROP)
def test_wherever_the_worker_is_killed_the_index_is_given_up_by_the_next_attempt(
    spark: SparkSession, base: Path, spares: Spares, table_type: str, points: tuple[dict[str, Any], ...]
) -> None:
    options = tables.write_table(spark, base, count=60, table_type=table_type)
    tables.upsert(tables.rows(spark, 40, 90, ts=1), base, options)
    before = tables.snapshot(spark, base)
    soon = {"hudi_options": {"hoodie.client.heartbeat.interval_in_ms": "1000"}}
    job = DyingJob(spark, work_order(base, "bucket_index", {"action": "drop"}, declared=STOPPED | soon), spares)
    for point, death in zip(points, job.deaths(points), strict=True):
        assert death.result is None or point["at"] == "end"
        assert tables.snapshot(spark, base) == before

    job.finish()

    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before
    assert left_behind(base) == []
    audit = run_job(spark, base, "audit", index=None).details
    assert (audit["clean"], audit["pending_instants"]) == (True, []), audit
    plain = tables.writer_options(base, table_type=table_type, num_buckets=None)
    tables.upsert(tables.rows(spark, 0, 95, ts=3), base, {**plain, "hoodie.index.type": "SIMPLE"})
    assert len(tables.snapshot(spark, base)) == 95
    assert tables.duplicates(spark, base) == 0
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
