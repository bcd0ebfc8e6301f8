"""Cleaning keeps the files that a consumer needs to continue from its last commit, independently of the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import RefusedError
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

POLICIES = [
    "KEEP_LATEST_COMMITS",
    pytest.param("KEEP_LATEST_FILE_VERSIONS", marks=pytest.mark.exhaustive),
    pytest.param("KEEP_LATEST_BY_HOURS", marks=pytest.mark.exhaustive),
]


def rows_as_of(spark: SparkSession, base: Path, instant: str) -> list[Any]:
    frame = spark.read.format("hudi").option("as.of.instant", instant).load(str(base))
    return sorted(map(tuple, frame.select("id", "ts").collect()))


def keys_since(spark: SparkSession, base: Path, instant: str) -> set[str]:
    options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": instant}
    return {row.id for row in spark.read.format("hudi").options(**options).load(str(base)).select("id").collect()}


@pytest.mark.exhaustive
@pytest.mark.parametrize("policy", POLICIES)
def test_a_consumer_that_is_behind_can_go_on_after_a_cleaning(spark: SparkSession, base: Path, policy: str) -> None:
    options = tables.write_table(spark, base, count=60, table_type="COPY_ON_WRITE", metadata=False)
    for number in range(4):
        tables.upsert(tables.rows(spark, 0, 20 + number, ts=number + 1), base, options)
    before = proved(spark, base, 4)
    commits = [each.write.instant for each in hudi_table(spark, base, INDEX).commits()]
    seen = commits[1]
    known, news = rows_as_of(spark, base, seen), keys_since(spark, base, seen)
    assert news == {f"k{number}" for number in range(23)}
    consumer = {"consumers": [{"name": "warehouse", "instant": seen}]}
    params = {"policy": policy, "retain": 2 if policy == "KEEP_LATEST_FILE_VERSIONS" else 1}

    planned = run_job(spark, base, "cleaning", {**params, **consumer}, dry_run=True).details
    kept = run_job(spark, base, "cleaning", {**params, **consumer}).details

    assert kept["files_deleted"] == planned["files"]
    assert kept["retained"] > kept["retain"]
    assert rows_as_of(spark, base, seen) == known
    assert keys_since(spark, base, seen) == news
    assert proved(spark, base, 4) == before
    if policy != "KEEP_LATEST_BY_HOURS":
        # Without the consumer the same cleaning would have deleted files that the consumer needs.
        assert run_job(spark, base, "cleaning", params).details["files_deleted"] > 0
        assert proved(spark, base, 4) == before
    tables.upsert(tables.rows(spark, 0, 70, ts=50), base, options)
    assert len(proved(spark, base, 4)) == 70


@pytest.mark.exhaustive
def test_a_replacement_that_a_consumer_has_not_seen_keeps_the_replaced_files(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=60, updates=1, table_type="COPY_ON_WRITE")
    seen = hudi_table(spark, base, INDEX).commits()[-1].write.instant
    known = rows_as_of(spark, base, seen)
    run_job(spark, base, "bucket_expansion", {"factor": 2})
    consumer = {"consumers": [{"name": "warehouse", "instant": seen}]}
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "cleaning", {"policy": "KEEP_LATEST_FILE_VERSIONS", "retain": 2, **consumer})
    assert [reason.type for reason in refused.value.reasons] == ["consumer-behind"]
    run_job(spark, base, "cleaning", {"retain": 1, **consumer})
    assert rows_as_of(spark, base, seen) == known
    archived = run_job(spark, base, "archival", {"retain": 2, **consumer}, dry_run=True).details
    assert archived["candidates"] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_writers_own_plan_is_refused_while_a_consumer_needs_its_files(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    options = tables.write_table(spark, base, count=60, table_type=table_type)
    for number in range(4):
        tables.upsert(tables.rows(spark, 0, 20 + number, ts=number + 1), base, options)
        if table_type == "MERGE_ON_READ":
            run_job(spark, base, "compaction")
    before = proved(spark, base, 4)
    table = hudi_table(spark, base, INDEX)
    commits = [each.write.instant for each in table.commits()]
    seen = commits[len(commits) // 2]
    known = rows_as_of(spark, base, seen)
    with WriteClient(table, UNDER_OUR_LOCK, {"hoodie.clean.commits.retained": "1"}) as client:
        planned = client.cleaner.plan()
        assert planned is not None
        client.cleaner.request(planned, lambda: None)
    [plan] = [item.requested for item in table.instants() if item.action == "clean"]
    behind = {"consumers": [{"name": "warehouse", "instant": seen}]}
    for params in ({"plans": [plan]}, {"retain": 10}):
        refused = run_job(spark, base, "cleaning", {**params, **behind}, dry_run=True).details["refusals"]
        assert [each["type"] for each in refused] == ["clean-deletes-files-of-consumer"]
        with pytest.raises(RefusedError, match="warehouse"):
            run_job(spark, base, "cleaning", {**params, **behind})
    assert rows_as_of(spark, base, seen) == known

    caught_up = {"consumers": [{"name": "warehouse", "instant": commits[-1]}]}
    details = run_job(spark, base, "cleaning", {"plans": [plan], **caught_up}).details
    assert details["files_deleted"] > 0, details
    assert proved(spark, base, 4) == before
