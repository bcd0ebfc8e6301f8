"""Runs one job in the test's own Spark session, as a worker does."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from jobs.contract import BucketIndex, JobKind, Result, Table, TableLock, WorkOrder
from jobs.hudi.jvm import jvm_of
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.worker.attempt import perform
from tests.integration import tables
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_numbers = count(1)


def hudi_table(spark: SparkSession, base: Path | str, index: BucketIndex | None, **declared_too: Any) -> HudiTable:
    declared = Table(str(base), "test", index, **{"writers_hudi_version": "1.2.0", **declared_too})
    return HudiTable(jvm_of(spark), declared)


def run_job(
    spark: SparkSession,
    base: Path | str,
    kind: str,
    params: dict[str, Any] | None = None,
    *,
    index: BucketIndex | None = INDEX,
    dry_run: bool = False,
    context: JobContext | None = None,
    writers_retry_conflicts: bool = False,
    writers_query_pruning_off: bool = False,
    lock: TableLock | None = None,
    declared: dict[str, Any] | None = None,
    **plan: Any,
) -> Result:
    known = {
        "lock": lock or TableLock(),
        "writers_retry_conflicts": writers_retry_conflicts,
        "writers_query_pruning_off": writers_query_pruning_off,
    }
    table = hudi_table(spark, base, index, **{**known, **(declared or {})})
    if kind in {"bucket_expansion", "bucket_contraction", "bucket_count"}:
        # Tests that act beside a job pass a context. Without one the job need not wait for a pause of writers, which is
        # as long as the longest one between commits, also those that were copied with the table.
        params = {"settle_seconds": 1 if context else 0, **(params or {})}
    plan.setdefault("job_id", f"job_{next(_numbers)}")
    job = WorkOrder(attempt=1, kind=JobKind(kind), table=table.declared, params=params or {}, dry_run=dry_run, **plan)
    # The worker sends the result to the service in this form.
    return Result.from_json(perform(table, job, context or JobContext()).to_json())


def proved(spark: SparkSession, base: Path | str, num_buckets: int, index: BucketIndex = INDEX) -> list[str]:
    """Returns all rows of a table after an audit without findings. `index` is the declared one."""
    found = tables.in_order(spark, base, num_buckets)
    audit = run_job(spark, base, "audit", index=index).details
    assert audit["clean"], audit
    assert audit["pending_instants"] == []
    return found
