"""Expansions and compactions beside a writer that never pauses lose none of its acknowledged batches."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex, Outcome
from jobs.errors import WritersActiveError
from tests.integration import ceaseless_writer, tables
from tests.integration.run import run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

INDEX = BucketIndex(2, ("id",))
MINUTES = float(os.environ.get("CEASELESS_MINUTES", "0.5"))
PAUSE_SECONDS = 3.0


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_expansions_beside_a_ceaseless_writer_lose_no_acknowledged_batch(
    spark: SparkSession, tmp_path: Path, base: Path, table_type: str
) -> None:
    retries = {"hoodie.write.num.retries.on.conflict.failures": "5"}
    options = tables.writer_options(base, table_type=table_type, num_buckets=2, **retries)

    def expand(**params: Any) -> dict[str, Any]:
        retry = params.pop("writers_retry_conflicts", False)
        params = {"factor": 2, "settle_seconds": 5, **params}
        result = run_job(spark, base, "bucket_expansion", params, index=INDEX, writers_retry_conflicts=retry)
        assert result.outcome is Outcome.SUCCEEDED
        return result.details

    with ceaseless_writer.running(tmp_path, base, options) as ledger:
        # The job would have to interrupt the writer, so it changes nothing and leaves no files.
        with pytest.raises(WritersActiveError):
            expand(on_active_writers="abort")
        # The writer finds the conflict in the middle of a batch, and writes that batch again.
        doubled = [expand(writers_retry_conflicts=True) for _ in range(2)]
        assert [line.error for line in ceaseless_writer.read(ledger) if line.error] == [], doubled
        fenced = expand(on_active_writers="fence", writers_retry_conflicts=True)

    assert [details["buckets"] for details in [*doubled, fenced]] == [[2, 4], [4, 8], [8, 16]]
    merged = [details["merged"] for details in [*doubled, fenced]]
    assert any(each["arrow"] for each in merged) is (table_type == "MERGE_ON_READ")
    assert not any(each["hudi"] for each in merged), merged
    lines = ceaseless_writer.read(ledger)
    # A fenced writer may have seen an error.
    assert len([line for line in lines if line.error]) <= len(fenced["fenced"])
    assert ceaseless_writer.found(spark, base) == ceaseless_writer.expected(lines)
    assert tables.misplaced(spark, base, 16) == 0
    audit = run_job(spark, base, "audit", index=INDEX).details
    assert audit["clean"], audit


@pytest.mark.exhaustive
@pytest.mark.timeout(0 if MINUTES > 2 else 900)
@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.skipif(MINUTES > 2, reason="one is enough"))])
def test_compactions_by_arrow_beside_a_ceaseless_writer_lose_no_acknowledged_batch(
    spark: SparkSession, tmp_path: Path, base: Path, version: int
) -> None:
    options = tables.writer_options(base, num_buckets=2, version=version)
    instants: list[str] = []
    with ceaseless_writer.running(tmp_path, base, options) as ledger:
        ends = time.monotonic() + 60 * MINUTES
        while time.monotonic() < ends:
            details = run_job(spark, base, "compaction", {"engine": "arrow"}, index=INDEX).details
            assert {each["engine"] for each in details["engines"]} <= {"arrow"}
            instants += [each["instant"] for each in details["engines"]]
            time.sleep(PAUSE_SECONDS)

    lines = ceaseless_writer.read(ledger)
    print(f"{len(lines)} batches, {len(instants)} compactions beside them")
    assert [line.error for line in lines if line.error] == []
    assert len(instants) >= 2
    assert ceaseless_writer.found(spark, base) == ceaseless_writer.expected(lines)
    assert tables.misplaced(spark, base, 2) == 0
    audit = run_job(spark, base, "audit", index=INDEX).details
    assert audit["clean"], audit
