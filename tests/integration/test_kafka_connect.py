"""Hudi's sink for Kafka Connect writes all rows from a partition of a topic to one file group of each partition of the
table, whose id is a digest of both. It never looks whether that file group was replaced."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from jobs.errors import RefusedError
from jobs.format.kafka_connect import OFFSETS, last_commit
from tests.integration import tables
from tests.integration.plans import OtherRunner
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import newest
from tests.integration.test_bucket_index import STOPPED
from tests.integration.test_repair_of_archived_writes import archive
from tests.integration.writers import At

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COMMITTED, TOPIC_PARTITION = "20260101000000000", 3
# Options whose names begin with this prefix go into the commit's metadata.
_OF_SINK = {"_hoodie.spark.sql.writes.prepped": "true", "hoodie.datasource.write.commitmeta.key.prefix": "kafka."}
REPLACING: list[tuple[str, dict[str, Any]]] = [
    ("clustering", {"sort_by": ["fare"]}),
    ("clustering", {}),
    ("partition_ttl", {"days_retain": 1}),
    ("bucket_index", {"action": "adopt", "num_buckets": 4}),
]


def sunk(spark: SparkSession, base: Path, options: dict[str, str], first: int, last: int, ts: int) -> None:
    """Writes rows with their locations, as `AbstractConnectWriter` and `BufferedConnectWriter` (1.2) do."""
    groups = {
        f"2026-01-0{day}": hashlib.md5(f"{TOPIC_PARTITION}-2026-01-0{day}".encode()).hexdigest().upper()
        for day in (1, 2, 3)
    }
    group = F.create_map(*(F.lit(each) for item in groups.items() for each in item))[F.col("dt")]
    columns = {
        "_hoodie_commit_time": F.lit(COMMITTED),
        "_hoodie_commit_seqno": F.lit(""),
        "_hoodie_record_key": F.col("id"),
        "_hoodie_partition_path": F.col("dt"),
        "_hoodie_file_name": F.concat(group, F.lit(f"_0-0-0_{COMMITTED}.parquet")),
    }
    # Hudi takes a column that is never null for another schema. The partition is nullable.
    nullable = [F.concat(value, F.substring("dt", 1, 0)).alias(name) for name, value in columns.items()]
    located = tables.rows(spark, first, last, ts=ts).select(*nullable, "*")
    tables.upsert(located, base, {**options, **_OF_SINK, OFFSETS: f"{TOPIC_PARTITION}={last}"})


def _last_commit(spark: SparkSession, base: Path) -> str:
    found = last_commit((each.write.instant, each.write.operation) for each in hudi_table(spark, base, None).commits())
    assert found is not None
    return found


def test_no_job_replaces_the_file_groups_of_a_kafka_connect_sink(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=60, num_buckets=None)
    sunk(spark, base, options, 60, 120, 1)
    before = tables.snapshot(spark, base)
    assert len(before) == 120

    for kind, params in REPLACING:
        job = {"index": None, "declared": STOPPED}
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, kind, params, **job)
        assert [each.type for each in refused.value.reasons] == ["file-ids-repeat"]
        planned = run_job(spark, base, kind, params, dry_run=True, **job).details
        assert [each["type"] for each in planned["refusals"]] == ["file-ids-repeat"]
    assert tables.snapshot(spark, base) == before


@pytest.mark.exhaustive
def test_a_sink_goes_on_after_a_compaction_and_its_own_plans_are_refused(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=60, num_buckets=None)
    sunk(spark, base, options, 60, 120, 1)
    before = tables.snapshot(spark, base)
    run_job(spark, base, "compaction", index=None)
    run_job(spark, base, "cleaning", {"retain": 1}, index=None)
    assert tables.snapshot(spark, base) == before
    sunk(spark, base, options, 80, 140, 2)
    found = {row["id"]: row["ts"] for row in tables.collected(spark, base).rows}
    assert found == {f"k{n}": 0 if n < 60 else 1 if n < 80 else 2 for n in range(140)}
    audit = run_job(spark, base, "audit", index=None).details
    assert (audit["findings"], audit["stale_writes"], audit["duplicates"]) == ([], [], 0)

    # The sink schedules plans itself (`hoodie.clustering.async.enabled`).
    plan = OtherRunner(spark, base, options).plan_clustering()
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "clustering", {"plans": [plan]}, index=None)
    assert [each.type for each in refused.value.reasons] == ["file-ids-repeat"]


@pytest.mark.exhaustive
def test_the_file_groups_of_a_sink_that_is_gone_are_replaced_and_its_return_is_recovered(
    spark: SparkSession, base: Path
) -> None:
    options = tables.write_table(spark, base, count=60, num_buckets=None)
    sunk(spark, base, options, 60, 120, 1)
    earlier = _last_commit(spark, base)
    sunk(spark, base, options, 100, 120, 2)
    last = _last_commit(spark, base)
    before = tables.snapshot(spark, base)

    def declared(ended: str) -> dict[str, Any]:
        return {"index": None, "declared": {"writers_kafka_connect_ended": ended}}

    for kind, params in REPLACING:
        gone = {**STOPPED, "writers_kafka_connect_ended": last}
        planned = run_job(spark, base, kind, params, dry_run=True, index=None, declared=gone).details
        assert planned["refusals"] == []
    for wrong in (earlier, "99990101000000000"):
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, "clustering", {"sort_by": ["fare"]}, **declared(wrong))
        assert [each.type for each in refused.value.reasons] == ["file-ids-repeat"]
        assert f'"kafka_connect_ended": "{last}"' in refused.value.reasons[0].hint

    # The sink was declared as ended, but it commits during the job.
    beside = At("rewriting", lambda: sunk(spark, base, options, 110, 130, 3))
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "clustering", {"sort_by": ["fare"]}, context=beside, **declared(last))
    assert [each.type for each in refused.value.reasons] == ["file-ids-repeat"]
    assert len(tables.snapshot(spark, base)) == len(before) + 10
    last, before = _last_commit(spark, base), tables.snapshot(spark, base)

    run_job(spark, base, "clustering", {"sort_by": ["fare"]}, **declared(last))
    assert tables.snapshot(spark, base) == before
    tables.upsert(tables.rows(spark, 90, 105, ts=4), base, options)
    sunk(spark, base, options, 100, 140, 5)
    stale = run_job(spark, base, "audit", **declared(last)).details["stale_writes"]
    assert [(each["operation"], each["doubt"]) for each in stale] == [("KAFKA_CONNECT", None)]

    run_job(spark, base, "repair", **declared(last))
    found = {row["id"]: row["ts"] for row in tables.collected(spark, base).rows}
    ages = {range(60): 0, range(60, 90): 1, range(90, 100): 4, range(100, 140): 5}
    assert found == {f"k{n}": ts for numbers, ts in ages.items() for n in numbers}
    audit = run_job(spark, base, "audit", **declared(last)).details
    assert audit["clean"], audit


@pytest.mark.exhaustive
@pytest.mark.parametrize(("version", "is_archived"), [(9, False), (6, False), (9, True)])
def test_rows_of_a_sink_that_returns_after_an_archived_overwrite_are_joined_or_said_to_be_there_twice(
    spark: SparkSession, base: Path, version: int, *, is_archived: bool
) -> None:
    options = tables.write_table(spark, base, count=60, num_buckets=None, metadata=False, version=version)
    sunk(spark, base, options, 60, 120, 1)
    overwriting = {**options, "hoodie.datasource.write.operation": "insert_overwrite"}
    tables.upsert(tables.rows(spark, 0, 120, ts=1), base, overwriting)
    archive(spark, base, options, newest(base))
    late = []
    for first, ts in ((90, 5), (100, 6)):
        sunk(spark, base, options, first, 140, ts)
        late.append(newest(base))
    if is_archived:
        archive(spark, base, options, late[-1])
    before = tables.snapshot(spark, base)
    assert tables.duplicates(spark, base) == 30
    (history,) = (each for name in ("timeline/history", "history") if (each := base / ".hoodie" / name).exists())
    away = history.rename(base.with_name("history"))
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "repair", {"instants": late}, index=None)
    [reason] = refused.value.reasons
    if is_archived:
        assert reason.type == "history-incomplete"
    else:
        assert (reason.type, reason.detail) == ("rows-there-twice", f"10 keys of {late[0]}, 20 keys of {late[1]}")
    assert tables.snapshot(spark, base) == before
    away.rename(history)
    settled = base.with_name("settled") / base.name
    shutil.copytree(base, settled)
    assert run_job(spark, settled, "repair", {"accepted": late}, index=None).details["waived"] == late
    assert tables.duplicates(spark, settled) == 30

    done = run_job(spark, base, "repair", {"instants": late}, index=None).details

    assert (sorted(done["repaired"]), done["rows"]) == (late, 50)
    found = {int(row["id"][1:]): row["ts"] for row in tables.collected(spark, base).rows if row["ts"]}
    assert found == {n: 1 if n < 90 else 5 if n < 100 else 6 for n in range(140)}
    audit = run_job(spark, base, "audit", index=None).details
    assert (audit["clean"], audit["duplicates"]) == (True, 0), audit


@pytest.mark.exhaustive
def test_a_table_gets_buckets_after_its_sink_and_the_rows_of_a_sink_that_returns_go_there(
    spark: SparkSession, base: Path
) -> None:
    options = tables.write_table(spark, base, count=60, num_buckets=None)
    sunk(spark, base, options, 60, 120, 1)
    gone = {**STOPPED, "writers_kafka_connect_ended": _last_commit(spark, base)}
    before = tables.snapshot(spark, base)
    run_job(spark, base, "bucket_index", {"action": "adopt", "num_buckets": 4}, index=None, declared=gone)
    assert tables.snapshot(spark, base) == before

    sunk(spark, base, options, 100, 140, 2)
    declared = {"index": BucketIndex(4, ("id",)), "declared": gone}
    assert not run_job(spark, base, "audit", **declared).details["clean"]
    run_job(spark, base, "repair", **declared)
    found = {row["id"]: row["ts"] for row in tables.collected(spark, base).rows}
    assert found == {f"k{n}": 0 if n < 60 else 1 if n < 100 else 2 for n in range(140)}
    tables.upsert(tables.rows(spark, 0, 150, ts=3), base, tables.writer_options(base, num_buckets=4))
    audit = run_job(spark, base, "audit", **declared).details
    assert (audit["clean"], audit["rows"]) == (True, 150), audit
