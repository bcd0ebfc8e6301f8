"""Instants that stay on the active timeline although Hudi has archived later commits, and so hide these commits.

Hudi's archiver (1.2.0, `TimelineArchiverV2`) never takes restores and indexings, nor a clean, a rollback or an indexing
that is pending, and with `hoodie.archive.beyond.savepoint` it leaves a commit with a savepoint where it is. Hudi takes
an instant that is later than the first one, and not on the active timeline, for pending:

- from table version 8 on the commits of logs (`CompletionTimeQueryViewV2.getCompletionTime`). The logs then belong to
  the latest slices of their file groups: readers see deleted rows and old values again, compactions write these into
  base files, and cleans leave the logs.
- if the first one is a commit, those of base files as well (`isArchived`): their rows vanish.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from jobs.contract import JobKind, Problem
from jobs.errors import HudiError
from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from jobs.format.instants import wall_clock
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi.archiver import remove_unfinished
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import Checkpoint, TableLock
from jobs.hudi.metadata_table import compacted_at
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.records import CLEAN, WRITES, Instant
from jobs.hudi.savepoints import ACTION as SAVEPOINT
from jobs.hudi.savepoints import RESTORE
from jobs.hudi.table import HudiTable
from jobs.problems.plans import COMMITS_HIDDEN

logger = logging.getLogger(__name__)

LEAVING_THEM = frozenset({JobKind.RESTORE, JobKind.METADATA_TABLE, JobKind.UPGRADE})
"""Jobs that do not archive such instants: the next attempt of a restore looks for its own one, and the others merge no
rows, and run on damaged tables."""
ENDING_THEM = frozenset({JobKind.ARCHIVAL, JobKind.CLEANING, JobKind.ROLLBACK, JobKind.SAVEPOINT})
"""Jobs that complete or delete what stays on the timeline, so that it can be archived after them."""

_NEVER_ARCHIVED = frozenset({RESTORE, "indexing"})
_WITHOUT_FILES = _NEVER_ARCHIVED | {CLEAN, "rollback"}
_NO_WRITES = _WITHOUT_FILES | {SAVEPOINT}
# Polls learn from a restore which commits it has removed.
_POLLED_AFTER = timedelta(minutes=30)
_ADVICE = {
    SAVEPOINT: "Delete the savepoint (`savepoint` with `action: delete`); the job then archives its commit. Remove "
    "`hoodie.archive.beyond.savepoint` from the writers.",
    CLEAN: "Run a `cleaning` job, which executes the pending clean.",
    "rollback": "Run a `rollback` job of the instant that it rolls back, an hour after it began.",
    RESTORE: "Repeat the `restore` job, which continues the restore.",
    "indexing": "Let Hudi's indexer (`HoodieIndexer`) finish the index, or drop it.",
}
_OTHERWISE = (
    "Run a `metadata_table` job with `action: compact` if the table has a metadata table, and then an `archival` job; "
    "before table version 8, the latter after further commits."
)


@dataclass(frozen=True)
class Overtaken:
    """The instants of the active timeline before archived writes, the earliest first, and the requested times of these
    writes."""

    instants: tuple[Instant, ...] = ()
    hidden: frozenset[str] = frozenset()


def overtaken(table: HudiTable, *, thoroughly: bool = False) -> Overtaken:
    """Reads the list of the history's files, and of these only the files that are later than the first instant. Before
    table version 8 the history has no such list, and all of it is read; so it is read only `thoroughly`, or if the
    first commit has a savepoint. Raises HudiError if the history cannot be read where it may hide commits."""
    # An archiver writes to the history first, so instants that were listed before it are never taken for hidden.
    instants = sorted(table.instants(), key=lambda item: item.requested)
    if not instants:
        return Overtaken()
    is_listed = table.version >= WITH_COMPLETION_TIMES
    if not (is_listed or thoroughly or _first_write(instants) in _saved(instants)):
        return Overtaken()
    # Logs of older versions are in slices by their names, whatever is known of their commits.
    front = instants[0].requested if is_listed else _first_write(instants)
    try:
        hidden = table.archived_writes_after(front) - {item.requested for item in instants}
    except HudiError:
        # A damaged history is no reason to stop compacting where it could hide nothing.
        if thoroughly or _may_hide(instants):
            raise
        logger.warning("could not read which commits are archived", exc_info=True)
        return Overtaken()
    last = max(hidden, default="")
    return Overtaken(tuple(item for item in instants if item.requested < last), frozenset(hidden))


@dataclass(frozen=True)
class Settled:
    """Why a job would read wrong rows, and whether it may end what stays on the timeline, which is to be archived after
    it."""

    refusals: tuple[Problem, ...] = ()
    ends_some: bool = False


def settle(table: HudiTable, kind: JobKind, lock: TableLock, checkpoint: Checkpoint, *, dry_run: bool) -> Settled:
    """Archives what can be archived before a job of this kind, except in a dry run. Raises the errors of `archive`,
    unless the job may end what stays on the timeline."""
    if kind in LEAVING_THEM:
        return Settled()
    try:
        found = archive(table, lock, checkpoint) if not dry_run else overtaken(table)
    except HudiError:
        if kind not in ENDING_THEM:
            raise
        logger.warning("could not archive what archived commits have overtaken", exc_info=True)
        return Settled(ends_some=not dry_run)
    # Each look at the history costs requests. What writers archive meanwhile is left to the next job.
    ends_some = kind in ENDING_THEM and bool(kind is JobKind.ARCHIVAL or found.hidden) and not dry_run
    return Settled(tuple(_refusals(table, kind, found)), ends_some)


def archive(table: HudiTable, lock: TableLock, checkpoint: Checkpoint) -> Overtaken:
    """Archives the completed instants that archived commits have overtaken, and old restores and indexings; returns
    what is left. The lock must be free; it is taken only if there are such instants. Raises HudiError if the archival
    of an overtaken one fails."""
    found = overtaken(table)
    if not ready(table, found):
        return found
    remove_unfinished(table, checkpoint)
    with lock.held(checkpoint):
        table.reload()
        found = overtaken(table)
        if due := ready(table, found):
            lock.verify()
            _move(table, due, found)
            lock.verify()
            table.reload()
            found = overtaken(table)
    return found


def _move(table: HudiTable, due: list[Instant], found: Overtaken) -> None:
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        try:
            client.archiver.move(due)
            if table.metadata_partitions and any(item.action == RESTORE for item in due):
                client.metadata_table.archive_restores()
        except HudiError:
            if found.hidden:
                raise
            logger.warning("could not archive %s", ", ".join(map(str, due)), exc_info=True)


def hidden_files(table: HudiTable, found: Overtaken) -> list[str]:
    """Returns the files of hidden writes that readers lack, or read in the wrong order: each log, and each base file
    without a later one. Lists all partitions. Before table version 8 a log does not name its commits, so every log may
    have some."""
    return sorted(_hidden_files(table, found)) if found.hidden else []


def _refusals(table: HudiTable, kind: JobKind, found: Overtaken) -> list[Problem]:
    if not (stuck := left(table, found)):
        return []
    pending_clean = any(item.action == CLEAN for item in stuck)
    if kind in ENDING_THEM and (kind is not JobKind.CLEANING or pending_clean):
        return []
    if not (files := hidden_files(table, found)):
        return []
    detail = f"{', '.join(map(str, stuck[:3]))}; {len(files)} files, such as {files[0]}"
    return [COMMITS_HIDDEN.because(detail, hint=advice(stuck))]


def left(table: HudiTable, found: Overtaken) -> list[Instant]:
    """Returns the overtaken instants that `archive` has to leave."""
    if not found.hidden:
        return []
    due = ready(table, found)
    return [item for item in found.instants if item not in due]


def advice(stuck: list[Instant]) -> str:
    """Returns what to do about these instants of `left`."""
    saved = _saved(stuck)
    of_each = [
        _ADVICE[item.action]
        for item in stuck
        if item.action in _ADVICE and (item.requested in saved or item.state != "COMPLETED")
    ]
    return " ".join(dict.fromkeys(of_each)) or _OTHERWISE


def ready(table: HudiTable, late: Overtaken) -> list[Instant]:
    """Returns the instants that can be archived now, and should be."""
    if table.version < WITH_COMPLETION_TIMES:
        return []
    found: list[Instant] = []
    saved = _saved(late.instants)
    for number, item in enumerate(late.instants):
        # A commit after an instant that stays would become hidden itself.
        is_first_commit = item.action in WRITES and not saved and len(found) == number
        if item.state == "COMPLETED" and (item.action in _WITHOUT_FILES or is_first_commit):
            found.append(item)
    if table.is_merge_on_read:
        found += [item for item in _old(table) if item not in found]
    if not found or not table.metadata_partitions:
        return found
    # Readers of the metadata table look for the instants of its logs on the active timeline.
    merged = compacted_at(table)
    return [item for item in found if merged and item.completed < merged]


def _old(table: HudiTable) -> Iterator[Instant]:
    for item in table.instants():
        ended = item.action in _NEVER_ARCHIVED and item.state == "COMPLETED"
        if ended and table.now() - wall_clock(item.requested) > _POLLED_AFTER:
            yield item


def _hidden_files(table: HudiTable, found: Overtaken) -> Iterator[str]:
    instants = table.instants()
    first = _first_write(instants)
    completed = {item.requested for item in instants if item.state == "COMPLETED" and item.action in WRITES}
    names_commits = table.version >= WITH_COMPLETION_TIMES
    for partition in table.partitions():
        visible: dict[str, str] = {}
        hidden: dict[str, tuple[str, str]] = {}
        for name in table.files_in(partition):
            if log := parse_log_file_name(name):
                if not names_commits or log.instant in found.hidden:
                    yield f"{partition}/{name}"
            elif base := parse_base_file_name(name):
                if base.instant in found.hidden and base.instant > first:
                    hidden[base.file_id] = max(hidden.get(base.file_id, ("", "")), (base.instant, name))
                elif base.instant in completed or base.instant < first:
                    visible[base.file_id] = max(visible.get(base.file_id, ""), base.instant)
        for file_id, (instant, name) in hidden.items():
            if visible.get(file_id, "") < instant:
                yield f"{partition}/{name}"


def _may_hide(instants: Sequence[Instant]) -> bool:
    """Returns whether the first of these instants is one that Hudi's archiver leaves on the timeline."""
    first = instants[0]
    return first.action not in WRITES or first.requested in _saved(instants)


def _first_write(instants: Sequence[Instant]) -> str:
    """Returns the first write of the active timeline, before which Hudi takes each instant for completed."""
    return min((item.requested for item in instants if item.action not in _NO_WRITES), default="")


def _saved(instants: Sequence[Instant]) -> set[str]:
    return {item.requested for item in instants if item.action == SAVEPOINT}
