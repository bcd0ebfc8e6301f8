"""Audits a table: compares its commits, its metadata table and the storage with each other, and checks that every row
is in its bucket and exists once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack

from msgspec import UNSET
from msgspec.structs import asdict

from jobs.contract import Outcome, Result, WorkOrder
from jobs.dataplane.key_digest import KeyDigest
from jobs.errors import CancelledError, FileMissingError, JobError, TimedOutError
from jobs.format.stale_writes import stale_writes
from jobs.hudi import hashing_config
from jobs.hudi.commit_order import misdated_instants
from jobs.hudi.rows import hidden_by_statistics
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.audit import AuditParams, AuditResult, RowsOfReaders, StaleWrite
from jobs.kinds.registry import KINDS
from jobs.kinds.results import CheckNotMade, Examination, KindResult
from jobs.protocol import preflight
from jobs.services.checks import (
    buckets,
    columns,
    commits,
    consistent_hashing,
    deletes,
    indexes,
    metadata_table,
    overwritten,
    record_keys,
    remains,
    rolled_back,
    statements,
    table_parts,
    timeline,
)
from jobs.services.checks.examination import Check, examine, not_made
from jobs.services.checks.finding import Examined
from jobs.services.checks.row_counts import PartitionRows, count_rows
from jobs.table_errors import DamagedFileError, MetadataTableError, PartitionValuesError

PROOFS: dict[str, Check] = {
    "timeline files": timeline.files,
    "order of instants": timeline.order,
    "unfinished rollbacks": remains.rollbacks,
    "files of commits": commits.files,
    "files of savepoints": commits.savepoints,
    "files without a commit": timeline.strays,
    "rows of replacements": commits.replacements,
    "logs of compactions": commits.compactions,
    "parts of the metadata table": table_parts.metadata_table,
    "metadata table": metadata_table.listing,
    "files of indexes": indexes.mixed,
    "partition metadata": table_parts.partition_metadata,
    "overwritten rows": overwritten.back,
    "deletes without effect": deletes.without_effect,
    "hashing metadata": consistent_hashing.metadata,
    "hash ranges in use": consistent_hashing.out_of_use,
    "statements without effect": statements.without_effect,
}
"""Checks that read no rows."""

_ROLLED_BACK = "rows of rolled back commits"
_HIDDEN = "rows that statistics hide"

READING_PROOFS: dict[str, Check] = {
    "rows of base files": commits.counted,
    "columns of base files": columns.misread,
    "values of replacements": columns.replaced,
    "rows of a given up index": buckets.given_up,
    _ROLLED_BACK: rolled_back.back,
    "deletes in logs": deletes.in_wrong_buckets,
    "files of the metadata table": metadata_table.files,
    "column statistics": metadata_table.statistics,
    "indexes": indexes.entries,
    "expression indexes": indexes.expressions,
    "rows of hash ranges": consistent_hashing.rows,
}
"""Checks that read files: their footers, and some of their columns."""

_PROBED_PARTITIONS = 200
_BUCKET_FILE_ID = re.compile(r"^\d{8}-")
_WRONG = (
    "buckets_with_several_file_groups",
    "file_groups_without_bucket",
    "dangling_hashing_configs",
    "misplaced",
    "duplicates",
    "stale_writes",
    "keys_hidden_by_statistics",
    "findings",
    "unchecked",
)


def run(table: HudiTable, order: WorkOrder[AuditParams], context: JobContext) -> Result[AuditResult]:
    """Returns counts as details: `rows`, `files`, `misplaced`, `duplicates`, ...; `clean` if nothing is wrong.
    `findings`, `checked` and `unchecked` are as in a diagnosis. If `rows` is false, no rows are read or counted.

    `key_digest` is the digest of all rows' keys; it changes only when rows are added or removed. Statistics hide a key
    if Hudi's data skipping leaves its file out, so that a query with a filter does not find it. The audit looks for the
    first and the last key of up to `_PROBED_PARTITIONS` partitions.
    """
    context.step("listing")
    found = _counts(table)
    reads = order.params.rows
    found = found.having(**asdict(examine(table, {**PROOFS, **READING_PROOFS} if reads else PROOFS, context)))
    if reads:
        found = _with_rows(table, found, context)
    return Result(Outcome.SUCCEEDED, details=found.having(clean=not any(getattr(found, name) for name in _WRONG)))


def after(table: HudiTable, order: WorkOrder, result: Result[KindResult], context: JobContext) -> Examination | None:
    """Returns the result of the checks after a job that has replaced or dropped file groups, or during which a commit
    was rolled back; None after any other job.

    An error here does not make the job fail, because the job has already committed.
    """
    instants, kind = (*context.instants, *result.instants), KINDS[order.kind]
    if not (kind.audited or kind.rewrites) or order.dry_run or result.outcome is not Outcome.SUCCEEDED or not instants:
        return None
    try:
        table.reload()
        checks = dict(PROOFS) if kind.audited else {}
        # Hudi's `rollback_to_instant` takes no lock without the options of one, so it may have come right before the
        # commit. Rows of other commits that were rolled back need no second look.
        if any(each.action == "rollback" and each.requested > min(instants) for each in table.instants()):
            checks[_ROLLED_BACK] = rolled_back.back
        return examine(table, checks, context) if checks else None
    except (CancelledError, TimedOutError):
        return None
    except JobError as error:
        return Examination(unchecked=(CheckNotMade(check="all", reason=error.problem()),))


def _counts(table: HudiTable) -> AuditResult:
    slices = table.file_slices()
    has_buckets = table.bucket_rules() is not None
    stale = stale_writes(
        (commit.write for commit in table.commits()), misdated=misdated_instants(table, table.clock.frame)
    )
    per_bucket = Counter((item.partition, item.file_id[:8]) for item in slices)
    without = sum(not _BUCKET_FILE_ID.match(item.file_id) for item in slices)
    return AuditResult(
        file_groups=len(slices),
        files=sum(bool(item.base_file) + len(item.log_files) for item in slices),
        bytes=sum(item.bytes for item in slices),
        partitions=len({item.partition for item in slices}),
        buckets_with_several_file_groups=sum(count > 1 for count in per_bucket.values()) if has_buckets else 0,
        file_groups_without_bucket=without if has_buckets else 0,
        dangling_hashing_configs=tuple(hashing_config.dangling(table)),
        # Rows that writers wrote to replaced file groups are committed, but no reader sees them.
        stale_writes=tuple(
            StaleWrite(instant=item.instant, operation=item.operation, file_groups=len(item.groups), doubt=item.doubt)
            for item in stale
        ),
        pending_instants=tuple(f"{item.requested} {item.action} {item.state}" for item in table.pending()),
    )


def _with_rows(table: HudiTable, result: AuditResult, context: JobContext) -> AuditResult:
    """Returns the result with the counts of rows, and of misplaced and duplicate keys."""
    context.step("counting rows", bytes_total=result.bytes or 0)
    try:
        found = count_rows(table, table.bucket_rules(), with_forms=True)
    except (FileMissingError, DamagedFileError, PartitionValuesError) as error:
        # Another check's finding says which files are gone or damaged.
        return _without(result, {"rows": error})
    findings = list(result.findings)
    if table.bucket_rules() is None or table.has_meta_fields:
        result = result.having(misplaced=sum(each.misplaced for each in found))
        findings += [each.result("rows in buckets") for each in buckets.in_wrong_bucket(table, found)]
    else:
        (reason,) = preflight.no_meta_fields(table)
        result = result.having(unchecked=(*result.unchecked, CheckNotMade(check="rows in buckets", reason=reason)))
    findings += [each.result("rows") for each in buckets.in_wrong_partition(found)]
    forms = sum((Counter(each.forms) for each in found), Counter())
    findings += [each.result("rows") for each in record_keys.faults(forms)]
    differ = any(each.type == metadata_table.OUT_OF_STEP for each in findings)
    readers = _by_both_readers(table, found) if differ else UNSET
    context.step("looking for rows that statistics hide")
    hidden = 0
    failed: dict[str, JobError] = {}
    try:
        hidden = hidden_by_statistics(table, _probes(found))
    except MetadataTableError as error:
        failed[_HIDDEN] = error
    result = result.having(
        rows=sum(each.rows for each in found),
        duplicates=sum(each.duplicates for each in found),
        key_digest=str(KeyDigest.sum(each.digest for each in found)),
        findings=tuple(findings),
        checked=(*result.checked, "rows", *({_HIDDEN} - failed.keys())),
        readers=readers,
        keys_hidden_by_statistics=hidden,
    )
    return _without(result, failed)


def _without(result: AuditResult, failed: Mapping[str, JobError]) -> AuditResult:
    found = not_made(failed)
    return result.having(findings=(*result.findings, *found.findings), unchecked=(*result.unchecked, *found.unchecked))


def _by_both_readers(table: HudiTable, found: list[PartitionRows]) -> tuple[RowsOfReaders, ...]:
    """Returns the partitions whose slices differ between the metadata table and a listing, with the rows by each."""
    with ExitStack() as opened:
        differing = sorted(metadata_table.differing_partitions(Examined(table, opened)))
    by_metadata = {each.path: each for each in found}
    by_listing = {each.path: each for each in count_rows(table, table.bucket_rules(), by_listing_of=differing)}
    readers = []
    for path in differing:
        one, other = by_metadata.get(path), by_listing.get(path)
        digests = [each.digest if each else None for each in (one, other)]
        readers.append(
            RowsOfReaders(
                partition=path,
                rows_by_metadata_table=one.rows if one else 0,
                rows_by_listing=other.rows if other else 0,
                same_keys=digests[0] == digests[1],
            )
        )
    return tuple(readers)


def _probes(found: list[PartitionRows]) -> set[tuple[str, str]]:
    """Returns the first and the last key of some partitions: wrong statistics hide these first."""
    some = found[:: -(-len(found) // _PROBED_PARTITIONS) or 1]
    return {(each.path, key) for each in some for key in (each.first_key, each.last_key)}
