"""Writers that keep their old index after the adoption of a bucket index are found, and their rows are moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jobs.errors import CancelledError
from tests.integration import tables
from tests.integration.run import run_job
from tests.integration.tables import newest, texts
from tests.integration.test_bucket_index import (
    COW,
    MOR,
    adopt,
    adopted_table,
    bucketed,
    plain_table,
    proved,
)
from tests.integration.test_observed_tables import Observer
from tests.integration.writers import At

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("table_type", "index", "small_files"),
    [(COW, "BLOOM", True), (MOR, "SIMPLE", True), (COW, None, False), (MOR, "BLOOM", False)],
)
def test_a_poll_suspects_a_writer_that_keeps_its_old_index_and_a_repair_moves_its_rows(
    spark: SparkSession, tmp_path: Path, table_type: str, index: str | None, small_files: bool
) -> None:
    base = tmp_path / "trips"
    old, result = adopted_table(spark, base, index, table_type=table_type, partitioned=False)
    observer = Observer(spark, tmp_path, base, tables.INDEX)
    observer.poll()
    assert observer.incidents() == {}
    if not small_files:
        old["hoodie.parquet.small.file.limit"] = "0"
    if not (small_files and table_type == MOR):  # A file group with logs takes no new rows of such a writer.
        tables.upsert(tables.rows(spark, 0, 60, ts=3), base, bucketed(old, result))
    tables.upsert_outside_buckets(tables.rows(spark, 280, 340, ts=5), base, old)
    late = observer.timeline().instants[-1].requested_time
    observer.poll()
    assert observer.incidents() == {late: "suspected"}
    if small_files:  # Hudi's bucket index fails on any other file id: NumberFormatException.
        tables.upsert(tables.rows(spark, 320, 350, ts=7), base, bucketed(old, result))
        observer.poll()
        assert observer.incidents() == {late: "suspected"}

    repaired = run_job(spark, base, "repair", {"instants": [late]}).details

    assert repaired["repaired"] == [late]
    observer.poll()
    assert observer.incidents() == {late: "repaired"}
    early = 0 if small_files and table_type == MOR else 3
    expected = [tables.rows(spark, 0, 60, ts=early), tables.rows(spark, 60, 280)]
    expected += [tables.rows(spark, 280, 320 if small_files else 340, ts=5)]
    expected += [tables.rows(spark, 320, 350, ts=7)] if small_files else []
    found, wanted = texts(spark, base, *expected)
    assert found == wanted
    tables.upsert(tables.rows(spark, 300, 360, ts=9), base, bucketed(old, result))
    assert len(proved(spark, base, tables.INDEX)) == 360


@pytest.mark.exhaustive
def test_an_audit_names_a_commit_whose_files_show_no_other_index_and_a_repair_moves_its_rows(
    spark: SparkSession, tmp_path: Path, base: Path
) -> None:
    old = plain_table(spark, base, table_type=COW, partitioned=False, record_key="id,region")
    # If only a part of the key is hashed, new rows in few buckets are no fault.
    result = adopt(spark, base, num_buckets=4, hash_fields=["id"])
    observer = Observer(spark, tmp_path, base, tables.INDEX)
    observer.poll()
    tables.upsert_outside_buckets(tables.rows(spark, 280, 340, ts=5), base, old)
    late = observer.timeline().instants[-1].requested_time
    observer.poll()
    assert observer.incidents() == {}

    audit = run_job(spark, base, "audit").details

    (found,) = (each for each in audit["findings"] if each["type"] == "rows-in-wrong-bucket")
    assert found["cure"] == {"kind": "repair", "params": {"instants": [late]}}
    assert run_job(spark, base, "repair", found["cure"]["params"]).details["repaired"] == [late]
    assert len(proved(spark, base, tables.INDEX)) == 340
    tables.upsert(tables.rows(spark, 300, 360, ts=9), base, bucketed(old, result))
    assert len(proved(spark, base, tables.INDEX)) == 360


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_rows_without_a_bucket_survive_a_repair_that_dies_and_a_writer_that_goes_on(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    old, _ = adopted_table(spark, base, table_type=table_type, partitioned=False)
    old["hoodie.parquet.small.file.limit"] = "0"
    tables.upsert_outside_buckets(tables.rows(spark, 280, 340, ts=5), base, old)
    written = [newest(base)]

    def write_outside_buckets() -> None:
        tables.upsert_outside_buckets(tables.rows(spark, 330, 335, ts=6), base, old)
        written.append(newest(base))

    def cancel_here() -> None:
        raise CancelledError("here")

    # The writer changes the file group after the repair has read which commits wrote to it.
    context = At("rewriting", write_outside_buckets, ("reading the rows of stale writes", cancel_here))
    with pytest.raises(CancelledError):
        run_job(spark, base, "repair", {"instants": written}, context=context)
    audit = run_job(spark, base, "audit").details
    assert [each["instant"] for each in audit["stale_writes"]] == written

    assert run_job(spark, base, "repair").details["repaired"] == written
    changed = tables.rows(spark, 330, 335, ts=6)
    parts = [tables.rows(spark, 0, 280), tables.rows(spark, 280, 330, ts=5), tables.rows(spark, 335, 340, ts=5)]
    found, expected = texts(spark, base, changed, *parts)
    assert found == expected
    assert len(proved(spark, base, tables.INDEX)) == 340
