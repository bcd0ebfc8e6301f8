"""The pending instant of a replacement: whether it is still the job's own, its files, and what remains of it.

Hudi finds files of uncommitted or rolled-back instants by their markers alone. Somebody may have removed the markers,
for example by Hudi's procedure `delete_marker`. If such a file remains, readers that list the storage see its rows a
second time: at once if the instant completes, and otherwise when the instant and its rollback are archived.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from jobs.errors import CommitLostError, CommitUndoneError, JobError
from jobs.format.file_names import parse_base_file_name
from jobs.format.written_file import WrittenFile
from jobs.hudi import hashing_metadata
from jobs.hudi.client import WriteClient
from jobs.hudi.file_times import modified
from jobs.hudi.held_lock import instant_held
from jobs.hudi.instant_generators import instant_generators
from jobs.hudi.lock import TableLock
from jobs.hudi.records import INGESTION, REPLACE, Instant
from jobs.hudi.table import HudiTable
from jobs.lock_errors import LockLostError

logger = logging.getLogger(__name__)


def require(
    table: HudiTable, client: WriteClient, lock: TableLock, instant: str, timeline_at_lock: Sequence[Instant]
) -> None:
    """Raises `LockLostError` unless the lock has been ours since it was taken. Checks the provider's state, and also
    the timeline, which works for every provider: writers complete their instants under the lock, so a newly completed
    one shows that another client has held it. Raises `CommitLostError` if the instant is no longer inflight, or if
    somebody has begun to roll it back. A single writer rolls back whatever is pending, without the lock. A writer whose
    clock is two minutes ahead of the storage's takes a live instant for a dead one, and rolls it back. A client without
    the lock may also roll back a commit whose rows the job has read: raises `CommitUndoneError` if one is gone, and
    `LockLostError` if another rollback has begun."""
    lock.verify()
    instants = table.instants()
    if others := _completed_writes(instants) - _completed_writes(timeline_at_lock):
        raise LockLostError(f"Other writers committed while it was held: {', '.join(sorted(others))}")
    if not any(item.requested == instant and item.state == "INFLIGHT" for item in instants):
        raise table.lost(f"instant {instant}")
    # Whoever has planned a rollback deletes the files, even if the instant has completed by then.
    if _pending_rollbacks(instants) and instant in client.pending_rollbacks().values():
        raise CommitLostError(f"A writer is about to roll {instant} back.")
    if gone := _completed_writes(timeline_at_lock) - _completed_writes(instants):
        raise CommitUndoneError(", ".join(sorted(gone)))
    if begun := _pending_rollbacks(instants) - _pending_rollbacks(timeline_at_lock):
        raise LockLostError(f"Another client began to roll back while it was held: {', '.join(sorted(begun))}")


def working(table: HudiTable, instant: str) -> AbstractContextManager[None]:
    """Lets Hudi's tasks of a block, in the driver's JVM, make and complete files only while the instant is inflight.
    They raise CommitLostError otherwise. Without the lock nobody but this attempt completes the instant."""
    folder = table.timeline_path.removeprefix(table.path).strip("/")
    file = f"{folder}/{instant}.{REPLACE}.inflight"
    return instant_held(instant_generators(table.jvm).locks, lambda: modified(table, file) is not None)


def announce_again(client: WriteClient, instant: str, written: Iterable[WrittenFile] = ()) -> set[str]:
    """Makes the markers of all base files of the instant again if some or all are gone. `written` are files that have
    had markers. The lock must be held. Lists all partitions only if markers are missing.

    Returns the announced files that are not `written`, relative to the base path. They were announced by tasks that
    have failed, or by tasks whose executor was lost and may go on."""
    marked = client.late_files.marked_files(instant)
    known = {"/".join(filter(None, (file.partition, file.file_name))) for file in written}
    # Without `written` only the note of an attempt that died here shows that markers are missing.
    if marked and (known <= marked if known else not client.late_files.lacks_markers(instant)):
        return marked - known
    found = client.late_files.files_of({instant: instant}).get(instant, set()) - marked
    # Before table version 8 `files_of` also finds all recent logs.
    parsed = {path: parse_base_file_name(path.rpartition("/")[2]) for path in sorted(found)}
    if unmarked := [path for path, name in parsed.items() if name and name.instant == instant]:
        client.late_files.announce(instant, unmarked)
    return marked - known


def remove_rest(table: HudiTable, client: WriteClient, instant: str, *, may_be_unmarked: bool) -> None:
    """Removes what is left of a service's instant that has left the timeline without a commit: a rollback that a client
    began before it died, base files that tasks have written since, markers, and the hashing config. The lock must be
    held, and the tasks must have ended. `may_be_unmarked`: all partitions are listed for files without markers.

    Somebody has rolled the instant back, or has deleted the table and made it anew (`SaveMode.Overwrite` of Spark),
    which removes the markers, too. Logs are left alone: before table version 8 writers name theirs by the instant of a
    compaction.
    """
    if table.was_archived(instant):
        return
    client.finish_rollback(instant)
    late = client.late_files
    files = late.marked_files(instant)
    if may_be_unmarked:
        files |= late.files_of({instant: instant}).get(instant, set())
    late.remove(instant, {file for file in files if ".log." not in file})
    hashing_metadata.forget_unless_followed(table, instant)
    client.tidy_up(instant)


def remove_late(table: HudiTable, client: WriteClient, instant: str) -> None:
    """Removes base files that the tasks of a lost attempt have written after another attempt settled their instant.

    That attempt has rolled the instant back, or has executed the same plan and committed other files. The tasks must
    have ended. Nobody writes files of such an instant any more, so the lock is not needed. Lists all partitions.
    """
    try:
        table.reload()
        late = client.late_files
        commit = next((each for each in table.commits() if each.write.instant == instant), None)
        if commit is None and (table.state_of(instant) is not None or table.was_archived(instant)):
            return
        committed = commit.file_names if commit else frozenset()
        # The files are found without a Spark job, because the worker cancels Spark jobs now.
        files = late.files_of({instant: instant}).get(instant, set())
        names = {file: file.rpartition("/")[2] for file in files}
        if late.remove(
            instant, [file for file, name in names.items() if name not in committed and ".log." not in name]
        ):
            logger.warning("removed files that were written for %s after the lease was lost", instant)
        client.tidy_up(instant)
    except JobError as error:
        # An audit finds the files.
        logger.warning("could not look for late files of %s: %s", instant, error.detail)


def _completed_writes(instants: Sequence[Instant]) -> set[str]:
    watched = INGESTION | {REPLACE}
    return {item.requested for item in instants if item.action in watched and item.state == "COMPLETED"}


def _pending_rollbacks(instants: Sequence[Instant]) -> set[str]:
    return {item.requested for item in instants if item.action == "rollback" and item.state != "COMPLETED"}
