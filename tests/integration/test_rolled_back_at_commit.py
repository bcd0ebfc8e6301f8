"""A job tells at once that a commit, whose rows it has read, was rolled back without the table's lock right before its
own commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.hudi.client import WriteClient
from tests.integration import tables
from tests.integration.plans import OtherRunner
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX

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
