"""Audits a table: compares its commits, its metadata table and the storage with each other, and checks that every row
is in its bucket and exists once."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace

from msgspec import UNSET
from msgspec.structs import asdict

from jobs.contract import BucketIndex, Outcome, Result, WorkOrder
from jobs.dataplane.key_digest import KeyDigest
from jobs.errors import CancelledError, JobError, LeaseLostError, TimedOutError
from jobs.format.stale_writes import stale_writes
from jobs.hudi import dangling_configs
from jobs.hudi.commit_order import misdated_instants
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.audit import AuditParams, AuditResult, RowsOfReaders, StaleWrite
from jobs.kinds.bucket_index import BucketIndexResult
from jobs.kinds.registry import KINDS
from jobs.kinds.results import CheckNotMade, Examination, KindResult
from jobs.services.checks import (
    buckets,
    columns,
    commits,
    consistent_hashing,
    counted,
    deletes,
    indexes,
    metadata_table,
    overwritten,
    plans,
    remains,
    rolled_back,
    statements,
    table_parts,
    timeline,
)
from jobs.services.checks.examination import Check, concluded, examine, joined, not_made, of_counted, of_table
from jobs.services.checks.finding import Examined
from jobs.services.checks.row_counts import PartitionRows, count_rows

PROOFS: dict[str, Check] = {
    "timeline files": timeline.files,
    "order of instants": timeline.order,
    "completion times": timeline.completion_times,
    "unfinished rollbacks": remains.rollbacks,
    "pending plans": plans.unusable,
    "files of commits": commits.files,
    "files that readers see": commits.hidden,
    "sizes of files": commits.sized,
    "files without a commit": timeline.strays,
    "lost commits": timeline.lost_commits,
    "rows of replacements": commits.replacements,
    "logs of compactions": commits.compactions,
    "parts of the metadata table": table_parts.metadata_table,
    "metadata table": metadata_table.listing,
    "files of indexes": indexes.mixed,
    "partition metadata": table_parts.partition_metadata,
    "table type": table_parts.table_type,
    "merge rules": table_parts.merge_rules,
    "timeline layout": table_parts.timeline_layout,
    "files of savepoints": remains.saved_files,
    "overwritten rows": overwritten.back,
    "deletes without effect": deletes.without_effect,
    "hashing metadata": consistent_hashing.metadata,
    "hash ranges in use": consistent_hashing.out_of_use,
    "statements without effect": statements.without_effect,
    "hashing configs": remains.configs,
    "file groups of buckets": buckets.file_groups,
}
"""Checks that read no rows."""

_ROLLED_BACK = "rows of rolled back commits"

READING_PROOFS: dict[str, Check] = {
    "rows of base files": commits.counted,
    "columns of base files": columns.misread,
    "values of replacements": columns.replaced,
    "rows of a given up index": buckets.given_up,
    _ROLLED_BACK: rolled_back.back,
    "deletes in logs": deletes.in_wrong_buckets,
    "archived deletes": deletes.archived,
    "files of the metadata table": metadata_table.files,
    "column statistics": metadata_table.statistics,
    "indexes": indexes.entries,
    "expression indexes": indexes.expressions,
    "rows of hash ranges": consistent_hashing.rows,
}
"""Checks that read files: their footers, and some of their columns."""

_HIDDEN = "rows that statistics hide"

OF_ROWS: dict[str, Check] = {"rows": counted.keys, "rows in buckets": counted.in_buckets}
"""Checks that read the key of every row."""

PROBES: dict[str, Check] = {_HIDDEN: counted.hidden}
"""Checks that look rows up by their keys."""

_BUCKET_FILE_ID = re.compile(r"^\d{8}-")
# Results with these members are not `clean`. A count needs no entry, because each count has a check with a finding.
_WRONG = ("stale_writes", "findings", "unchecked")


def run(table: HudiTable, order: WorkOrder[AuditParams], context: JobContext) -> Result[AuditResult]:
    """Returns counts as details: `rows`, `files`, `misplaced`, `duplicates`, ...; `clean` if nothing is wrong.
    `findings`, `checked` and `unchecked` are as in a diagnosis. If `rows` is false, no rows are read or counted.

    `key_digest` is the digest of all rows' keys; it changes only when rows are added or removed. Statistics hide a key
    if Hudi's data skipping leaves its file out, so that a query with a filter does not find it. The audit looks for the
    first and the last key of up to 200 partitions.
    """
    context.step("listing")
    found = _counted(table)
    reads = order.params.rows
    examination = of_table(table, {**PROOFS, **READING_PROOFS} if reads else PROOFS, context)
    if reads:
        found, of_rows = _with_rows(table, found, examination, context)
        examination = joined(examination, of_rows)
    found = found.having(**asdict(concluded(examination)))
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
        table = _as_left(table, result.details)
        checks = dict(PROOFS) if kind.audited else {}
        # Without the options of a lock Hudi's `rollback_to_instant` takes none, so a rollback may have come right
        # before the commit. Rollbacks from before the job need no second look.
        if any(each.action == "rollback" and each.requested > min(instants) for each in table.instants()):
            checks[_ROLLED_BACK] = rolled_back.back
        return examine(table, checks, context) if checks else None
    except (CancelledError, TimedOutError):
        return None
    except JobError as error:
        return Examination(unchecked=(CheckNotMade(check="all", reason=error.problem()),))


def _as_left(table: HudiTable, details: KindResult) -> HudiTable:
    """Returns the table with the bucket index that the job has given it or taken from it."""
    if not isinstance(details, BucketIndexResult):
        return table
    index = BucketIndex(details.num_buckets, details.hash_fields or ()) if details.num_buckets else None
    return HudiTable(table.jvm, replace(table.declared, index=index))


def _counted(table: HudiTable) -> AuditResult:
    """Returns the counts of files. If a file of the timeline cannot be read, Hudi lists no file slices, so there are no
    counts, and a check names that file."""
    try:
        return _counts(table)
    except (CancelledError, LeaseLostError, TimedOutError):
        raise
    except JobError:
        if not table.unreadable_instants():
            raise
        return AuditResult()


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
        files=sum(item.number_of_files for item in slices),
        bytes=sum(item.bytes for item in slices),
        partitions=len({item.partition for item in slices}),
        buckets_with_several_file_groups=sum(count > 1 for count in per_bucket.values()) if has_buckets else 0,
        file_groups_without_bucket=without if has_buckets else 0,
        dangling_hashing_configs=tuple(dangling_configs.dangling(table)),
        # Rows that writers wrote to replaced file groups are committed, but no reader sees them.
        stale_writes=tuple(
            StaleWrite(instant=item.instant, operation=item.operation, file_groups=len(item.groups), doubt=item.doubt)
            for item in stale
        ),
        pending_instants=tuple(f"{item.requested} {item.action} {item.state}" for item in table.pending()),
    )


def _with_rows(
    table: HudiTable, result: AuditResult, before: Examination, context: JobContext
) -> tuple[AuditResult, Examination]:
    """Returns the result with the counts of rows, and of misplaced and duplicate keys; and what the checks of the rows
    have found. `before` is the result of the other checks."""
    context.step("counting rows", bytes_total=result.bytes or 0)
    with ExitStack() as opened:
        examined = Examined(table, opened, context)
        try:
            rows = examined.counted
        except (CancelledError, LeaseLostError, TimedOutError):
            raise
        except JobError as error:
            # The findings of the other checks may say why, such as which files are gone or damaged.
            return result, not_made([*OF_ROWS, *PROBES], error)
        found = of_counted(examined, {**OF_ROWS, **PROBES})
        result = result.having(
            rows=sum(each.rows for each in rows),
            duplicates=sum(each.duplicates for each in rows),
            misplaced=UNSET if examined.rules and not table.has_meta_fields else sum(each.misplaced for each in rows),
            key_digest=str(KeyDigest.sum(each.digest for each in rows)),
            keys_hidden_by_statistics=len(examined.hidden_keys) if _HIDDEN in found.checked else 0,
        )
    if any(each.type == metadata_table.OUT_OF_STEP for each in before.findings):
        result = result.having(readers=_by_both_readers(table, rows))
    return result, found


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
