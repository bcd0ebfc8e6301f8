"""The metadata table: compares it with the storage, compacts it, or rebuilds it from a listing.

A writer compacts the metadata table in the same way at every tenth commit, under the same lock. Every reader and writer
plans with the metadata table, and a writer may have it open, so it is rebuilt only while all writers are stopped.
Meanwhile readers list the storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from jobs.contract import Outcome, Problem, Result, WorkOrder
from jobs.errors import FilesGoneError, HudiError, WritersActiveError, refuse
from jobs.hudi import index_note
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.metadata_table import COMPACTED_AT_ONCE, MetadataTableState
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.metadata_table import MetadataTableParams, MetadataTableResult
from jobs.problems.plans import FILES_WITHOUT_COMMIT
from jobs.protocol import missing_parts, preflight, unique_keys
from jobs.protocol.writers import remove_listed_late_files
from jobs.services.checks import metadata_table, table_parts
from jobs.services.checks.examination import Check
from jobs.services.checks.finding import Examined, Finding, confirmed, counted_with_first


def run(table: HudiTable, order: WorkOrder[MetadataTableParams], context: JobContext) -> Result[MetadataTableResult]:
    """Compares, or with `action` `rebuild` deletes the metadata table and builds the partitions that it had.

    If an attempt dies in between, the next one finds a note with the names of these partitions.
    """
    if order.params.action == "compact":
        return _compact(table, order, context)
    context.step("comparing it with the storage")
    findings = findings_of(table)
    found = MetadataTableResult(
        partitions=tuple(sorted(table.metadata_partitions)), findings=tuple(each.result() for each in findings)
    )
    if order.params.action == "validate":
        return Result(Outcome.SUCCEEDED, details=found)
    problems = [*preflight.writers_not_stopped(table, order), *preflight.lock_not_provable(table)]
    problems += _of_files(table, findings)
    # If keys are duplicate, a new record index cannot be built, and the old one would be deleted before that is
    # noticed.
    problems += unique_keys.refusals(table, had=index_note.unbuilt(table))
    # The definitions say whether the record index is global or separate for each partition.
    problems += missing_parts.of_index_definitions(table)
    # A listing misses partitions without a metadata file.
    problems += missing_parts.of_folders(table)
    if order.dry_run:
        return Result(Outcome.SUCCEEDED, details=found.having(refusals=tuple(problems)))
    refuse(problems)
    lock = TableLock(table, order.job_id)
    with lock.held(context.checkpoint):
        table.reload()
        if pending := table.pending():
            raise WritersActiveError(f"In flight: {', '.join(map(str, pending))}.")
        had = index_note.keep(table)
        with WriteClient(table, UNDER_OUR_LOCK, {"hoodie.metadata.enable": "true"}) as client:
            context.step("building it anew")
            # A listing cannot distinguish late files from committed ones.
            remove_listed_late_files(client)
            lock.verify()
            client.metadata_table.rebuild(had)
            lock.verify()
        table.ignores_metadata_table = False
        table.reload()
        if left := findings_of(table):
            raise HudiError(f"The new metadata table differs from the storage: {left[0].detail}")
    return Result(Outcome.SUCCEEDED, details=found.having(partitions=tuple(sorted(table.metadata_partitions))))


def _compact(
    table: HudiTable, order: WorkOrder[MetadataTableParams], context: JobContext
) -> Result[MetadataTableResult]:
    found = MetadataTableResult(partitions=tuple(sorted(table.metadata_partitions)))
    if not table.metadata_partitions:
        return Result(Outcome.SUCCEEDED, details=found.having(nothing_to_do=True))
    context.step("reading its timeline")
    with WriteClient(table, UNDER_OUR_LOCK, COMPACTED_AT_ONCE) as client:
        state = client.metadata_table.state()
    found = found.having(before=state.files, pending=len(state.pending))
    # A runner that has died leaves a pending plan, which is executed first.
    found = found.having(nothing_to_do=not (state.files.commits or state.pending))
    if order.dry_run:
        return Result(Outcome.SUCCEEDED, details=found)
    lock = TableLock(table, order.job_id)
    if found.nothing_to_do:
        return Result(Outcome.SUCCEEDED, details=found)
    context.step("compacting it")
    with lock.held(context.checkpoint):
        context.checkpoint()
        after = merge_logs(table, lock)
    table.reload()
    context.step("comparing it with the storage")
    if left := findings_of(table):
        raise HudiError(f"The metadata table differs from the storage: {left[0].detail}")
    return Result(Outcome.SUCCEEDED, details=found.having(after=after.files, pending=len(after.pending)))


def merge_logs(table: HudiTable, lock: TableLock) -> MetadataTableState:
    """Compacts the metadata table. The lock must be held."""
    table.reload()
    with WriteClient(table, UNDER_OUR_LOCK, COMPACTED_AT_ONCE) as client:
        lock.verify()
        client.metadata_table.compact()
        lock.verify()
        return client.metadata_table.state()


def _of_files(table: HudiTable, findings: Sequence[Finding]) -> list[Problem]:
    """Refuses a rebuild that would hide the loss of files, or would show readers the rows of files that no commit
    names."""
    if gone := [finding for finding in findings if finding.cure is None]:
        return [
            FilesGoneError.because(
                gone[0].detail, title="Files that the metadata table lists are gone", hint=gone[0].hint
            )
        ]
    with ExitStack() as opened:
        strays = Examined(table, opened).strays
    if not strays:
        return []
    return [FILES_WITHOUT_COMMIT.because(counted_with_first(strays))]


def findings_of(table: HudiTable) -> list[Finding]:
    """Compares twice and returns the differences found both times, because changes of writers appear in one comparison
    only."""
    # An incomplete or damaged metadata table cannot be compared.
    for check in (table_parts.metadata_table, metadata_table.files, metadata_table.listing):
        first = _run(table, check)
        if first:
            table.reload()
        if found := confirmed(first, _run(table, check) if first else ()):
            return found
    return []


def _run(table: HudiTable, check: Check) -> list[Finding]:
    with ExitStack() as opened:
        return list(check(Examined(table, opened)))
