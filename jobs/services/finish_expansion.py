"""Ends a rescale: retires the hashing config once every writer has the new number of buckets as its own option.

On a table with a hashing config, Hudi 1.2 misses rows when it prunes by the bucket index: a filter that is not on the
hash field loses rows, in `SELECT` and therefore in Spark SQL's `UPDATE` and `DELETE` (`PartitionBucketIndexSupport`).
When all partitions have one number and every writer has it too, the config is not needed: its folder is renamed under
the table's lock, and renamed back to undo that.
"""

from __future__ import annotations

from jobs.contract import Outcome, Problem, Result, WorkOrder
from jobs.errors import WritersActiveError, refuse
from jobs.format.bucket_rules import BucketRules
from jobs.hudi import dangling_configs, hashing_config
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.finish_expansion import FinishExpansionParams, FinishExpansionResult
from jobs.problems.rescales import (
    HASHING_CONFIG_DANGLING,
    HASHING_CONFIG_IN_FORCE,
    NO_HASHING_CONFIG,
    PARTITIONS_DIFFER,
    RENAME_NOT_ATOMIC,
    WRITERS_HAVE_THE_OLD_NUMBER,
)
from jobs.protocol import preflight, writer_engines
from jobs.protocol.writers import roll_back_dead

_AGAIN = (
    "Nothing was changed. Run the job again at a moment without a write in flight. A pending plan of compaction or "
    "clustering has to be executed by a job, or rolled back. A `rollback` job removes an instant that a writer has "
    "abandoned without a heartbeat."
)


def run(
    table: HudiTable, order: WorkOrder[FinishExpansionParams], context: JobContext
) -> Result[FinishExpansionResult]:
    """Retires the hashing config, or with `undo` restores the one that was retired last."""
    context.step("planning")
    undo = order.params.undo
    rules = table.bucket_rules()
    if not order.dry_run and order.attempt > 1 and _has_renamed(table, undo=undo):
        return Result(Outcome.SUCCEEDED, details=_result(table, rules.default if rules else None))
    problems = _of_undo(table) if undo else _of_retiring(table, order, rules)
    problems += preflight.lock_not_provable(table)
    number = rules.default if rules else None
    if order.dry_run:
        return Result(Outcome.SUCCEEDED, details=_result(table, number).having(refusals=tuple(problems)))
    refuse(problems)
    lock = TableLock(table, order.job_id)
    context.step("retiring the hashing config" if not undo else "restoring the hashing config")
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        roll_back_dead(table, lock, client, context.checkpoint)
    with lock.held(context.checkpoint):
        # A writer reads the number before it starts, so nobody knows whether a write in flight has read the config.
        if pending := table.pending():
            raise WritersActiveError(f"In flight: {', '.join(map(str, pending))}.", hint=_AGAIN)
        lock.verify()
        hashing_config.restore(table) if undo else hashing_config.retire(table)
    return Result(Outcome.SUCCEEDED, details=_result(table, number))


def _has_renamed(table: HudiTable, *, undo: bool) -> bool:
    """Returns whether an earlier attempt has died right after its only change."""
    return hashing_config.is_in_force(table) == undo and (undo or bool(hashing_config.retired(table)))


def _result(table: HudiTable, num_buckets: int | None) -> FinishExpansionResult:
    return FinishExpansionResult(
        num_buckets=num_buckets,
        retired=tuple(hashing_config.retired(table)),
        in_force=hashing_config.is_in_force(table),
    )


def _of_retiring(table: HudiTable, order: WorkOrder[FinishExpansionParams], rules: BucketRules | None) -> list[Problem]:
    if rules is None or not hashing_config.is_in_force(table):
        return [NO_HASHING_CONFIG.because()]
    problems = writer_engines.of_running_flink(table, order)
    if dangling := dangling_configs.dangling(table):
        problems.append(HASHING_CONFIG_DANGLING.because(", ".join(dangling)))
    numbers = {number for _, number in rules.rules}
    index = table.declared.index
    if len(numbers) != 1:
        problems.append(PARTITIONS_DIFFER.because(str(rules)))
    elif index is None or index.num_buckets not in numbers:
        problems.append(
            WRITERS_HAVE_THE_OLD_NUMBER.because(
                f"declared: {index.num_buckets if index else 'none'}; the table has {max(numbers)}",
                hint=f"Give every writer hoodie.bucket.index.num.buckets={max(numbers)}, restart it, and PATCH the"
                " table's `index` with that number. A writer that keeps the old number silently duplicates rows.",
            )
        )
    problems += preflight.misplaced_rows(table.commits(), "Rows of stale writes must be repaired first")
    return problems + _of_storage(table)


def _of_undo(table: HudiTable) -> list[Problem]:
    if hashing_config.is_in_force(table):
        return [HASHING_CONFIG_IN_FORCE.because()]
    if not hashing_config.retired(table):
        return [NO_HASHING_CONFIG.because(title="No hashing config of this table was retired")]
    rules, index = hashing_config.rules_of_retired(table), table.declared.index
    numbers = {number for _, number in rules.rules} if rules else set()
    problems = _of_storage(table)
    if index is None or numbers != {index.num_buckets}:
        # The table may have adopted another number since.
        retired = ", ".join(map(str, sorted(numbers))) or "none"
        problems.append(
            WRITERS_HAVE_THE_OLD_NUMBER.because(
                f"declared: {index.num_buckets if index else 'none'}; the retired config has {retired}",
                title="The retired hashing config has another number of buckets than the table",
                hint="If the table's files have the number of the retired config, PATCH the table's `index` with it.",
            )
        )
    return problems


def _of_storage(table: HudiTable) -> list[Problem]:
    if table.scheme in {"file", "hdfs"}:
        return []
    return [
        RENAME_NOT_ATOMIC.because(
            table.scheme,
            hint=f"Keep the hashing config, and set {writer_engines.PRUNING}=false wherever the table is read by SQL.",
        )
    ]
