"""Tests a table that was copied with pending plans, which name the original's files: no job changes those files, a
diagnosis reports the plans, and services work after their rollback."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import RefusedError
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.table_errors import PlanOfAnotherPathError
from tests.integration import tables
from tests.integration.plans import schedule_clustering
from tests.integration.run import hudi_table, run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SORTED = {"sort_by": ["city"]}


def state_of(base: Path) -> dict[str, int]:
    return {str(path.relative_to(base)): path.stat().st_size for path in base.rglob("*") if path.is_file()}


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [6, 9])
def test_a_clustering_plan_of_the_original_is_reported_refused_and_rolled_back(
    spark: SparkSession, tmp_path: Path, version: int
) -> None:
    original, copy = tmp_path / "t", tmp_path / "the copy"
    options = tables.write_table(spark, original, count=40, updates=2, version=version, num_buckets=None)
    with WriteClient(hudi_table(spark, original, None), UNDER_OUR_LOCK) as client:
        plan = schedule_clustering(client)
    shutil.copytree(original, copy)
    untouched, expected = state_of(original), tables.snapshot(spark, copy)
    before = state_of(copy)
    for kind, params in (("clustering", SORTED), ("compaction", {}), ("clustering", {"plans": [plan]})):
        planned = run_job(spark, copy, kind, params, index=None, dry_run=True).details
        assert [each["type"] for each in planned["refusals"]] == ["plan-of-another-path"]
        with pytest.raises((RefusedError, PlanOfAnotherPathError)) as refused:
            run_job(spark, copy, kind, params, index=None)
        assert refused.value.problem().type == "plan-of-another-path"
        assert plan in refused.value.problem().detail
    assert state_of(copy) == before
    details = run_job(spark, copy, "diagnosis", index=None).details
    (found,) = [each for each in details["findings"] if each["type"] == "plan-of-another-path"]
    assert found["cure"] == {"kind": "rollback", "params": {"instant": plan}}
    run_job(spark, copy, "rollback", {**found["cure"]["params"], "table_name": "test"}, index=None)
    for kind, params in (("compaction", {}), ("clustering", SORTED)):
        assert run_job(spark, copy, kind, params, index=None).details["nothing_to_do"] is False
        for metadata in (True, False):
            assert tables.snapshot(spark, copy, metadata=metadata) == expected
    tables.upsert(tables.rows(spark, 30, 50, ts=9), copy, options)
    assert len(tables.snapshot(spark, copy)) == 50
    assert run_job(spark, copy, "audit", index=None).details["clean"]
    assert state_of(original) == untouched


@pytest.mark.exhaustive
def test_a_dry_run_leaves_out_file_groups_of_pending_plans(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=40, updates=1, num_buckets=None, version=6)
    with WriteClient(hudi_table(spark, base, None), UNDER_OUR_LOCK) as client:
        plan = schedule_clustering(client)
    held = run_job(spark, base, "compaction", index=None, dry_run=True).details
    assert (held["file_groups"], held["nothing_to_do"]) == (0, True)
    assert held["notes"][0] == f"3 file groups are left out, because pending plans hold them: {plan}."
    assert run_job(spark, base, "compaction", index=None).details["nothing_to_do"]
    # The plan does not include a new partition.
    tables.upsert(tables.rows(spark, 3000, 3040).withColumn("dt", F.lit("2026-02-01")), base, options)
    free = run_job(spark, base, "clustering", SORTED, index=None, dry_run=True).details
    assert (free["file_groups"]["before"], free["nothing_to_do"]) == (1, False)
    expected = tables.snapshot(spark, base)
    assert run_job(spark, base, "clustering", SORTED, index=None).details["file_groups"]["before"] == 1
    assert tables.snapshot(spark, base) == expected
