"""Finds file groups without a bucket in a table with a bucket index. A writer with another index made them, for example
after the adoption of the bucket index. Every write by the bucket index to their partition fails
(`NumberFormatException` in `BucketIdentifier.bucketIdFromFileId`, Hudi 1.2.0), so a repair first takes the file groups
out of use, and then writes their rows like the rows of stale writes. In between a savepoint keeps their files from the
cleaners of writers.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import JobError, LeaseLostError, StaleWriterError, refuse
from jobs.format.file_names import bucket_of
from jobs.format.meta_columns import COMMIT_TIME, FILE_NAME
from jobs.format.stale_writes import REPAIRS_KEY, StaleWrite, stale_writes
from jobs.hudi import hash_ranges, hashing_metadata, rows
from jobs.hudi.client import WriteClient
from jobs.hudi.jvm import translated
from jobs.hudi.lock import for_at_most
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.savepoints import BY, OF_REPAIR, of_repairs
from jobs.hudi.stale_slices import copied, deleted_from_base_files, deleted_in_logs
from jobs.problems.bucket_indexes import ROWS_OF_UNKNOWN_COMMITS
from jobs.protocol.replacement import UNDO_SECONDS, Replacement
from jobs.protocol.replacement_config import ReplacementConfig
from jobs.services import stray_row_writes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pyspark.sql import DataFrame

    from jobs.contract import Problem
    from jobs.hudi.lock import TableLock
    from jobs.hudi.records import Commit
    from jobs.hudi.stale_slices import DeletedKey
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext
    from jobs.protocol.replacement_outcome import Replaced


logger = logging.getLogger(__name__)

_MOST_ROUNDS = 4


def writes_to_groups(table: HudiTable, commits: Sequence[Commit], instants: Collection[str]) -> list[StaleWrite]:
    """Returns all writes to file groups without a bucket, if such a file group is in a partition to which these
    instants wrote. While readers see that file group, a repair cannot write rows to the partition. Any partition counts
    under consistent hashing: writers go on beside such file groups, and add second rows of their keys."""
    if table.has_consistent_hashing():
        without = hash_ranges.groups_without_range(table)
    elif table.bucket_rules() is not None:
        without = {item.key for item in table.file_slices() if bucket_of(item.file_id) is None}
    else:
        return []
    repaired = {instant for commit in commits for instant in commit.write.repaired}
    found = [
        StaleWrite(commit.write.instant, commit.write.operation, dict.fromkeys(written, ""))
        for commit in commits
        if commit.write.brings_rows
        and commit.write.instant not in repaired
        and (written := commit.write.written & without)
    ]
    partitions = {path for commit in commits if commit.write.instant in instants for path, _ in commit.write.written}
    concerned = table.has_consistent_hashing() or any(path in partitions for write in found for path, _ in write.groups)
    return found if concerned else []


def drop_visible(
    table: HudiTable, lock: TableLock, wait_seconds: float, context: JobContext, stale: Sequence[StaleWrite]
) -> tuple[str, ...]:
    """Replaces the stale file groups that readers still see, so that all stale file groups are out of use; returns the
    instant.

    No writer can write while a bucket has two file groups, so every write in flight there will fail or is stale itself,
    and the job waits for none. A savepoint holds the files until their rows are written, also after an interruption
    (`release_files`). In the commit's list of known writes, the writes to these file groups are missing, and so are
    later ones. So all of them count as stale: the audit names them, and the next repair writes their rows.
    """
    if not are_visible(table, stale):
        return ()
    groups = {group for write in stale for group in write.groups}
    held: dict[str, list[str]] = {}

    def before_commit(replaced: Replaced) -> None:
        held[replaced.instant] = _hold_files(table)

    def extra(replaced: Replaced) -> dict[str, str]:
        left_out = [each.write for each in table.commits() if each.write.written & groups]
        named = {write.instant for write in stale} | {write.instant for write in left_out if write.brings_rows}
        known = replaced.before.to_metadata(without=[write.instant for write in left_out])
        return {REPAIRS_KEY: ",".join(sorted(named)), **known}

    replacement = Replacement(
        table,
        ReplacementConfig(wait_seconds=wait_seconds, ignores_writers=True),
        context,
        lock,
        choose=lambda slices: [item for item in slices if item.key in groups],
        rewrite=lambda *_: [],
        before_commit=before_commit,
        extra=extra,
    )
    try:
        return (replacement.run().instant,)
    except LeaseLostError:
        # Another attempt is active, and its repair removes the savepoint.
        raise
    except BaseException:
        for drop, instants in held.items():
            _undo_hold(table, lock, context, drop, instants)
        raise


def renew_ranges(table: HudiTable, lock: TableLock, wait_seconds: float, context: JobContext) -> None:
    """Gives the buckets of consistent hashing whose file groups were replaced (`hash_ranges.out_of_use`) new file
    groups, at a moment without writes.

    Hudi computes the file ids from the partition and the ranges (`HoodieConsistentHashingMetadata.generateUUID`,
    1.2.0). So new metadata by Hudi would have the same file ids again. The metadata of this job have random ids, like
    those of a resize.
    """
    if not table.has_consistent_hashing():
        return
    commits = table.commits()
    if not (hash_ranges.out_of_use(table, commits) or hashing_metadata.dangling(table)):
        return
    # Rows in file groups outside of the ranges would exist twice as soon as a writer follows the new ranges.
    writes = writes_to_groups(table, commits, ())
    refuse(of_other_rows(table, writes))
    if left := hash_ranges.groups_without_range(table) - {group for write in writes for group in write.groups}:
        refuse(_of_unknown([f"commits that made {partition}/{file_id}" for partition, file_id in sorted(left)]))
    with stray_row_writes.lock_without_writers(table, lock, wait_seconds, context):
        table.reload()
        for instant in hashing_metadata.dangling(table):
            logger.warning("removing the hashing metadata of %s, which an earlier attempt has left", instant)
            hashing_metadata.forget(table, instant)
        with WriteClient(table, UNDER_OUR_LOCK) as client:
            lock.verify()
            gone = hash_ranges.out_of_use(table, table.commits())
            client.clusterings.renew_hashing(client.new_instant(), gone)


def are_visible(table: HudiTable, stale: Sequence[StaleWrite]) -> bool:
    """Returns whether readers still see file groups of these stale writes."""
    groups = {group for write in stale for group in write.groups}
    return any(item.key in groups for item in table.file_slices())


def dropped(stale: Sequence[StaleWrite], commits: Sequence[Commit]) -> set[str]:
    """Returns the ids of the file groups without a bucket that a repair, not an adoption, has replaced."""
    by_repairs = {"", *(each.write.instant for each in _drops(commits))}
    groups = (group for write in stale for group in write.groups.items())
    return {file_id for (_, file_id), by in groups if by in by_repairs}


@contextmanager
def read(
    table: HudiTable, stale: Sequence[StaleWrite], commits: Sequence[Commit], job_id: str
) -> Iterator[tuple[DataFrame, list[DeletedKey]]]:
    """Yields the rows of the stale file slices, and the keys that the stale writes deleted. Raises `FilesGoneError`
    or `RefusedError` if rows cannot be read or are of unknown commits."""
    ids = dropped(stale, commits)
    # A writer that deleted rows in a file group without a bucket had found them there, and they are nowhere else. The
    # earlier base files may have been cleaned.
    others = [
        replace(write, groups={group: by for group, by in write.groups.items() if group[1] not in ids})
        for write in stale
    ]
    with copied(table, stale, commits, f"groundskeeper-{job_id}") as merged:
        refuse(_of_archived_rows(merged, stale, commits))
        deletes = deleted_in_logs(table, stale, commits)
        yield merged, deletes + deleted_from_base_files(table, others, commits, merged)


def _hold_files(table: HudiTable) -> list[str]:
    """Makes a savepoint of the last commit, so that no cleaner removes the files that the table has now. Returns its
    instant; nothing if there is one already."""
    last = max(each.write.instant for each in table.commits())
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        if client.savepoints.find(last) is None:
            client.savepoints.create(last, BY, OF_REPAIR)
            return [last]
    return []


def _undo_hold(table: HudiTable, lock: TableLock, context: JobContext, drop: str, held: Sequence[str]) -> None:
    """Removes these savepoints if the replacement `drop`, for which they were made, has left no trace."""
    try:
        with context.undoing(), lock.held(for_at_most(UNDO_SECONDS)):
            table.reload()
            if table.state_of(drop) is None:
                with WriteClient(table, UNDER_OUR_LOCK) as client:
                    lock.verify()
                    for instant in held:
                        client.savepoints.delete(instant)
    except JobError:
        # The first error is reported; the next repair removes them.
        logger.exception("could not delete the savepoint %s", ", ".join(held))


def with_late_writes(stale: Sequence[StaleWrite], commits: Sequence[Commit]) -> list[StaleWrite]:
    """Returns the stale writes, and those that have come since to file groups which a repair has taken out of use. In a
    copy-on-write table the latest file has the rows of all writes to its file group, and no savepoint holds the files
    of the late writes."""
    known = {write.instant for write in stale}
    return [*stale, *(write for write in _waiting(commits) if write.instant not in known)]


def left_out(commits: Sequence[Commit]) -> set[str]:
    """Returns the instants whose rows are in the file groups without a bucket that repairs took out of use."""
    return {instant for each in _drops(commits) for instant in each.extra[REPAIRS_KEY].split(",") if instant}


def rounds(table: HudiTable, stale: Sequence[StaleWrite]) -> Iterator[Sequence[StaleWrite]]:
    """Yields the stale writes, and then those that came while the caller wrote the rows of the earlier ones."""
    for _ in range(_MOST_ROUNDS):
        if not stale:
            return
        yield stale
        stale = _waiting(table.commits())


def _waiting(commits: Sequence[Commit]) -> list[StaleWrite]:
    """Returns the writes whose rows are still to be written, of file groups that a repair has taken out of use."""
    return [write for write in stale_writes(each.write for each in commits) if dropped([write], commits)]


def release_files(table: HudiTable, lock: TableLock, context: JobContext) -> None:
    """Removes the savepoints of repairs, whose rows are written. If rows of file groups that a repair took out of use
    are not written yet, the savepoints stay, and `StaleWriterError` or `RefusedError` names the writes."""
    if not of_repairs(table):
        return
    with lock.held(context.checkpoint), WriteClient(table, UNDER_OUR_LOCK) as client:
        table.reload()
        commits = table.commits()
        if waiting := ", ".join(write.instant for write in _waiting(commits)):
            raise StaleWriterError(f"{waiting}, while a repair was writing the rows of others")
        on_timeline = {commit.write.instant for commit in commits}
        repaired = {instant for commit in commits for instant in commit.write.repaired}
        refuse(_of_unknown(sorted(left_out(commits) - on_timeline - repaired)))
        lock.verify()
        for instant in of_repairs(table):
            client.savepoints.delete(instant)


def _drops(commits: Sequence[Commit]) -> list[Commit]:
    """Returns the commits of repairs that took file groups out of use without new ones in their place."""
    return [each for each in commits if REPAIRS_KEY in each.extra and each.write.replaced and not each.files]


def _of_archived_rows(rows_left: DataFrame, stale: Sequence[StaleWrite], commits: Sequence[Commit]) -> list[Problem]:
    """Returns the refusal to repair if file groups that only a repair takes out of use have rows of commits that are
    archived. `rows_left` are the rows of these stale writes' file groups."""
    ids = sorted(dropped(stale, commits))
    if not ids:
        return []
    known = {write.instant for write in stale} | {instant for each in commits for instant in each.write.repaired}
    with translated("looking for rows of other commits"):
        held = rows_left.where(F.substring_index(FILE_NAME, "_", 1).isin(ids))
        return _of_unknown(
            sorted(row[0] for row in held.select(COMMIT_TIME).distinct().collect() if row[0] not in known)
        )


def _of_unknown(instants: Sequence[str]) -> list[Problem]:
    if not instants:
        return []
    return [
        ROWS_OF_UNKNOWN_COMMITS.because(
            f"rows of {', '.join(instants[:5])}",
            hint="A savepoint of the repair, if there is one, keeps the files: `restore` it, which undoes all later"
            " commits, and then run a `bucket_index` job with `adopt`. Otherwise run that job at once.",
        )
    ]


def of_other_rows(table: HudiTable, writes: Sequence[StaleWrite]) -> list[Problem]:
    """Returns the refusal to take file groups out of use that hold rows of other instants, which would be lost."""
    groups = {group for write in writes for group in write.groups}
    slices = [item for item in table.file_slices() if item.key in groups]
    if not slices:
        return []
    with translated("looking for rows of other commits"):
        held = rows.in_folders(table, {item.partition for item in slices})
        held = held.where(F.substring_index(FILE_NAME, "_", 1).isin(sorted({item.file_id for item in slices})))
        others = held.where(~F.col(COMMIT_TIME).isin([write.instant for write in writes]))
        found = {row[0]: int(row[1]) for row in others.groupBy(COMMIT_TIME).count().collect()}
    if not found:
        return []
    first = ", ".join(sorted(found)[:5])
    return [ROWS_OF_UNKNOWN_COMMITS.because(f"{sum(found.values())} rows of {first}")]
