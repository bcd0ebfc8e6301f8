"""Finds file groups without a bucket in a table with a bucket index: a writer with another index made them, as after
the adoption of the bucket index. Every write by the bucket index to their partition fails (`NumberFormatException` in
`BucketIdentifier.bucketIdFromFileId`, Hudi 1.2.0), so a repair first takes the file groups out of use, and then writes
their rows as those of stale writes. In between a savepoint keeps their files from the cleaners of writers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.format.file_names import bucket_of
from jobs.format.meta_columns import COMMIT_TIME, FILE_NAME
from jobs.format.stale_writes import REPAIRS_KEY, StaleWrite
from jobs.hudi import rows
from jobs.hudi.client import WriteClient
from jobs.hudi.jvm import translated
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.savepoints import BY, OF_REPAIR, savepoints_of
from jobs.problems.bucket_indexes import ROWS_OF_UNKNOWN_COMMITS
from jobs.protocol.replacement import Replacement
from jobs.protocol.replacement_config import ReplacementConfig

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from jobs.contract import Problem
    from jobs.hudi.lock import TableLock
    from jobs.hudi.records import Commit
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext
    from jobs.protocol.replacement_outcome import Replaced


def writes_to_them(table: HudiTable, commits: Sequence[Commit], instants: Collection[str]) -> list[StaleWrite]:
    """Returns all writes to such file groups if there is one in a partition to which these instants wrote, because a
    repair cannot write their rows there before."""
    if table.bucket_rules() is None:
        return []
    repaired = {instant for commit in commits for instant in commit.write.repaired}
    without = {item.key for item in table.file_slices() if bucket_of(item.file_id) is None}
    found = [
        StaleWrite(commit.write.instant, commit.write.operation, dict.fromkeys(written, ""))
        for commit in commits
        if commit.write.brings_rows
        and commit.write.instant not in repaired
        and (written := commit.write.written & without)
    ]
    partitions = {path for commit in commits if commit.write.instant in instants for path, _ in commit.write.written}
    return found if any(path in partitions for write in found for path, _ in write.groups) else []


def drop_visible(
    table: HudiTable, lock: TableLock, wait_seconds: float, context: JobContext, stale: Sequence[StaleWrite]
) -> tuple[str, ...]:
    """Replaces the stale file groups that readers still see, so that they are out of use like all other stale ones;
    returns the instant.

    No writer can write while a bucket has two file groups, so every write in flight there will fail or is stale
    itself, and the job waits for none. A savepoint holds the files until their rows are written, also after an
    interruption (`release_files`). The commit does not know the writes whose rows it left out, also those that came
    since, so that they are stale ones: the audit names them, and the next repair writes their rows.
    """
    groups = {group for write in stale for group in write.groups}
    if not any(item.key in groups for item in table.file_slices()):
        return ()

    def extra(dropped: Replaced) -> dict[str, str]:
        left_out = [each.write.instant for each in table.commits() if each.write.written & groups]
        named = {REPAIRS_KEY: ",".join(write.instant for write in stale)}
        return {**named, **dropped.before.to_metadata(without=left_out)}

    dropped = Replacement(
        table,
        ReplacementConfig(wait_seconds=wait_seconds, ignores_writers=True),
        context,
        lock,
        choose=lambda slices: [item for item in slices if item.key in groups],
        rewrite=lambda *_: [],
        before_commit=lambda _: _hold_files(table),
        extra=extra,
    ).run()
    return (dropped.instant,)


def dropped(stale: Sequence[StaleWrite], commits: Sequence[Commit]) -> set[str]:
    """Returns the ids of the file groups without a bucket among these that a repair, and not an adoption, replaced."""
    by_repairs = {"", *(each.write.instant for each in commits if REPAIRS_KEY in each.extra)}
    groups = (group for write in stale for group in write.groups.items())
    return {file_id for (_, file_id), by in groups if by in by_repairs and bucket_of(file_id) is None}


def _hold_files(table: HudiTable) -> None:
    """Makes a savepoint of the last commit, so that no cleaner removes the files that the table has now."""
    last = max(each.write.instant for each in table.commits())
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        if client.savepoints.find(last) is None:
            client.savepoints.create(last, BY, OF_REPAIR)


def release_files(table: HudiTable, lock: TableLock, context: JobContext) -> None:
    """Removes the savepoints of repairs, whose rows are written."""
    if held := [each.instant for each in savepoints_of(table) if (each.by, each.comment) == (BY, OF_REPAIR)]:
        with lock.held(context.checkpoint), WriteClient(table, UNDER_OUR_LOCK) as client:
            lock.verify()
            for instant in held:
                client.savepoints.delete(instant)


def of_other_rows(table: HudiTable, writes: Sequence[StaleWrite]) -> list[Problem]:
    """Returns the refusal to take file groups out of use that hold rows of other instants, which would be lost."""
    groups = {group for write in writes for group in write.groups}
    ids = sorted({item.file_id for item in table.file_slices() if item.key in groups})
    if not ids:
        return []
    with translated("looking for rows of other commits"):
        held = rows.current(table).where(F.substring_index(FILE_NAME, "_", 1).isin(ids))
        others = held.where(~F.col(COMMIT_TIME).isin([write.instant for write in writes]))
        found = {row[0]: int(row[1]) for row in others.groupBy(COMMIT_TIME).count().collect()}
    if not found:
        return []
    first = ", ".join(sorted(found)[:5])
    return [ROWS_OF_UNKNOWN_COMMITS.because(f"{sum(found.values())} rows of {first}")]
