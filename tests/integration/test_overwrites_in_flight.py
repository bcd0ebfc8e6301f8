"""An overwrite whose inflight file is empty, such as one of Flink or of Spark's row writer, counts as a write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import WritersActiveError
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.records import REPLACE
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import let_heartbeat_expire

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

EXPANSION: dict[str, Any] = {"num_buckets": 8}


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_an_expansion_waits_for_an_overwrite_that_names_no_operation_and_rolls_back_a_dead_one(
    spark: SparkSession, base: Path, version: int
) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False, version=version)
    before = tables.in_order(spark, base, 4)
    table = hudi_table(spark, base, INDEX)
    with WriteClient(table, UNDER_OUR_LOCK) as writer:
        instant = writer.new_instant()
        writer.start_replacement(instant, "INSERT_OVERWRITE_TABLE")
        meta: Any = table.meta
        meta.reloadActiveTimeline()
        requested = table.jvm.hudi.common.table.timeline.HoodieInstant.State.valueOf("REQUESTED")
        begun = meta.createNewInstant(requested, REPLACE, instant)
        meta.getActiveTimeline().transitionReplaceRequestedToInflight(begun, table.jvm.nothing())
        (inflight,) = (base / ".hoodie").rglob(f"{instant}.replacecommit.inflight")
        assert inflight.stat().st_size == 0

        assert [item.requested for item in table.pending_writes()] == [instant]
        planned = run_job(spark, base, "bucket_expansion", EXPANSION, dry_run=True).details
        assert (planned["refusals"], planned["beside"]["writers"]) == ([], [instant])
        with pytest.raises(WritersActiveError, match=instant):
            run_job(spark, base, "bucket_expansion", {**EXPANSION, "wait_seconds": 0})
    let_heartbeat_expire(base, instant)

    run_job(spark, base, "bucket_expansion", EXPANSION)

    assert not inflight.exists()
    assert proved(spark, base, 8) == before
    tables.upsert(tables.rows(spark, 0, 70, ts=9), base, options)
    assert len(proved(spark, base, 8)) == 70
