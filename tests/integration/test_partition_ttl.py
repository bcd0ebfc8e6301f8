"""A job drops exactly the expired partitions that its dry run listed, and changes no other row."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import RefusedError, WritersActiveError
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.partition_ttl import keeping
from jobs.hudi.table import HudiTable
from jobs.job_params import TtlStrategy
from jobs.services.compaction import DUE
from tests.integration import indexed, tables
from tests.integration.aged import age
from tests.integration.dying_job import DyingJob
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import hudi_table, proved, run_job, work_order
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from jobs.contract import BucketIndex
    from tests.integration.doomed import Spares

FRESH, *OLD = PARTITIONS = ["2026-01-01", "2026-01-02", "2026-01-03"]
MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"
AGE = 40
Line = tuple[str, str]


def aged(spark: SparkSession, base: Path, *, days: int = AGE, updates: int = 1, **shape: Any) -> dict[str, str]:
    """Writes a table of 60 rows in three partitions, with instants of this number of days ago and a new write to the
    first partition; returns the writer's options."""
    tables.write_table(spark, base, count=60, updates=updates, copied=False, **{"metadata": False, **shape})
    age(base, days)
    options = tables.writer_options(base, **shape)
    tables.upsert(rows_of(spark, FRESH, ts=9), base, options)
    return options


def rows_of(spark: SparkSession, *partitions: str, ts: int) -> DataFrame:
    return tables.rows(spark, 0, 60, ts=ts).where(F.col("dt").isin(*partitions))


def lines(spark: SparkSession, base: Path, *partitions: str) -> list[str]:
    """Returns the rows of these partitions (default: all) with all columns."""
    marks = [f"'_hoodie_partition_path': '{partition}'" for partition in partitions or PARTITIONS]
    return [line for line in tables.snapshot(spark, base) if any(mark in line for mark in marks)]


def ttl(spark: SparkSession, base: Path, days: int = 30, *, dry_run: bool = False, **params: Any) -> Any:
    """Runs the job, and returns the details of its result. Other members, such as `index`, go to the work order."""
    order = {name: params.pop(name) for name in ("index", "job_id", "writers_stopped") if name in params}
    params = {"days_retain": days, "wait_seconds": 1, **params}
    return run_job(spark, base, "partition_ttl", params, dry_run=dry_run, **order).details


def listed(details: Any) -> list[str]:
    return [each["partition"] for each in details["partitions"]]


SHAPES = [
    pytest.param({}, id="mor-9"),
    pytest.param({"version": 6}, id="mor-6", marks=pytest.mark.exhaustive),
    pytest.param({"table_type": COW, "num_buckets": None}, id="cow-9-no-buckets", marks=pytest.mark.exhaustive),
    pytest.param({"table_type": COW, "version": 6}, id="cow-6", marks=pytest.mark.exhaustive),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_expired_partitions_are_dropped_as_listed_and_no_other_row_changes(
    spark: SparkSession, tmp_path: Path, shape: dict[str, Any]
) -> None:
    base, index = tmp_path / "trips", None if "num_buckets" in shape else INDEX
    aged(spark, base, **shape)
    before = {partition: lines(spark, base, partition) for partition in PARTITIONS}
    planned = ttl(spark, base, dry_run=True, index=index)
    assert (planned["refusals"], listed(planned)) == ([], OLD)
    assert lines(spark, base) == sorted(line for its in before.values() for line in its)

    done = ttl(spark, base, index=index)

    assert done["partitions"] == planned["partitions"]
    assert {each["partition"]: each["rows"] for each in done["partitions"]} == {
        partition: len(before[partition]) for partition in OLD
    }
    assert done["kept_unchanged"]
    assert lines(spark, base) == before[FRESH]
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", SHAPES)
def test_cleaning_removes_the_files_later_and_the_partitions_may_be_filled_anew(
    spark: SparkSession, tmp_path: Path, shape: dict[str, Any]
) -> None:
    base, index = tmp_path / "trips", None if "num_buckets" in shape else INDEX
    options = aged(spark, base, **shape)
    ttl(spark, base, index=index)
    assert ttl(spark, base, index=index)["partitions"] == []
    tables.upsert(rows_of(spark, FRESH, ts=10), base, options)
    before = tables.snapshot(spark, base)

    cleaned = run_job(spark, base, "cleaning", {"retain": 1}, index=index).details

    assert cleaned["dropped_partitions"] == OLD
    assert not any((base / partition).exists() for partition in OLD)
    assert tables.snapshot(spark, base) == before
    tables.upsert(tables.rows(spark, 0, 70, ts=50), base, options)
    assert len(tables.snapshot(spark, base) if index is None else proved(spark, base, 4)) == 70
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)


@pytest.mark.exhaustive
@pytest.mark.parametrize("strategy", TtlStrategy)
def test_hudis_32_bits_drop_nothing_too_early(
    spark: SparkSession, tmp_path: Path, base: Path, strategy: TtlStrategy
) -> None:
    """Hudi's own strategy (1.2.0) with 50 days finds partitions that are older than seven hours, and with 30 days
    none."""
    aged(spark, base, days=2)
    table = hudi_table(spark, base, INDEX)
    as_hudi_does = {**keeping(strategy, 1), "hoodie.partition.ttl.strategy.days.retain": "50"}
    with WriteClient(table, UNDER_OUR_LOCK, as_hudi_does) as client:
        assert set(client.partition_ttl.expired(f"{table.now():%Y%m%d%H%M%S}000")) >= set(OLD)

    assert listed(ttl(spark, base, 50, strategy=strategy, dry_run=True)) == []
    assert set(listed(ttl(spark, base, 1, strategy=strategy, dry_run=True))) >= set(OLD)
    age_more = tmp_path / "older" / "trips"
    aged(spark, age_more, days=51)
    assert set(listed(ttl(spark, age_more, 50, strategy=strategy, dry_run=True))) >= set(OLD)


@pytest.mark.exhaustive
def test_new_logs_of_an_old_table_version_keep_a_partition(spark: SparkSession, base: Path) -> None:
    """The names of the logs have the base file's instant, and Hudi's own strategy takes the partition for
    unmodified."""
    aged(spark, base, version=6)
    table = hudi_table(spark, base, INDEX)
    with WriteClient(table, UNDER_OUR_LOCK, keeping(TtlStrategy.KEEP_BY_TIME, 1)) as client:
        assert FRESH in client.partition_ttl.expired(f"{table.now():%Y%m%d%H%M%S}000")
    assert listed(ttl(spark, base, 1, dry_run=True)) == OLD


@pytest.mark.exhaustive
def test_partitions_are_dropped_by_creation_time_the_oldest_first_within_limit_and_selection(
    spark: SparkSession, base: Path
) -> None:
    aged(spark, base)
    by_creation = {"strategy": TtlStrategy.KEEP_BY_CREATION_TIME}
    assert listed(ttl(spark, base, dry_run=True, **by_creation)) == PARTITIONS
    assert listed(ttl(spark, base, dry_run=True, partitions=[{"prefix": "2025"}, "2026-01-03"])) == ["2026-01-03"]
    kept = lines(spark, base, OLD[1])
    first = ttl(spark, base, limit_partitions=2, **by_creation)
    assert (listed(first), first["left"]) == (PARTITIONS[:2], {"partitions": 1})
    assert lines(spark, base) == kept
    assert listed(ttl(spark, base, **by_creation)) == OLD[1:]
    # Dropped partitions without files do not expire again.
    assert listed(ttl(spark, base, **by_creation)) == []


@pytest.mark.exhaustive
def test_a_partition_that_is_still_needed_is_withheld_with_the_reason(spark: SparkSession, base: Path) -> None:
    aged(spark, base)
    before = lines(spark, base)

    def reasons_to_withhold(**params: Any) -> dict[str, set[str]]:
        with pytest.raises(RefusedError):
            ttl(spark, base, partitions=OLD, **params)
        found: dict[str, set[str]] = {}
        for each in ttl(spark, base, dry_run=True, partitions=OLD, **params)["withheld"]:
            found.setdefault(each["type"], set()).add(each["partition"])
        return found

    commits = [each.write.instant for each in hudi_table(spark, base, INDEX).commits()]
    behind = [{"name": "warehouse", "instant": commits[0]}]
    past = [{"name": "warehouse", "instant": commits[-1]}, {"name": "other", "instant": commits[1]}]
    assert reasons_to_withhold(consumers=behind) == {"consumer-behind": set(OLD)}
    assert listed(ttl(spark, base, dry_run=True, consumers=past)) == OLD
    saved = run_job(spark, base, "savepoint").details["savepoint"]
    assert reasons_to_withhold() == {"savepoint": set(OLD)}
    run_job(spark, base, "savepoint", {"action": "delete", "instant": saved})
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK, DUE) as client:
        plan = client.schedule_compaction()
    # Hudi's strategy counts the plan as a modification.
    assert listed(ttl(spark, base, dry_run=True)) == []
    assert reasons_to_withhold(strategy=TtlStrategy.KEEP_BY_CREATION_TIME) == {"pending-plan": set(OLD)}
    assert lines(spark, base) == before
    run_job(spark, base, "compaction")
    # A compaction has modified them.
    assert listed(ttl(spark, base)) == []
    assert plan
    assert lines(spark, base) == before


@pytest.mark.exhaustive
def test_a_table_without_partitions_or_with_file_ids_that_repeat_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    plain, fixed = tmp_path / "plain", tmp_path / "fixed"
    tables.write_table(spark, plain, count=60, partitioned=False)
    nbcc = {
        "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
        "hoodie.index.bucket.engine": "SIMPLE",
        "hoodie.table.type": "MERGE_ON_READ",
    }
    tables.write_table(spark, fixed, count=60, copied=False, **nbcc)
    for base, reason in ((plain, "not-partitioned"), (fixed, "file-ids-repeat")):
        with pytest.raises(RefusedError) as caught:
            ttl(spark, base)
        assert [each.type for each in caught.value.reasons] == [reason]
        assert [each["type"] for each in ttl(spark, base, dry_run=True)["refusals"]] == [reason]


@pytest.mark.exhaustive
def test_the_number_of_buckets_of_a_partition_outlives_its_rows(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=60, metadata=False, copied=False)
    run_job(spark, base, "bucket_expansion", {"factor": 2, "partitions": [OLD[0]]})
    age(base, AGE)
    options = tables.writer_options(base)
    tables.upsert(rows_of(spark, FRESH, ts=9), base, options)
    # The expansion came after the other partition's last write.
    assert sorted(listed(ttl(spark, base))) == OLD
    assert run_job(spark, base, "audit").details["clean"]

    tables.upsert(tables.rows(spark, 0, 600, ts=50), base, options)

    audit = run_job(spark, base, "audit").details
    assert (audit["clean"], audit["rows"]) == (True, 600), audit
    buckets = {item.bucket for item in hudi_table(spark, base, INDEX).file_slices() if item.partition == OLD[0]}
    assert buckets == set(range(8))
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)


@pytest.mark.exhaustive
def test_a_record_index_has_no_entries_of_rows_in_dropped_partitions(spark: SparkSession, base: Path) -> None:
    options = {**aged(spark, base, num_buckets=None), **indexed.GLOBAL}
    tables.upsert(rows_of(spark, FRESH, ts=10), base, options)
    assert "record_index" in hudi_table(spark, base, None).metadata_partitions
    assert listed(ttl(spark, base, index=None)) == OLD

    tables.upsert(tables.rows(spark, 0, 70, ts=50), base, options)

    assert len(tables.snapshot(spark, base)) == 70
    assert tables.duplicates(spark, base) == 0
    assert run_job(spark, base, "audit", index=None).details["stale_writes"] == []


@pytest.mark.exhaustive
def test_a_partition_whose_rows_have_moved_away_is_kept_until_its_compaction(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi would take the moved keys out of the record index, and writers would insert them again."""
    moves = {
        "hoodie.record.index.update.partition.path": "true",
        "hoodie.embed.timeline.server": "true",
        # Else a second row of a key would go into the file group of the first one, and replace it.
        "hoodie.parquet.small.file.limit": "0",
    }
    options = tables.writer_options(base, num_buckets=None, **indexed.GLOBAL, **indexed.FEW_FILES, **moves)
    tables.upsert(tables.rows(spark, 0, 60), base, options)
    moved = tables.rows(spark, 0, 9, ts=1).where(F.col("dt") == OLD[0]).withColumn("dt", F.lit(FRESH))
    tables.upsert(moved, base, options)

    def dropped(**more: Any) -> Any:
        with monkeypatch.context() as later:
            later.setattr(HudiTable, "now", lambda table: table.clock.now() + timedelta(days=60))
            return ttl(spark, base, 20, partitions=OLD, index=None, **more)

    for details in dropped(dry_run=True), dropped():
        assert listed(details) == [OLD[1]]
        (withheld,) = details["withheld"]
        assert (withheld["type"], withheld["detail"]) == (
            "rows-moved-away",
            f"'{OLD[0]}': 3 keys, such as 'k1', now in '{FRESH}'",
        )
    run_job(spark, base, "compaction", index=None)
    assert listed(dropped()) == [OLD[0]]

    tables.upsert(moved.withColumn("ts", F.lit(5).cast("long")), base, options)
    assert sorted(row["id"] for row in tables.collected(spark, base).rows if row["ts"]) == ["k1", "k4", "k7"]
    assert len(tables.snapshot(spark, base)) == 20 + 3
    assert run_job(spark, base, "audit", index=None).details["clean"]


@pytest.mark.exhaustive
def test_statistics_hide_no_row_that_comes_later(spark: SparkSession, base: Path) -> None:
    options = {**aged(spark, base), "hoodie.metadata.index.column.stats.enable": "true"}
    tables.upsert(rows_of(spark, FRESH, ts=10), base, options)
    assert "partition_stats" in hudi_table(spark, base, INDEX).metadata_partitions
    assert listed(ttl(spark, base)) == OLD

    tables.upsert(tables.rows(spark, 0, 70, ts=50), base, options)

    audit = run_job(spark, base, "audit").details
    assert (audit["clean"], audit["rows"], audit["keys_hidden_by_statistics"]) == (True, 70, 0), audit
    skipping = spark.read.format("hudi").option("hoodie.enable.data.skipping", "true").load(str(base))
    assert skipping.where(f"dt = '{OLD[0]}' and ts = 50").count() == len(lines(spark, base, OLD[0]))


@pytest.mark.exhaustive
def test_partitions_with_commas_and_other_signs_in_their_names_are_dropped(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "odd"
    odd = ["p;q,r", "eu.x+(1)", "ünï {2}"]
    number = F.substring("id", 2, 9).cast("int")
    rows = tables.rows(spark, 0, 60).withColumn("dt", F.element_at(F.array(*map(F.lit, odd)), number % 3 + 1))
    tables.upsert(rows, base, tables.writer_options(base, metadata=False))
    age(base, AGE)
    assert listed(ttl(spark, base, limit_partitions=2)) == sorted(odd)[:2]
    assert {row[0] for row in spark.read.format("hudi").load(str(base)).select("dt").collect()} == {sorted(odd)[2]}
    assert listed(ttl(spark, base)) == [sorted(odd)[2]]
    assert tables.snapshot(spark, base) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("version", "name"),
    [
        (9, "timeline/*.replacecommit.requested"),
        (9, "timeline/*.replacecommit.inflight"),
        (9, "metadata/.hoodie/timeline/*_*.deltacommit"),
        (9, "timeline/*_*.replacecommit"),
        (6, "*.replacecommit.requested"),
        (6, "*.replacecommit.inflight"),
        (6, "metadata/.hoodie/*.deltacommit"),
        (6, "*.replacecommit"),
    ],
)
def test_a_job_that_was_killed_is_done_by_the_next_attempt(
    spark: SparkSession, base: Path, spares: Spares, version: int, name: str
) -> None:
    point = {"at": "file", "name": f".hoodie/{name}"}
    options = aged(spark, base, version=version)
    kept = lines(spark, base, FRESH)
    job = DyingJob(spark, work_order(base, "partition_ttl", {"days_retain": 30}), spares)
    assert job.die_at(point).result is None

    job.finish()

    assert lines(spark, base) == kept
    assert tables.left_behind(base) == []
    commits = hudi_table(spark, base, INDEX).commits()
    assert [each.write.operation for each in commits].count("DELETE_PARTITION") == 1
    tables.upsert(tables.rows(spark, 0, 70, ts=50), base, options)
    assert len(proved(spark, base, 4)) == 70


@pytest.mark.parametrize(
    ("cure", "index"),
    [
        ("cleaning", INDEX),
        pytest.param("rollback", INDEX, marks=pytest.mark.exhaustive),
        pytest.param("clustering", INDEX, marks=pytest.mark.exhaustive),
        pytest.param("clustering", None, marks=pytest.mark.exhaustive),
    ],
)
def test_the_request_that_hudis_run_ttl_leaves_is_named_and_taken_back(
    spark: SparkSession, base: Path, cure: str, index: BucketIndex | None
) -> None:
    shape: dict[str, Any] = {} if index else {"num_buckets": None, "table_type": COW}
    options = tables.write_table(spark, base, count=60, **shape)
    before = tables.snapshot(spark, base)
    spark.sql(f"CREATE TABLE lasting USING hudi LOCATION '{base}'")
    # No partition has expired, so Hudi fails.
    with pytest.raises(Exception, match=r"replacecommit\.inflight does not exist"):
        spark.sql("CALL run_ttl(table => 'lasting', ttl_policy => 'KEEP_BY_TIME', retain_days => 30000)").collect()
    spark.sql("DROP TABLE lasting")
    [request] = (base / ".hoodie/timeline").glob("*.replacecommit.requested")
    instant = request.name.partition(".")[0]
    works: dict[str, dict[str, Any]] = {"cleaning": {}, "rollback": {"instant": instant}}
    works["clustering"] = {"sort_by": ["city"], "wait_seconds": 1}

    # The process may still be alive.
    assert run_job(spark, base, "diagnosis", index=index).details["healthy"]
    assert run_job(spark, base, "cleaning", index=index).details["rolled_back"] == []
    if not index:
        with pytest.raises(WritersActiveError) as blocked:
            run_job(spark, base, "clustering", works["clustering"], index=index)
        assert (instant in blocked.value.detail, "`run_ttl`" in blocked.value.hint) == (True, True)
    for kind, refusal in (("rollback", "writer-active"), ("clustering", "pending-plan"))[: 2 if index else 1]:
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, kind, works[kind], index=index)
        [reason] = refused.value.reasons
        assert (reason.type, instant in reason.detail) == (refusal, True)
        assert "`run_ttl`" in (reason.hint or "")
        assert "compaction" not in (reason.hint or "")

    os.utime(request, (time.time() - 7200,) * 2)
    [finding] = run_job(spark, base, "diagnosis", index=index).details["findings"]
    assert (finding["type"], finding["cure"]["kind"]) == ("dead-write", "cleaning")
    assert f"{instant} was requested" in finding["detail"]
    planned = run_job(spark, base, cure, works[cure], index=index, dry_run=True).details
    assert (planned["refusals"], planned["beside"]["dead_writers"]) == ([], [instant])
    run_job(spark, base, cure, works[cure], index=index)

    assert hudi_table(spark, base, index).pending() == []
    assert tables.snapshot(spark, base) == before
    tables.upsert(tables.rows(spark, 0, 70, ts=9), base, options)
    assert (len(tables.snapshot(spark, base)), tables.duplicates(spark, base)) == (70, 0)
    assert run_job(spark, base, "audit", index=index).details["clean"]
