"""Log compactions are refused, because they change rows in Hudi; and pending ones do not block other jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import RefusedError
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.hudi.table import HudiTable

WRITERS = {"hoodie.log.compaction.enable": "true", "hoodie.log.compaction.blocks.threshold": "2"}


def _schedule(table: HudiTable, client: Any) -> str:
    """Plans a log compaction by Hudi as for a writer, and returns its instant."""
    return str(client.scheduleLogCompaction(table.jvm.nothing()).get())


@pytest.mark.exhaustive
def test_a_log_compaction_is_refused_and_the_compaction_runs_beside_it(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=60, updates=2)
    table = hudi_table(spark, base, INDEX)
    with WriteClient(table, UNDER_OUR_LOCK, WRITERS) as client:
        plan = _schedule(table, client._client)
    before = tables.snapshot(spark, base)
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "compaction", {"plans": [plan]})
    assert refused.value.problem().type == "log-compaction-unsound"
    planned = run_job(spark, base, "compaction", {"plans": [plan]}, dry_run=True).details
    assert [each["type"] for each in planned["refusals"]] == ["log-compaction-unsound"]
    planned = run_job(spark, base, "rollback", {"instant": plan}, dry_run=True).details
    assert [each["type"] for each in planned["refusals"]] == ["log-compaction"]

    assert run_job(spark, base, "compaction", {"limit_bytes": 10**9}).details["left"]["file_groups"] == 0
    assert tables.snapshot(spark, base) == before
    assert not [item for item in hudi_table(spark, base, INDEX).file_slices() if item.log_files]


@pytest.mark.exhaustive
def test_hudi_still_gives_rows_new_commit_times_by_a_log_compaction(spark: SparkSession, base: Path) -> None:
    """The service refuses log compactions for this reason: when this test fails, they may be executed."""
    tables.write_table(spark, base, count=60, updates=2)
    table = hudi_table(spark, base, INDEX)
    before = _times(spark, base)
    with WriteClient(table, UNDER_OUR_LOCK, WRITERS) as client:
        plan = _schedule(table, client._client)
        begun = client._client.logCompact(plan, False)
        begun.getWriteStatuses().count()
        client._client.commitLogCompaction(plan, begun, table.jvm.nothing())
    after = _times(spark, base)
    assert {key: ts for key, (_, ts) in after.items()} == {key: ts for key, (_, ts) in before.items()}
    changed = {key for key in before if before[key] != after[key]}
    assert len(changed) == 30
    assert {after[key][0] for key in changed} == {plan}


def _times(spark: SparkSession, base: Path) -> dict[str, tuple[str, int]]:
    """Returns commit time and ordering value by record key."""
    rows = spark.read.format("hudi").load(str(base)).select("id", "_hoodie_commit_time", "ts").collect()
    return {row.id: (row["_hoodie_commit_time"], row.ts) for row in rows}
