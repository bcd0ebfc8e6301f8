"""Gives a bucket index up. A Bloom or simple index finds rows in a file whatever its file id is, but it looks into base
files only. So all logs are compacted, and nothing else changes."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.contract import Outcome, Problem, Result, WorkOrder
from jobs.errors import refuse
from jobs.format.adopted_index import to_metadata
from jobs.hudi import hashing_config
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.records import FileSlice
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.bucket_index import BucketIndexParams, BucketIndexResult
from jobs.kinds.results import KindResult, WriterOption
from jobs.problems.bucket_indexes import HASHING_CONFIG_STAYS
from jobs.problems.tables import NO_BUCKET_INDEX, NON_BLOCKING_WRITERS
from jobs.protocol import preflight, repeated_file_ids, upgrade_refusals
from jobs.protocol.writers import alone
from jobs.services import compaction, stray_row_writes


def run(table: HudiTable, order: WorkOrder[BucketIndexParams], context: JobContext) -> Result[KindResult]:
    """Compacts all logs, checks under the lock that nothing is in flight, and makes a commit without rows that marks
    the end of the bucket index."""
    lock = TableLock(table, order.job_id)
    slices = table.file_slices()
    found = BucketIndexResult(
        action="drop",
        files=sum(len(item.log_files) + bool(item.log_files and item.base_file) for item in slices),
        bytes=sum(item.bytes for item in slices if item.log_files),
        partitions=len({item.partition for item in slices}),
        writer_options=(WriterOption(name="hoodie.index.type", value="SIMPLE"),),
    )
    problems = _refusals(table, order, slices)
    if order.dry_run:
        problems += compaction.refusals_of_everything(table, order, context)
        warning = "A writer that keeps the options of the bucket index fails, or writes keys a second time."
        return Result(Outcome.SUCCEEDED, details=found.having(refusals=tuple(problems), warnings=(warning,)))
    refuse(problems)
    wait = order.params.wait_seconds
    # The mark of an attempt that has died counts as a write in flight until its heartbeat has expired.
    with WriteClient(table, UNDER_OUR_LOCK) as client, alone(table, lock, client, wait, context.checkpoint):
        pass
    instants = compaction.of_everything(table, order, context)
    with lock.held(context.checkpoint), WriteClient(table, UNDER_OUR_LOCK) as client:
        table.reload()
        refuse(upgrade_refusals.busy(table, client, compacted=True))
        # Audits look for writers that go on with the bucket index.
        mark = stray_row_writes.mark(table, lock, to_metadata(None))
    return Result(Outcome.SUCCEEDED, instants=(*instants, mark), details=found)


def _refusals(table: HudiTable, order: WorkOrder[BucketIndexParams], slices: Sequence[FileSlice]) -> list[Problem]:
    problems = preflight.writers_not_stopped(table, order)
    if table.declared.index is None:
        problems.append(NO_BUCKET_INDEX.because())
    if table.has_consistent_hashing():
        problems.append(preflight.consistent_hashing())
    if hashing_config.is_in_force(table):
        problems.append(HASHING_CONFIG_STAYS.because(f"rules {table.bucket_rules()}"))
    if repeated_file_ids.non_blocking(slices):
        problems.append(NON_BLOCKING_WRITERS.because())
    return problems + preflight.misplaced_rows(
        table.commits(), "Rows of the table are in files that no reader sees; repair them first"
    )
