"""A job tells at once that a commit, whose rows it has read, was rolled back without the table's lock right before its
own commit. It does not commit after a rollback that has failed, which writers may execute later."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import CommitUndoneError, RefusedError
from jobs.hudi.client import WriteClient
from jobs.hudi.table import HudiTable
from jobs.lock_errors import LockLostError
from tests.integration import tables
from tests.integration.plans import OtherRunner
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import At

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_a_rollback_without_the_lock_right_before_the_commit_is_told(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Hudi refuses to roll back a commit before a pending replacecommit, but not one before a pending compaction."""
    options = tables.write_table(spark, base, count=60, partitioned=False, updates=2, version=version, metadata=False)
    last = hudi_table(spark, base, INDEX).completed_writes()[-1][0]
    without_lock = {name: value for name, value in options.items() if name not in tables.LOCK}
    user, commit = OtherRunner(spark, base, without_lock), WriteClient.commit_compaction

    def rolled_back_before(client: WriteClient, instant: str, begun: Any, require: Callable[[], None]) -> None:
        def after_the_last_look() -> None:
            require()
            assert user.client.rollback(last)

        commit(client, instant, begun, after_the_last_look)

    monkeypatch.setattr(WriteClient, "commit_compaction", rolled_back_before)
    [found] = run_job(spark, base, "compaction").details["audit"]["findings"]

    assert (found["type"], found["check"]) == ("rolled-back-rows", "rows of rolled back commits")
    assert f"rows of {last}, which " in found["detail"]
    assert {row["ts"] for row in tables.collected(spark, base).rows} == {0, 2}


def test_a_compaction_after_an_earlier_rollback_reads_no_rows_once_more(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False, updates=2)
    last = hudi_table(spark, base, INDEX).completed_writes()[-1][0]
    assert OtherRunner(spark, base, options).client.rollback(last)
    assert "audit" not in run_job(spark, base, "compaction").details


@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.exhaustive)])
def test_no_expansion_commits_after_a_rollback_that_has_failed(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Hudi's `rollback_to_instant` calls this client without the options of a lock, and leaves the plan behind."""
    options = tables.write_table(spark, base, count=60, partitioned=False, updates=2, version=version, metadata=False)
    last, before = hudi_table(spark, base, INDEX).completed_writes()[-1][0], tables.snapshot(spark, base)
    user = OtherRunner(spark, base, {name: value for name, value in options.items() if name not in tables.LOCK})

    def fail() -> None:
        with pytest.raises(Exception, match="please rollback greater commits first"):
            user.client.rollback(last)

    with pytest.raises(LockLostError, match="began to roll back"):
        run_job(spark, base, "bucket_expansion", {"factor": 2}, context=At("committing", fail))
    assert (tables.snapshot(spark, base), tables.left_behind(base)) == (before, [])
    monkeypatch.setattr(HudiTable, "now", lambda table: table.clock.now() + timedelta(minutes=3))
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "bucket_expansion", {"factor": 2, "wait_seconds": 20})
    assert [each.type for each in refused.value.reasons] == ["rollback-pending"]
    run_job(spark, base, "rollback", {"instant": last, "table_name": "test"})
    after = tables.snapshot(spark, base)
    assert {row["ts"] for row in tables.collected(spark, base).rows} == {0, 1}
    run_job(spark, base, "bucket_expansion", {"factor": 2})
    assert proved(spark, base, 8) == after


def test_no_expansion_commits_the_rows_of_a_commit_that_was_rolled_back_without_the_lock(
    spark: SparkSession, base: Path
) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False, updates=2, metadata=False)
    last = hudi_table(spark, base, INDEX).completed_writes()[-1][0]
    without_lock = {name: value for name, value in options.items() if name not in tables.LOCK}
    # Such a client does not look for instants in flight.
    user = OtherRunner(spark, base, {**without_lock, "hoodie.clean.failed.writes.policy": "LAZY"})

    def roll_back() -> None:
        assert user.client.rollback(last)

    with pytest.raises(CommitUndoneError, match=last):
        run_job(spark, base, "bucket_expansion", {"factor": 2}, context=At("committing", roll_back))
    after = tables.snapshot(spark, base)
    assert {row["ts"] for row in tables.collected(spark, base).rows} == {0, 1}
    run_job(spark, base, "bucket_expansion", {"factor": 2})
    assert proved(spark, base, 8) == after
