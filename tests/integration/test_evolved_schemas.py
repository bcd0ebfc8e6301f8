"""Jobs on tables whose schema has changed, or changes beside the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import ExpansionStep
from jobs.errors import RefusedError
from jobs.job_context import JobContext
from tests.integration import tables
from tests.integration.aged import age
from tests.integration.run import hudi_table, run_job
from tests.integration.writers import At

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

ON_READ = "hoodie.schema.on.read.enable"
RENAME = "RENAME COLUMN city TO town"
_STATISTICS = "hoodie.metadata.index.column.stats.enable"
_ALTERS = {ON_READ: "true", "hoodie.clean.failed.writes.policy": "LAZY", _STATISTICS: "false"}
SORTED = {"sort_by": ["ts"]}


def altering(
    spark: SparkSession, base: Path, change: str, options: Mapping[str, str] | None = None
) -> Callable[[], None]:
    """Returns a function that changes the table's columns by schema on read, or with other `options`, in a session of
    its own."""

    def alter() -> None:
        session = spark.newSession()
        drops = "hoodie.datasource.write.schema.allow.auto.evolution.column.drop"
        version = hudi_table(spark, base, None).version
        as_it_is = {"hoodie.write.table.version": str(version), "hoodie.write.auto.upgrade": "false"}
        # Hudi 1.2.0 takes the change for a conflict with itself if it has the options for several writers.
        for key, value in {**_ALTERS, **as_it_is, drops: "true", **(options or {})}.items():
            session.conf.set(key, value)
        name = f"of_{base.parent.name}"
        session.sql(f"CREATE TABLE {name} USING hudi LOCATION '{base}'")
        session.sql(f"ALTER TABLE {name} {change}")
        session.sql(f"DROP TABLE {name}")

    return alter


def values(spark: SparkSession, base: Path, *columns: str) -> list[tuple[Any, ...]]:
    frame = spark.read.format("hudi").option(ON_READ, "true").load(str(base))
    return sorted(tuple(row) for row in frame.select("id", *columns).collect())


def test_columns_that_schema_on_read_renames_keep_their_values(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=40, table_type="COPY_ON_WRITE", partitioned=False)
    before = values(spark, base, "city")
    beside = At(ExpansionStep.DRAINING, altering(spark, base, RENAME))
    for context in (beside, None):
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, "bucket_expansion", {"factor": 2}, context=context)
        assert [each.type for each in refused.value.reasons] == ["columns-changed"]
        assert values(spark, base, "town") == before


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["sorted", "plan", "repair"])
def test_no_other_job_takes_the_values_of_renamed_columns(spark: SparkSession, base: Path, kind: str) -> None:
    index = tables.INDEX if kind == "repair" else None
    buckets = 4 if index else None
    options = tables.write_table(spark, base, count=40, updates=1, table_type="COPY_ON_WRITE", num_buckets=buckets)
    params: dict[str, Any] = {} if kind == "repair" else SORTED
    if kind == "plan":
        params = {"plans": [planned(spark, base, options)]}
    before = values(spark, base, "city")
    altering(spark, base, RENAME)()
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "repair" if kind == "repair" else "clustering", params, index=index)
    assert [each.type for each in refused.value.reasons] == ["columns-changed"]
    assert values(spark, base, "town") == before


@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", pytest.param("COPY_ON_WRITE", marks=pytest.mark.exhaustive)])
def test_a_schema_on_read_that_hudi_cannot_read_is_refused_until_a_writer_commits(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    """Hudi 1.2 stores the type of a time without a zone under a name that it does not know."""
    options = tables.writer_options(base, table_type=table_type, partitioned=False, metadata=False)
    rows = tables.rows(spark, 0, 40).withColumn("at", F.col("at").cast("timestamp_ntz"))
    for frame in (rows, rows.withColumn("ts", F.lit(5))):
        tables.upsert(frame, base, options)
    altering(spark, base, "ADD COLUMNS (extra INT)")()
    before = tables.snapshot(spark, base)
    has_logs = table_type == "MERGE_ON_READ"
    for kind, params in (("compaction", {}), ("compaction", {"engine": "hudi"}), ("clustering", SORTED)):
        if has_logs:
            with pytest.raises(RefusedError) as refused:
                run_job(spark, base, kind, params)
            assert [each.type for each in refused.value.reasons] == ["schema-on-read-unreadable"]
    assert hudi_table(spark, base, None).pending() == []
    run_job(spark, base, "archival")
    if not has_logs:
        run_job(spark, base, "clustering", SORTED)
        assert tables.snapshot(spark, base) == before
    tables.upsert(rows.withColumns({"ts": F.lit(7), "extra": F.lit(1)}), base, {**options, ON_READ: "true"})
    before = tables.snapshot(spark, base)
    run_job(spark, base, "compaction" if has_logs else "bucket_expansion", {} if has_logs else {"factor": 2})
    assert tables.snapshot(spark, base) == before


def planned(spark: SparkSession, base: Path, options: dict[str, str]) -> str:
    """Returns a clustering plan that a writer has left."""
    schedules = {"hoodie.clustering.schedule.inline": "true", "hoodie.clustering.async.max.commits": "1"}
    tables.upsert(tables.rows(spark, 0, 2, ts=5, partitions=1), base, {**options, **schedules})
    [plan] = [path.name.split(".")[0] for path in (base / ".hoodie/timeline").glob("*.clustering.requested")]
    return plan


class Begun(JobContext):
    """A context that calls a function when a plan has been begun."""

    def __init__(self, action: Callable[[], None]) -> None:
        super().__init__()
        self._action = action

    def instant(self, instant: str) -> None:
        super().instant(instant)
        self._action()


def test_a_plan_before_a_column_was_renamed_is_not_executed(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=60, updates=1, partitioned=False)
    before = values(spark, base, "city")
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "compaction", context=At("compacting", altering(spark, base, RENAME)))
    assert [each.type for each in refused.value.reasons] == ["columns-changed"]
    assert values(spark, base, "town") == before


@pytest.mark.exhaustive
def test_a_compaction_beside_which_a_column_is_renamed_keeps_its_values(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=40, updates=1)
    before = values(spark, base, "city")
    done = run_job(spark, base, "compaction", context=Begun(altering(spark, base, RENAME))).details
    assert [each["reasons"][0]["type"] for each in done["engines"]] == ["schema-on-read"]
    assert values(spark, base, "town") == before


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", pytest.param("MERGE_ON_READ", marks=pytest.mark.exhaustive)])
def test_renamed_columns_keep_their_values_when_partitions_are_dropped(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    tables.write_table(spark, base, count=20, table_type=table_type, metadata=False)
    age(base, 40)
    altering(spark, base, RENAME)()
    before = values(spark, base, "dt", "town")
    options = tables.writer_options(base, table_type=table_type, metadata=False)
    more = tables.rows(spark, 100, 104).withColumnRenamed("city", "town").where("dt = '2026-01-01'")
    tables.upsert(more, base, {**options, ON_READ: "true"})
    run_job(spark, base, "partition_ttl", {"days_retain": 30, "wait_seconds": 1})
    kept = {row for row in before if row[1] == "2026-01-01"}
    left = values(spark, base, "dt", "town")
    assert kept < set(left)
    assert {dt for _, dt, _ in left} == {"2026-01-01"}
    audit = run_job(spark, base, "audit").details
    assert audit["clean"], audit


def test_the_history_of_renamed_columns_is_not_archived(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=20, updates=1, partitioned=False, metadata=False)
    altering(spark, base, RENAME, {"hoodie.metadata.enable": "false"})()
    before = values(spark, base, "town")
    for _ in range(2):
        run_job(spark, base, "compaction", {"limit_file_groups": 1})
    done = run_job(spark, base, "archival", {"retain": 2}).details
    assert [each["type"] for each in done["limits"]] == ["schema-on-read"]
    assert (done["archived"], values(spark, base, "town")) == (2, before)


def test_a_column_that_comes_beside_a_clustering_plan_is_in_its_commit(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=40, table_type="COPY_ON_WRITE", num_buckets=None)
    plan = planned(spark, base, options)

    def adds_a_column() -> None:
        elsewhere = {"dt": F.lit("2027-01-01"), "tip": F.expr("if(city >= 0, 'other', null)")}
        tables.upsert(tables.rows(spark, 100, 110).withColumns(elsewhere), base, options)

    run_job(
        spark, base, "clustering", {"plans": [plan]}, index=None, context=At("comparing the record keys", adds_a_column)
    )
    (done,) = [each for each in hudi_table(spark, base, None).commits() if each.write.instant == plan]
    assert '"tip"' in done.extra["schema"]
    assert spark.read.format("hudi").load(str(base)).where("tip = 'other'").count() == 10
