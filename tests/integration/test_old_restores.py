"""Tests that a restore, which Hudi's archiver leaves on the timeline, does not bring deleted rows back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jobs.contract import BucketIndex
from jobs.hudi.archiver import keeping
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from tests.integration import tables
from tests.integration.run import hudi_table, run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ONE = BucketIndex(1, ("id",))
AT_ONCE = {"hoodie.metadata.compact.max.delta.commits": "1"}
DELETE = {"hoodie.datasource.write.operation": "delete"}


@pytest.mark.parametrize("metadata", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_rows_that_were_deleted_stay_deleted_when_commits_after_a_restore_are_archived(
    spark: SparkSession, base: Path, *, metadata: bool
) -> None:
    """The archiver is Hudi's own, with the options of any writer, and Hudi's readers then see the deleted row."""
    options = tables.writer_options(base, num_buckets=1, partitioned=False, metadata=metadata) | AT_ONCE
    tables.upsert(tables.rows(spark, 0, 9), base, options)
    saved = run_job(spark, base, "savepoint", index=ONE).details["savepoint"]
    tables.upsert(tables.rows(spark, 0, 9, ts=1), base, options)
    run_job(spark, base, "restore", {"savepoint": saved, "table_name": "test"}, index=ONE, writers_stopped=True)
    run_job(spark, base, "savepoint", {"action": "delete", "instant": saved}, index=ONE)
    tables.upsert(tables.rows(spark, 0, 9, ts=2), base, options)
    run_job(spark, base, "compaction", index=ONE)
    tables.upsert(tables.rows(spark, 0, 1, ts=3), base, options | DELETE)
    run_job(spark, base, "compaction", index=ONE)
    right = tables.snapshot(spark, base)
    with WriteClient(hudi_table(spark, base, ONE), UNDER_OUR_LOCK, {**keeping(2), **AT_ONCE}) as client:
        client.archiver.archive()
    assert len(tables.snapshot(spark, base)) == len(right) + 1, "Hudi has mended its readers"

    assert "completion-times-unknown" in audited(spark, base)
    run_job(spark, base, "cleaning", {"retain": 5}, index=ONE)
    assert tables.snapshot(spark, base) == right
    assert audited(spark, base) == []
    tables.upsert(tables.rows(spark, 0, 9, ts=4), base, options)
    run_job(spark, base, "compaction", index=ONE)
    assert len(tables.snapshot(spark, base)) == len(right) + 1
    assert tables.snapshot(spark, base, metadata=False) == tables.snapshot(spark, base)
    assert audited(spark, base) == []


def audited(spark: SparkSession, base: Path) -> list[str]:
    """Returns the types of the audit's findings."""
    details = run_job(spark, base, "audit", index=ONE).details
    assert details["unchecked"] == []
    return [each["type"] for each in details["findings"]]
