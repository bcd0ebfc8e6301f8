"""A clean by Hudi 1.2 beside an expression index stops all writers of a table: jobs refuse it, an audit finds it, and a
new metadata table ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

from jobs.errors import RefusedError
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.kinds.archival import ArchivalLimit, ArchivalParams
from jobs.protocol.archival_limits import limits
from tests.integration import indexed, tables
from tests.integration.indexed import COUNT
from tests.integration.run import hudi_table, run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
STOPPED: dict[str, Any] = {"declared": {"writers_stopped": True}}
OWN_CLEANER = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
MIXED = "expression-index-mixed-in"
CONDITIONS = ("id = 'k7'", "city = 433", "city >= 0 and ts >= 0", "fare >= -9 and city >= 0", "note is not null")


def findings(spark: SparkSession, base: Path) -> dict[str, dict[str, Any]]:
    found = run_job(spark, base, "audit", index=None).details["findings"]
    return {each["type"]: each for each in found if each["type"] != "expression-index-misleads"}


def archival_limits(spark: SparkSession, base: Path) -> list[ArchivalLimit]:
    table = hudi_table(spark, base, None)
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        return limits(table, client, ArchivalParams())


def dead_write(spark: SparkSession, base: Path) -> Any:
    details = run_job(spark, base, "diagnosis", {"rows": False}, index=None, writers_retry_conflicts=True).details
    return next((each for each in details["findings"] if each["type"] == "dead-write"), None)


def refused_and_cleaned_by_hudi(spark: SparkSession, base: Path, options: dict[str, str], detail: str) -> None:
    """Runs a cleaning, which is refused, and Hudi's own cleaner; asserts that an audit finds what that has done."""
    dry = run_job(spark, base, "cleaning", {"retain": 1}, index=None, dry_run=True).details["refusals"]
    assert [(each["type"], each["detail"]) for each in dry] == [("expression-index", detail)]
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "cleaning", {"retain": 1}, index=None)
    assert [reason.type for reason in refused.value.reasons] == ["expression-index"]
    tables.upsert(tables.rows(spark, 0, COUNT, ts=2), base, {**options, **OWN_CLEANER})
    assert list((base / ".hoodie" / "timeline").glob("*.clean"))
    found = findings(spark, base)
    assert MIXED in found
    assert "statistics-incomplete" not in found  # Queries by the statistics still find all rows.
    (remedy,) = [each.remedy for each in archival_limits(spark, base) if each.type == "cleaning"]
    assert remedy.startswith("Drop the expression index")


def test_a_clean_that_will_stop_all_writers_is_refused_and_found(spark: SparkSession, base: Path) -> None:
    options = indexed.write(spark, base, {**indexed.STATISTICS, **indexed.YEAR}, table_type=COW, partitioned=False)
    refused_and_cleaned_by_hudi(spark, base, options, "expr_index_day in column_stats")


def write_again(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    """Writes several times, because it depends on the hash values of the names of files whether a write fails."""
    for ts in range(3, 33):
        tables.upsert(tables.rows(spark, 0, COUNT, ts=ts), base, options)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("index", "detail", "partitioned"),
    [
        ({**indexed.STATISTICS, **indexed.YEAR}, "expr_index_day in column_stats", False),
        ({**indexed.STATISTICS, **indexed.YEAR}, "expr_index_day in column_stats", True),
        ({**indexed.BLOOM, **indexed.UPPER_REGION}, "expr_index_region in bloom_filters", False),
    ],
)
def test_a_clean_that_stops_all_writers_is_refused_found_and_cured(
    spark: SparkSession, base: Path, index: dict[str, str], detail: str, *, partitioned: bool
) -> None:
    options = indexed.write(spark, base, index, table_type=COW, partitioned=partitioned)
    assert findings(spark, base) == {}
    refused_and_cleaned_by_hudi(spark, base, options, detail)
    assert all(indexed.found_by_indexes(spark, base, CONDITIONS))
    with pytest.raises(Py4JJavaError, match="mismatched partition path"):
        write_again(spark, base, options)
    rows = tables.snapshot(spark, base)

    failed = [each.requested for each in hudi_table(spark, base, None).pending()]
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "rollback", {"instant": failed[0]}, index=None)
    (reason,) = refused.value.reasons
    assert (reason.type, reason.detail.partition(", ")[2]) == ("writer-active", "inflight, no heartbeat)")
    assert "retry_conflicts" in (reason.hint or "")
    for instant in failed:  # No cleaning, which would be refused.
        cure = dead_write(spark, base)["cure"]
        assert cure == {"kind": "rollback", "params": {"instant": instant}}
        run_job(spark, base, cure["kind"], cure["params"], index=None, writers_retry_conflicts=True)
    assert dead_write(spark, base) is None
    cure = findings(spark, base)[MIXED]["cure"]
    run_job(spark, base, cure["kind"], cure["params"], index=None, **STOPPED)
    assert (findings(spark, base), tables.snapshot(spark, base)) == ({}, rows)
    for more in range(10, 13):
        tables.upsert(tables.rows(spark, 0, COUNT + more, ts=40 + more), base, options)
    assert all(indexed.found_by_indexes(spark, base, CONDITIONS))
    assert (findings(spark, base), len(tables.snapshot(spark, base))) == ({}, COUNT + 12)


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_an_expression_index_alone_is_cleaned_but_gets_no_index_of_its_type(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    options = indexed.write(spark, base, indexed.YEAR, table_type=table_type)
    tables.upsert(tables.rows(spark, 0, COUNT, ts=2), base, options)
    if table_type == MOR:
        run_job(spark, base, "compaction", {}, index=None)
        tables.upsert(tables.rows(spark, 0, COUNT, ts=3), base, options)
    assert run_job(spark, base, "cleaning", {"retain": 1}, index=None).details["files_deleted"]
    for ts in range(4, 7):
        tables.upsert(tables.rows(spark, 0, COUNT + ts, ts=ts), base, options)
    assert (findings(spark, base), len(tables.snapshot(spark, base))) == ({}, COUNT + 6)

    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "index", {"action": "build", "index": "column_stats"}, index=None)
    assert [reason.type for reason in refused.value.reasons] == ["expression-index"]
    run_job(spark, base, "index", {"action": "build", "index": "bloom_filters"}, index=None)
    if table_type == MOR:  # Without another compaction every log belongs to the newest slice, which is kept.
        run_job(spark, base, "compaction", {}, index=None)
        tables.upsert(tables.rows(spark, 0, COUNT, ts=7), base, options)
    assert run_job(spark, base, "cleaning", {"retain": 1}, index=None).details["files_deleted"]
    assert findings(spark, base) == {}
