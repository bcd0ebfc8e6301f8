"""On tables without meta fields, jobs that need none work and keep the rows, all others are refused before they plan
anything, and an audit counts and compares by the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import RefusedError
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from tests.integration import tables
from tests.integration.plans import schedule_clustering
from tests.integration.run import hudi_table, run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

STOPPED = {"writers_stopped": True}


def write(spark: SparkSession, base: Path, **shape: Any) -> dict[str, str]:
    shape = {"num_buckets": None, "hoodie.populate.meta.fields": "false", **shape}
    return tables.write_table(spark, base, count=40, updates=2, **shape)


def rows(spark: SparkSession, base: Path) -> list[str]:
    """Returns all rows with all columns, after it has asserted that they are the same by the metadata table and by
    listing."""
    found = []
    for metadata in ("true", "false"):
        frame = spark.newSession().read.format("hudi").option("hoodie.metadata.enable", metadata).load(str(base))
        found.append(sorted(frame.select(*sorted(c for c in frame.columns if c[0] != "_")).toJSON().collect()))
    assert found[0] == found[1]
    return found[0]


def instants(base: Path) -> list[str]:
    return sorted(path.name for path in (base / ".hoodie").rglob("*") if path.name[:1].isdigit())


@pytest.mark.parametrize(
    ("table_type", "version", "partitioned"),
    [
        pytest.param("MERGE_ON_READ", 9, True, marks=pytest.mark.exhaustive),
        pytest.param("COPY_ON_WRITE", 9, True, marks=pytest.mark.exhaustive),
        pytest.param("MERGE_ON_READ", 6, True, marks=pytest.mark.exhaustive),
        pytest.param("COPY_ON_WRITE", 6, True, marks=pytest.mark.exhaustive),
        pytest.param("MERGE_ON_READ", 9, False, marks=pytest.mark.exhaustive),
    ],
)
def test_jobs_that_need_no_meta_fields_work_and_the_others_are_refused(
    spark: SparkSession, base: Path, table_type: str, version: int, partitioned: bool
) -> None:
    options = write(spark, base, table_type=table_type, version=version, partitioned=partitioned)
    expected = rows(spark, base)
    before = instants(base)
    refused_jobs: list[tuple[str, dict[str, Any]]] = [
        ("clustering", {"sort_by": ["city"]}),
        ("clustering", {}),
        ("partition_ttl", {"days_retain": 1, "table_name": "test"}),
    ]
    for kind, params in refused_jobs:
        planned = run_job(spark, base, kind, params, index=None, dry_run=True)
        assert "no-meta-fields" in {each["type"] for each in planned.details["refusals"]}
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, kind, params, index=None)
        assert "no-meta-fields" in {each.type for each in refused.value.reasons}
    assert instants(base) == before
    working: list[tuple[str, dict[str, Any]]] = [
        ("cleaning", {"policy": "KEEP_LATEST_COMMITS", "retain": 1}),
        ("savepoint", {}),
        ("archival", {"retain": 2}),
        ("metadata_table", {"action": "rebuild"}),
    ]
    if table_type == "MERGE_ON_READ":
        working.insert(0, ("compaction", {}))
    first = run_job(spark, base, "audit", index=None).details
    for kind, params in working:
        details = run_job(spark, base, kind, params, index=None, declared=STOPPED).details
        assert rows(spark, base) == expected, kind
        if kind == "compaction":
            assert details["rows"] == 40
            assert details["proof"]["left_out"] == ["no-meta-fields"]
    audit = run_job(spark, base, "audit", index=None).details
    assert audit["clean"], audit
    assert (audit["rows"], audit["duplicates"], audit["key_digest"]) == (40, 0, first["key_digest"])
    assert run_job(spark, base, "diagnosis", index=None).details["healthy"]
    tables.upsert(tables.rows(spark, 30, 50, ts=9), base, options)
    assert len(rows(spark, base)) == 50
    audit = run_job(spark, base, "audit", index=None).details
    assert (audit["clean"], audit["rows"]) == (True, 50)
    assert audit["key_digest"] != first["key_digest"]


@pytest.mark.exhaustive
def test_an_audit_finds_a_duplicate_key(spark: SparkSession, base: Path) -> None:
    options = write(spark, base, table_type="COPY_ON_WRITE")
    again = {
        **options,
        "hoodie.datasource.write.operation": "insert",
        "hoodie.merge.allow.duplicate.on.inserts": "true",
    }
    tables.upsert(tables.rows(spark, 0, 3, ts=9), base, again)
    audit = run_job(spark, base, "audit", index=None).details
    assert (audit["clean"], audit["rows"], audit["duplicates"]) == (False, 43, 3)


@pytest.mark.exhaustive
def test_a_plan_of_a_writer_is_not_executed_but_rolled_back(spark: SparkSession, base: Path) -> None:
    options = write(spark, base, table_type="COPY_ON_WRITE", version=6)
    expected = rows(spark, base)
    with WriteClient(hudi_table(spark, base, None), UNDER_OUR_LOCK) as client:
        plan = schedule_clustering(client)
    with pytest.raises(RefusedError, match="populate"):
        run_job(spark, base, "clustering", {"plans": [plan]}, index=None)
    run_job(spark, base, "rollback", {"instant": plan, "table_name": "test"}, index=None)
    assert not [name for name in instants(base) if name.startswith(plan) and "rollback" not in name]
    tables.upsert(tables.rows(spark, 30, 50, ts=9), base, options)
    assert len(rows(spark, base)) == len(expected) + 10


@pytest.mark.exhaustive
def test_an_audit_without_keys_does_not_claim_that_rows_are_in_their_buckets(spark: SparkSession, base: Path) -> None:
    write(spark, base, num_buckets=4)
    audit = run_job(spark, base, "audit").details
    assert "misplaced" not in audit
    assert audit["rows"] == 40
    assert [each["reason"]["type"] for each in audit["unchecked"]] == ["no-meta-fields"]
    with pytest.raises(RefusedError):
        run_job(spark, base, "bucket_expansion", {"num_buckets": 8})
