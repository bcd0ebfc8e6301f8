"""Tests copied tables: those of version 6 with overwritten and deleted rows, whose files were copied without their
times, and those with pending plans, which name the original's files.

In version 6 the times of the timeline's files are the only trace of the order in which instants completed.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import RefusedError
from jobs.format.stale_writes import REPAIRED_KEY
from jobs.hudi import rows
from jobs.hudi.client import WriteClient
from jobs.hudi.keyed_writes import keyed_write_options
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.table_errors import PlanOfAnotherPathError
from tests.integration import tables
from tests.integration.hidden import hidden
from tests.integration.plans import schedule_clustering
from tests.integration.run import hudi_table, run_job
from tests.integration.writers import HeldWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"


def overwritten(spark: SparkSession, base: Path, table_type: str) -> dict[str, str]:
    """Writes a table from which an overwrite of a partition, a deletion of a partition and a deletion of everything
    have removed rows."""
    options = tables.write_table(spark, base, count=30, table_type=table_type, version=6, num_buckets=None)

    def write(operation: str, first: int, last: int, dt: str, ts: int = 1) -> None:
        frame = tables.rows(spark, first, last, ts=ts).withColumn("dt", F.lit(dt))
        tables.upsert(frame, base, {**options, "hoodie.datasource.write.operation": operation})

    write("upsert", 0, 5, "2026-01-01")
    write("insert_overwrite", 100, 105, "2026-01-01")
    gone = {**options, "hoodie.datasource.write.operation": "delete_partition"}
    tables.upsert(
        tables.rows(spark, 0, 1), base, {**gone, "hoodie.datasource.write.partitions.to.delete": "2026-01-02"}
    )
    write("insert_overwrite_table", 200, 203, "2026-01-03")
    write("upsert", 201, 205, "2026-01-03", ts=2)
    return options


def copied(base: Path, target: Path) -> None:
    """Copies the table; the timeline's files get times in the reverse order."""
    shutil.copytree(base, target, copy_function=shutil.copyfile)
    names = sorted((path for path in (target / ".hoodie").glob("2*")), reverse=True)
    now = max(path.stat().st_mtime for path in names)
    for number, path in enumerate(names):
        os.utime(path, (now + number / 100, now + number / 100))


@pytest.mark.parametrize("table_type", [MOR, pytest.param(COW, marks=pytest.mark.exhaustive)])
def test_rows_that_an_owner_removed_do_not_come_back(spark: SparkSession, tmp_path: Path, table_type: str) -> None:
    base, target = tmp_path / "trips", tmp_path / "copy" / "trips"
    options = overwritten(spark, base, table_type)
    copied(base, target)
    before = tables.snapshot(spark, target)
    assert len(before) == 5

    audit = run_job(spark, target, "audit", index=None).details
    assert (audit["clean"], audit["stale_writes"]) == (True, []), audit
    repaired = run_job(spark, target, "repair", index=None).details

    assert (repaired["repaired"], repaired["left"], repaired["rows"]) == ([], [], 0)
    assert tables.snapshot(spark, target) == tables.snapshot(spark, target, metadata=False) == before
    tables.upsert(tables.rows(spark, 204, 206, ts=3).withColumn("dt", F.lit("2026-01-03")), target, options)
    assert len(tables.snapshot(spark, target)) == 6
    order = [commit.write.instant for commit in hudi_table(spark, target, None).commits()]
    assert order == sorted(order)


@pytest.mark.exhaustive
def test_an_audit_finds_removed_rows_that_came_back_and_keys_that_no_generator_makes(
    spark: SparkSession, base: Path
) -> None:
    options = tables.writer_options(base, version=6, num_buckets=None)
    tables.upsert(tables.rows(spark, 0, 5, partitions=1), base, options)
    overwriting = {**options, "hoodie.datasource.write.operation": "insert_overwrite_table"}
    tables.upsert(tables.rows(spark, 5, 8, partitions=1), base, overwriting)
    table = hudi_table(spark, base, None)
    written, overwrite = (commit.write.instant for commit in table.commits())
    assert run_job(spark, base, "audit", index=None).details["clean"]
    other_key = rows.current(table).where("id = 'k6'").withColumn("_hoodie_record_key", F.lit("id:k6"))

    with WriteClient(table, UNDER_OUR_LOCK, keyed_write_options(table)) as client:
        client.keyed_writes.upsert(other_key)
        repair = client.keyed_writes.mark({REPAIRED_KEY: written})

    audit = run_job(spark, base, "audit", index=None).details
    found = {each["type"]: each["detail"] for each in audit["findings"]}
    assert (audit["clean"], audit["rows"], audit["duplicates"]) == (False, 4, 0)
    assert found == {
        "overwritten-rows-back": f"rows of {written}, which {overwrite} had removed, by {repair}",
        "record-keys-differ": "keys in several forms: named (1 rows), plain (3 rows)",
    }


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.exhaustive)])
def test_rows_that_were_in_flight_when_an_overwrite_began_have_not_come_back(
    spark: SparkSession, base: Path, version: int
) -> None:
    options = tables.writer_options(base, version=version, num_buckets=None, metadata=False)
    tables.upsert(tables.rows(spark, 0, 5, partitions=1), base, options)
    small = {"hoodie.parquet.small.file.limit": "0"}
    insert = HeldWriter(tables.rows(spark, 5, 8, partitions=1), base, {**options, **small}).start()
    overwriting = {**options, "hoodie.datasource.write.operation": "insert_overwrite"}
    overwrite = HeldWriter(tables.rows(spark, 8, 10, partitions=1), base, overwriting).start()
    insert.finish()
    overwrite.finish()
    assert len(tables.snapshot(spark, base)) == 5

    details = run_job(spark, base, "audit", {"rows": False}, index=None).details

    found = [each["detail"] for each in details["findings"] if each["type"] == "overwritten-rows-back"]
    if version == 9:
        assert found == []
    else:
        assert found[0].endswith(", or was in flight when that began")


@pytest.mark.exhaustive
def test_a_write_to_file_groups_of_an_overwrite_is_repaired_only_if_a_person_names_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    base, settled = tmp_path / "trips", tmp_path / "settled" / "trips"
    options = tables.writer_options(base, num_buckets=None, metadata=False)
    tables.upsert(tables.rows(spark, 0, 5, partitions=1), base, options)
    overwriting = {**options, "hoodie.datasource.write.operation": "insert_overwrite"}
    tables.upsert(tables.rows(spark, 5, 8, partitions=1), base, overwriting)
    overwrite = hudi_table(spark, base, None).commits()[-1].write.instant
    with hidden(base, overwrite, tmp_path / "away"):
        tables.upsert(tables.rows(spark, 0, 2, ts=5, partitions=1), base, options)
    [stale] = run_job(spark, base, "audit", index=None).details["stale_writes"]
    assert (stale["doubt"], stale["operation"]) == ("overwritten", "UPSERT")
    before = tables.snapshot(spark, base)
    shutil.copytree(base, settled)

    left = run_job(spark, base, "repair", index=None).details
    assert (left["left"], left["repaired"], tables.snapshot(spark, base)) == ([stale["instant"]], [], before)
    named = run_job(spark, base, "repair", {"instants": [stale["instant"]]}, index=None).details
    assert (named["repaired"], named["rows"], len(tables.snapshot(spark, base))) == ([stale["instant"]], 2, 5)

    waived = run_job(spark, settled, "repair", {"accepted": [stale["instant"]]}, index=None).details
    assert (waived["waived"], waived["left"], tables.snapshot(spark, settled)) == ([stale["instant"]], [], before)
    for each in (base, settled):
        assert run_job(spark, each, "audit", index=None).details["clean"]


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
