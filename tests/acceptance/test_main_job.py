"""A person registers a table and submits each service; each one has its effect and keeps the rows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.storage import left_behind, listing
from tests.integration import tables
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.acceptance.daemon import Daemon


@pytest.mark.exhaustive
def test_every_service_keeps_all_rows_and_a_writer_goes_on_with_its_old_options(
    daemon: Daemon, spark: SparkSession, lake: Path
) -> None:
    base = lake / "orders"
    options = tables.write_table(spark, base, updates=2)
    before = tables.snapshot(spark, base)
    table = daemon.register(base)
    assert daemon.call("GET", f"/v1/tables/{table}").json()["profile"]["table_version"] == 9

    audit = daemon.succeed(table, "audit")
    assert (audit["clean"], audit["rows"], audit["file_groups"]) == (True, 600, 12)
    assert daemon.succeed(table, "compaction")["log_files"] > 0
    assert tables.snapshot(spark, base) == before
    daemon.succeed(table, "cleaning", retain=1)
    clustering = daemon.succeed(table, "clustering", sort_by=["city", "fare"], layout="hilbert")
    assert (clustering["inside_buckets"], clustering["key_digest"]) == (True, audit["key_digest"])
    assert tables.in_order(spark, base, 4) == before
    expansion = daemon.succeed(table, "bucket_expansion", num_buckets=8, settle_seconds=1)
    assert (expansion["buckets"], expansion["key_digest"]) == ([4, 8], audit["key_digest"])

    assert tables.in_order(spark, base, 8) == before
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    assert left_behind(spark, base) == []
    cleaned = daemon.succeed(table, "cleaning", retain=1)
    assert (cleaned["files_deleted"] > 0, cleaned["failed_deletes"]) == (True, 0)
    assert tables.snapshot(spark, base) == before

    tables.upsert(tables.rows(spark, 300, 700, ts=9), base, options)
    tables.in_order(spark, base, 8)
    audit = daemon.succeed(table, "audit")
    assert (audit["clean"], audit["rows"], audit["file_groups"]) == (True, 700, 24)
    daemon.call("POST", f"/v1/tables/{table}/poll")
    shown = subprocess.run(
        [sys.executable, "-m", "service.cli", "tables", "show", table],
        env={**os.environ, "GROUNDSKEEPER_URL": daemon.url},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert re.search(r"^index +bucket by id, 4 at creation$", shown, re.MULTILINE)
    assert re.search(r"^buckets +8$", shown, re.MULTILINE)
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)


@pytest.mark.exhaustive
def test_a_dry_run_answers_the_plan_and_changes_no_file(daemon: Daemon, spark: SparkSession, lake: Path) -> None:
    base = lake / "dry"
    tables.write_table(spark, base, count=200, updates=2)
    table = daemon.register(base)
    before = listing(base)
    plans = {
        kind: daemon.succeed(table, kind, dry_run=True, **params)
        for kind, params in {
            "compaction": {},
            "cleaning": {"policy": "KEEP_LATEST_FILE_VERSIONS", "retain": 2},
            "clustering": {"sort_by": ["city"]},
            "bucket_expansion": {"factor": 2},
        }.items()
    }
    daemon.succeed(table, "audit", dry_run=True)
    assert listing(base) == before
    for kind, plan in plans.items():
        assert plan["refusals"] == [], kind
        assert plan["estimated_cost"], kind
        assert isinstance(plan["files"], int), kind
        assert isinstance(plan["bytes"], int), kind
    for kind in ("compaction", "clustering", "bucket_expansion"):
        assert plans[kind]["files"] > 12, kind
        assert plans[kind]["bytes"] > 0, kind
    assert plans["bucket_expansion"]["file_groups"] == {"before": 12, "after": 24}


@pytest.mark.exhaustive
def test_jobs_of_several_tables_run_at_the_same_time_in_one_worker(
    daemon: Daemon, spark: SparkSession, lake: Path
) -> None:
    names = ("left", "right")
    for name in names:
        tables.write_table(spark, lake / name, count=300, updates=1, partitioned=False)
    ids = [daemon.register(lake / name) for name in names]
    before = [tables.snapshot(spark, lake / name) for name in names]
    jobs = [
        daemon.wait(job)
        for job in [daemon.submit(table, "bucket_expansion", factor=2, settle_seconds=1) for table in ids]
    ]
    assert [job["state"] for job in jobs] == ["succeeded", "succeeded"]
    # The two jobs ran concurrently in the same process.
    assert max(job["started_at"] for job in jobs) < min(job["finished_at"] for job in jobs)
    assert len({job["worker_id"] for job in jobs}) == 1
    for name, rows in zip(names, before, strict=True):
        assert tables.in_order(spark, lake / name, 8) == rows
        assert left_behind(spark, lake / name) == []
