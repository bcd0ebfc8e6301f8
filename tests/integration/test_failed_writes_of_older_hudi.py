"""Histories of older versions of Hudi with a failed write, its rollback and a savepoint are no damage for any check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jobs.hudi.savepoints import savepoints_of
from service.lake.table import TableType
from tests.integration.old_writer import OldHudiError
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX
from tests.integration.test_older_hudi import CHANGED, Story, writer_of, writers

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.old_writer import OldWriter

__all__ = ["writers"]

pytestmark = pytest.mark.exhaustive
COW, MOR = TableType.COPY_ON_WRITE, TableType.MERGE_ON_READ
# A writer rolls back what is pending when it begins.
EAGER = {
    "hoodie.write.concurrency.mode": "single_writer",
    "hoodie.cleaner.policy.failed.writes": "EAGER",
    "hoodie.clean.failed.writes.policy": "EAGER",
}
# Fails when all files are written, before the commit.
FAILING = {
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    "hoodie.precommit.validators.single.value.sql.queries": "SELECT count(*) FROM <TABLE_NAME>#-1",
}


@pytest.mark.parametrize(
    ("version", "table_version", "table_type"),
    [
        ("0.15.0", 6, MOR),
        ("1.0.2", 8, MOR),
        ("1.1.1", 6, MOR),
        ("1.1.1", 8, COW),
    ],
)
def test_no_check_finds_anything_in_a_healthy_table(
    spark: SparkSession,
    base: Path,
    writers: dict[str, OldWriter],
    version: str,
    table_version: int,
    table_type: TableType,
) -> None:
    story = Story.begin(spark, base, writer_of(writers, version), table_type, table_version, "bucket")
    with pytest.raises(OldHudiError, match="Failed to upsert"):
        story.old.upsert(base, {**story.options, **FAILING}, 0, CHANGED, ts=2)
    [failed] = [item.requested for item in hudi_table(spark, base, INDEX).pending()]
    run_job(spark, base, "savepoint", index=INDEX)
    [saved] = savepoints_of(hudi_table(spark, base, INDEX))
    story.old.upsert(base, {**story.options, **EAGER}, 10, CHANGED, ts=3)
    story.rows |= {f"k{number}": 3 for number in range(10, CHANGED)}
    # Before table version 8 the rollback is later than the commit whose writer made it. Hudi's own reader stops at its
    # block until there is a further commit.
    story.write(0, 5, ts=3)
    story.check()
    assert failed in hudi_table(spark, base, INDEX).rollbacks()
    assert_no_findings(story, "audit", "diagnosis")

    if table_type is MOR:
        assert story.serve("compaction") == "done"
    story.write(0, CHANGED, ts=4)
    cleaned = story.serve("cleaning", {"policy": "KEEP_LATEST_FILE_VERSIONS", "retain": 2})
    assert cleaned == ("done" if table_type is COW else "nothing")
    assert story.serve("clustering", {"sort_by": ["city"]}) == "done"
    assert_no_findings(story)

    restoring = {"savepoint": saved.instant, "table_name": "test"}
    run_job(spark, base, "restore", restoring, writers_stopped=True, declared={"writers_hudi_version": version})
    story.rows |= {f"k{number}": 1 for number in range(CHANGED)}
    story.check()
    story.go_on()
    assert_no_findings(story)


def assert_no_findings(story: Story, *kinds: str) -> None:
    for kind in kinds or ("audit",):
        found = run_job(story.spark, story.base, kind, index=INDEX).details
        assert (found["findings"], found["unchecked"]) == ([], []), found
