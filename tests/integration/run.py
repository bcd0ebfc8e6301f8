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
_WAITING_FOR_A_PAUSE = {"bucket_expansion", "bucket_contraction", "bucket_count"}


def table_of(base: Path | str, index: BucketIndex | None, **declared_too: Any) -> Table:
    """Returns what the service knows of a table."""
    return Table(str(base), "test", index, **{"writers_hudi_version": "1.2.0", **declared_too})


def hudi_table(spark: SparkSession, base: Path | str, index: BucketIndex | None, **declared_too: Any) -> HudiTable:
    return HudiTable(jvm_of(spark), table_of(base, index, **declared_too))


def work_order(
    base: Path | str,
    kind: str,
    params: dict[str, Any] | None = None,
    *,
    index: BucketIndex | None = INDEX,
    writers_retry_conflicts: bool = False,
    writers_query_pruning_off: bool = False,
    lock: TableLock | None = None,
    declared: dict[str, Any] | None = None,
    **plan: Any,
) -> WorkOrder:
    if kind in _WAITING_FOR_A_PAUSE:
        params = {"settle_seconds": 0, **(params or {})}
    known = {
        "lock": lock or TableLock(),
        "writers_retry_conflicts": writers_retry_conflicts,
        "writers_query_pruning_off": writers_query_pruning_off,
    }
    table = table_of(base, index, **{**known, **(declared or {})})
    plan.setdefault("job_id", f"job_{next(_numbers)}")
    return WorkOrder(attempt=1, kind=JobKind(kind), table=table, params=params or {}, **plan)


def perform_order(spark: SparkSession, order: WorkOrder, context: JobContext | None = None) -> Result:
    done = perform(HudiTable(jvm_of(spark), order.table), order, context or JobContext())
    # The worker sends the result to the service in this form.
    return Result.from_json(done.to_json())


def run_job(
    spark: SparkSession,
    base: Path | str,
    kind: str,
    params: dict[str, Any] | None = None,
    *,
    context: JobContext | None = None,
    **more: Any,
) -> Result:
    # Tests that act beside a job pass a context. Without one the job need not wait for a pause of writers, which is as
    # long as the longest one between commits, also those that were copied with the table.
    if context and kind in _WAITING_FOR_A_PAUSE:
        params = {"settle_seconds": 1, **(params or {})}
    return perform_order(spark, work_order(base, kind, params, **more), context)


def proved(spark: SparkSession, base: Path | str, num_buckets: int, index: BucketIndex = INDEX) -> list[str]:
    """Returns all rows of a table after an audit without findings. `index` is the declared one."""
    found = tables.in_order(spark, base, num_buckets)
    audit = run_job(spark, base, "audit", index=index).details
    assert audit["clean"], audit
    assert audit["pending_instants"] == []
    return found
