"""Logs whose rows Hudi's own readers cannot merge: jobs end with a type that says why and what to do, and change
nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from jobs.errors import HudiError, RefusedError
from tests.integration import tables
from tests.integration.run import hudi_table, run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_INDEX = BucketIndex(1, ("id",))


def _write(base: Path, *frames: DataFrame, **options: str) -> None:
    options = tables.writer_options(base, num_buckets=1, partitioned=False, metadata=False) | options
    for frame in frames:
        tables.upsert(frame, base, options)


def _kind_of_failure(spark: SparkSession, base: Path, kind: str, **params: Any) -> str:
    before = sorted(base.rglob("*.parquet"))
    with pytest.raises((HudiError, RefusedError)) as caught:
        run_job(spark, base, kind, params, index=_INDEX)
    assert not caught.value.retriable
    assert sorted(base.rglob("*.parquet")) == before
    assert not list(base.glob(".hoodie/timeline/*.compaction.*"))
    return caught.value.problem().type


@pytest.mark.parametrize(
    ("kind", "is_null_first"),
    [("long", True), *(pytest.param(kind, False, marks=pytest.mark.exhaustive) for kind in ("string", "decimal(9,2)"))],
)
def test_an_ordering_value_that_is_null_beside_others_ends_the_job_with_its_type(
    spark: SparkSession, base: Path, kind: str, *, is_null_first: bool
) -> None:
    frame = tables.rows(spark, 0, 20, ts=5).withColumn("ts", F.lit("7").cast(kind))
    null = frame.withColumn("ts", F.lit(None).cast(kind))
    _write(base, *((frame, null, frame) if is_null_first else (frame, frame, null)))

    assert _kind_of_failure(spark, base, "compaction") == "ordering-values-not-comparable"
    if not is_null_first:
        assert _kind_of_failure(spark, base, "clustering", sort_by=["city"]) == "ordering-values-not-comparable"
        unchecked = run_job(spark, base, "audit", index=_INDEX).details["unchecked"]
        assert {each["reason"]["type"] for each in unchecked} == {"ordering-values-not-comparable"}


def test_logs_of_hfile_blocks_are_named_in_a_dry_run_and_end_the_job_with_their_type(
    spark: SparkSession, base: Path
) -> None:
    frames = [tables.rows(spark, 0, 20, ts=5), tables.rows(spark, 8, 12, ts=7)]
    _write(base, *frames, **{"hoodie.logfile.data.block.format": "hfile"})

    for kind, params in (("compaction", {}), ("clustering", {"sort_by": ["city"]})):
        planned = run_job(spark, base, kind, params, index=_INDEX, dry_run=True).details
        assert [each["type"] for each in planned["refusals"]] == ["log-format-unreadable"]
        assert _kind_of_failure(spark, base, kind, **params) == "log-format-unreadable"


_SETTINGS = {
    **tables.LOCK,
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.bucket.index.hash.field": "id",
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
}


def _merged(session: SparkSession, first: int, last: int, *, inserts: bool = False) -> None:
    source = f"select concat('k', n) id, 2L ts, 'new' note from (select id n from range({first}, {last}))"
    otherwise = "when not matched then insert (id, ts, city, note) values (s.id, s.ts, null, s.note)" if inserts else ""
    update = "when matched then update set note = s.note, ts = s.ts"
    session.sql(f"merge into parts t using ({source}) s on t.id = s.id {update} {otherwise}")


def _table_of_parts(spark: SparkSession, base: Path) -> SparkSession:
    """Writes a table with updates of some columns by Spark SQL."""
    session = spark.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    session.sql("drop table if exists parts")
    session.sql(
        f"create table parts (id string, ts bigint, city int, note string) using hudi location '{base}'"
        " tblproperties (type = 'mor', primaryKey = 'id', preCombineField = 'ts')"
    )
    session.sql("insert into parts select concat('k', id) as key, 1L, cast(id as int), 'old' from range(20)")
    _merged(session, 0, 5)
    return session


def test_rows_of_which_a_log_has_a_part_only_are_read_by_no_job(spark: SparkSession, base: Path) -> None:
    """Hudi's readers (1.2.0) end the JVM at such a row."""
    session = _table_of_parts(spark, base)
    before = tables.snapshot(spark, base)
    assert len(before) == 20
    run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=_INDEX)
    assert sum("'note': 'new'" in row for row in tables.snapshot(spark, base)) == 5
    session.sql("refresh table parts")
    _merged(session, 18, 23, inserts=True)

    unchecked = run_job(spark, base, "audit", index=_INDEX).details["unchecked"]
    assert {each["reason"]["type"] for each in unchecked} == {"rows-incomplete"}
    for params in ({}, {"engine": "hudi"}):
        planned = run_job(spark, base, "compaction", params, index=_INDEX, dry_run=True).details
        assert [each["type"] for each in planned["refusals"]] == ["rows-incomplete"]
        assert _kind_of_failure(spark, base, "compaction", **params) == "rows-incomplete"
    for engine in ("auto", "hudi"):
        assert _kind_of_failure(spark, base, "clustering", sort_by=["city"], engine=engine) == "rows-incomplete"
    adopt = {"action": "adopt", "num_buckets": 2}
    planned = run_job(spark, base, "bucket_index", adopt, index=None, writers_stopped=True, dry_run=True).details
    assert [each["type"] for each in planned["refusals"]] == ["rows-incomplete"]

    [*_, last] = hudi_table(spark, base, _INDEX).completed_writes()
    run_job(spark, base, "rollback", {"instant": last[0], "table_name": "test"}, index=_INDEX)
    session.sql("refresh table parts")
    _merged(session, 18, 23)
    session.sql("insert into parts select concat('k', id) as key, 2L, cast(null as int), 'new' from range(20, 23)")
    before = tables.snapshot(spark, base)
    run_job(spark, base, "compaction", index=_INDEX)
    assert tables.snapshot(spark, base) == before
    found = {row["id"]: (row["ts"], row["city"], row["note"]) for row in tables.collected(spark, base).rows}
    assert (len(found), found["k4"], found["k18"], found["k22"]) == (
        23,
        (2, 4, "new"),
        (2, 18, "new"),
        (2, None, "new"),
    )
    assert run_job(spark, base, "audit", index=_INDEX).details["clean"]
