"""Removes leftovers of dead writers and services: markers, files of rolled-back writes, and hashing configs without a
commit."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.contract import Outcome, Problem, Result, WorkOrder
from jobs.errors import WritersActiveError, refuse
from jobs.hudi import dangling_configs, hashing_config
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.repair import RepairResult
from jobs.problems.rescales import RULES_BEFORE_UNKNOWN, WRITTEN_BY_DANGLING_CONFIG
from jobs.protocol.leftovers import old_markers
from jobs.protocol.writers import remove_listed_late_files
from jobs.services.checks.row_counts import count_rows


def run(table: HudiTable, order: WorkOrder, context: JobContext) -> Result[RepairResult]:
    """Removes the leftovers with the lock held, so that no write begins or ends meanwhile. Raises RefusedError for a
    config by which rows were written, and WritersActiveError if a write began or ended before the job had the lock."""
    configs, seen = dangling_configs.dangling(table), _completed(table)
    if configs:
        context.step("reading the keys of all rows")
    problems = _of_configs(table, configs)
    if order.dry_run:
        with WriteClient(table, UNDER_OUR_LOCK) as client:
            markers = old_markers(table, client)
            late = client.late_files.files_of(client.late_files.rolled_back()).values()
        planned = _result(sum(map(len, late)), markers, configs).having(refusals=tuple(problems))
        return Result(Outcome.SUCCEEDED, details=planned)
    refuse(problems)
    lock = TableLock(table, order.job_id)
    with lock.held(context.checkpoint):
        table.reload()
        if configs and (table.pending_writes() or _completed(table) != seen):
            raise WritersActiveError("A write began or ended while the rows were read; stop the writers for this.")
        with WriteClient(table, UNDER_OUR_LOCK) as client:
            markers = old_markers(table, client)
            context.step("removing late files")
            lock.verify()
            late_files = remove_listed_late_files(client)
            context.step("removing markers")
            for instant in markers:
                lock.verify()
                client.tidy_up(instant)
        context.step("removing hashing configs")
        for instant in configs:
            lock.verify()
            hashing_config.remove(table, instant)
    return Result(Outcome.SUCCEEDED, details=_result(late_files, markers, configs))


def _result(late_files: int, markers: Sequence[str], configs: Sequence[str]) -> RepairResult:
    return RepairResult(late_files=late_files, markers=tuple(markers), hashing_configs=tuple(configs))


def _completed(table: HudiTable) -> frozenset[str]:
    return frozenset(item.requested for item in table.instants() if item.state == "COMPLETED")


def _of_configs(table: HudiTable, configs: Sequence[str]) -> list[Problem]:
    """Refuses to remove a config unless every row is in its bucket by the previous rules."""
    if not configs:
        return []
    earlier = hashing_config.rules_before(table, min(configs))
    if not earlier:
        return [RULES_BEFORE_UNKNOWN.because(min(configs))]
    rules = earlier[0]
    wrong = sum(each.misplaced for each in count_rows(table, rules))
    if not wrong:
        return []
    return [WRITTEN_BY_DANGLING_CONFIG.because(f"{wrong} rows are not in their bucket by the rules before it, {rules}")]
