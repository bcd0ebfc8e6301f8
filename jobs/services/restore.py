"""Restore: takes a table back to a savepoint. All later commits are rolled back, and their rows are lost for good. No
writer may be active: it would write to file groups that no longer exist, or its commits would be lost without an error.
So the owner has to declare that the writers are stopped, and the timeline must not contradict that."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.contract import Problem, Result, WorkOrder
from jobs.errors import FilesGoneError, HudiError, WritersActiveError
from jobs.format.adopted_index import ADOPTED_KEY
from jobs.format.stale_writes import RESCALE, stale_writes
from jobs.format.stream_positions import undone_queries
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi import hashing_metadata, index_note
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.records import CLUSTERING, Commit, Instant
from jobs.hudi.savepoints import PendingRestore, Savepoint
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.restore import RestoreParams, RestoreResult
from jobs.kinds.results import KindResult
from jobs.problems.undoing import EXPANDED_SINCE, NO_SUCH_SAVEPOINT, RESTORE_UNFINISHED, STALE_WRITE_IN_SAVEPOINT
from jobs.protocol import preflight
from jobs.protocol.leftovers import is_leftover
from jobs.services import restored_indexes
from jobs.services.undoing import Attempt, undo


def run(table: HudiTable, order: WorkOrder[RestoreParams], context: JobContext) -> Result[KindResult]:
    """Restores the table to the savepoint `savepoint`; `table_name` must be the table's name.

    An attempt that has died is continued by the next one, because its plan is on the timeline.
    """
    return undo(table, order, context, problems=_problems, describe=_undone, execute=_restore, finish=_settled)


def _restore(attempt: Attempt[RestoreParams]) -> str:
    table, client, lock = attempt.table, attempt.client, attempt.lock
    to = attempt.order.params.savepoint
    attempt.context.step("restoring")
    begun = client.savepoints.pending_restore()
    savepoint = client.savepoints.find(to)
    restore = begun.instant if begun else client.new_instant()
    attempt.context.instant(restore)
    lock.verify()
    # A metadata table that cannot be restored that far is deleted.
    index_note.keep(table)
    if begun:
        client.savepoints.forget_requested_rollbacks(_left_by(client, begun))
    else:
        client.savepoints.schedule_restore(restore, to)
    # Otherwise a frozen attempt could roll back what writers have committed after the next attempt's restore.
    lock.verify()
    if client.metadata_table.reaches_back_to(to):
        client.savepoints.restore(to)
    else:
        # Hudi (1.2.0) would build a new one beside the restore. If a clean came after the savepoint, it could never
        # complete such a restore (`HoodieBackedTableMetadataWriter.update`). Without it Hudi leaves the old one, which
        # names files that the restore removes. The indexes are built when the restore is done.
        client.metadata_table.delete()
        lock.verify()
        with WriteClient(table, UNDER_OUR_LOCK, {"hoodie.metadata.enable": "false"}) as without:
            without.savepoints.restore(to)
    lock.verify()
    table.reload()
    if savepoint is None or table.state_of(restore) != "COMPLETED":
        raise HudiError(f"The restore {restore} has not completed.")
    _require_files(table, savepoint)
    return restore


def _settled(attempt: Attempt[RestoreParams]) -> dict[str, object]:
    """Removes the plans that the restore has left, and brings the indexes in line with the restored rows. If an earlier
    attempt has completed the restore, writers may have started since, and may execute such a plan, with no heartbeat in
    Hudi 1.2.0. So the plans then stay, and an audit names those whose files are gone."""
    if not preflight.writers_not_stopped(attempt.table, attempt.order):
        _remove_plans(attempt)
    attempt.context.step("comparing the indexes with the rows")
    dropped = restored_indexes.settle(attempt.table, attempt.client, attempt.lock)
    return {"indexes_dropped": dropped} if dropped else {}


def _remove_plans(attempt: Attempt[RestoreParams]) -> None:
    """Rolls back the plans of completed clusterings that the restore has undone. Hudi (1.2.0) leaves such a plan
    inflight from table version 8 on, although its files may be gone, and each writer that clusters by itself fails at
    it after every batch."""
    table, client, lock = attempt.table, attempt.client, attempt.lock
    undone = client.savepoints.undone()
    for item in table.pending():
        if item.requested in undone and (item.action == CLUSTERING or table.is_clustering_plan(item.requested)):
            client.rollback(item.requested, lock.verify)
    lock.verify()
    table.reload()


def _problems(attempt: Attempt[RestoreParams]) -> list[Problem]:
    table, client, order = attempt.table, attempt.client, attempt.order
    to = order.params.savepoint
    problems = [
        *preflight.name_not_typed(table, order.params.table_name),
        *preflight.lock_not_provable(table),
        *preflight.writers_not_stopped(table, order),
    ]
    begun = client.savepoints.pending_restore()
    alive = _alive(table, client, order, begun)
    if alive:
        problems.append(
            WritersActiveError.because(
                ", ".join(alive),
                title="A writer or a service is working on the table",
                hint="Stop it and wait until it has ended, or for two minutes after it was killed.",
                retriable=True,
            )
        )
    if begun and begun.savepoint != to:
        problems.append(RESTORE_UNFINISHED.because(f"to {begun.savepoint}"))
    savepoint = client.savepoints.find(to)
    commits = table.commits()
    commit = next((each for each in commits if each.write.instant == to), None)
    if savepoint is None or commit is None:
        problems.append(NO_SUCH_SAVEPOINT.because(to))
        return problems
    return problems + _of_savepoint(table, savepoint, commit, commits)


def _of_savepoint(table: HudiTable, savepoint: Savepoint, commit: Commit, commits: Sequence[Commit]) -> list[Problem]:
    problems = []
    rescaled = [each.write.instant for each in _later(commits, commit) if each.write.operation == RESCALE]
    if table.has_consistent_hashing():
        # A restore leaves later hashing metadata in force, which a resize or a repair has made.
        rescaled += hashing_metadata.since(table, commit.write.instant)
    if rescaled:
        problems.append(EXPANDED_SINCE.because(", ".join(rescaled)))
    if indexed := [each.write.instant for each in _later(commits, commit) if ADOPTED_KEY in each.extra]:
        title = "The table has adopted a bucket index, or given one up, after the savepoint"
        problems.append(EXPANDED_SINCE.because(", ".join(indexed), title=title))
    before = [each.write for each in commits if each.completed <= commit.completed]
    if stale := stale_writes(before):
        problems.append(STALE_WRITE_IN_SAVEPOINT.because(", ".join(write.instant for write in stale[:5])))
    gone = [
        f"{partition}/{name}"
        for partition, names in savepoint.files.items()
        for name in sorted(names - table.files_in(partition))
    ]
    if gone:
        problems.append(
            FilesGoneError.because(f"{len(gone)}, such as {gone[0]}", title="Files of the savepoint are gone", hint="")
        )
    return problems


def _alive(table: HudiTable, client: WriteClient, order: WorkOrder, begun: PendingRestore | None) -> list[str]:
    """Returns the pending instants that somebody may be working on; the restore removes the others."""
    restoring = _left_by(client, begun) if begun else frozenset()
    pending = [item for item in table.pending() if item.requested not in restoring]
    return [
        str(item)
        for item in pending
        if not _is_idle_plan(table, item)
        and not is_leftover(table, client, item, writers_stopped=order.writers_stopped)
    ]


def _left_by(client: WriteClient, begun: PendingRestore) -> frozenset[str]:
    """Returns the instants that an interrupted restore has left pending: itself, the completed instants that it was
    rolling back, and their rollbacks."""
    rollbacks = client.pending_rollbacks().items()
    undoing = {rollback for rollback, instant in rollbacks if rollback > begun.instant and instant in begun.planned}
    return frozenset({begun.instant, *begun.planned, *undoing})


def _is_idle_plan(table: HudiTable, item: Instant) -> bool:
    is_plan = item.action in {"compaction", "logcompaction", "clustering"} or table.is_clustering_plan(item.requested)
    return is_plan and item.state == "REQUESTED"


def _later(commits: Sequence[Commit], than: Commit) -> list[Commit]:
    """Returns the commits that a restore to this one rolls back: those that completed later. Before table version 8
    these are the ones with later instants."""
    return [each for each in commits if each.completed > than.completed or each.write.instant > than.write.instant]


def _undone(attempt: Attempt[RestoreParams]) -> RestoreResult:
    to = attempt.order.params.savepoint
    commits = attempt.table.commits()
    commit = next((each for each in commits if each.write.instant == to), None)
    later = _later(commits, commit) if commit else []
    undone = {each.write.instant for each in later}
    return RestoreResult(
        savepoint=to,
        rolled_back=tuple(each.write.instant for each in later),
        writers_commits=sum(each.write.brings_rows for each in later),
        streams=undone_queries(
            [each.extra for each in later], [each.extra for each in commits if each.write.instant not in undone]
        ),
    )


def _require_files(table: HudiTable, savepoint: Savepoint) -> None:
    """Raises HudiError unless the table consists of exactly the files of the savepoint.

    Before table version 8 a rollback of log files is itself written to log files, which hold no rows.
    """
    found: dict[str, set[str]] = {}
    for item in table.file_slices():
        names = found.setdefault(item.partition, set())
        names |= {*item.log_files, *([item.base_file.rpartition("/")[2]] if item.base_file else [])}
    for partition in {*found, *savepoint.files}:
        now, then = found.get(partition, set()), savepoint.files.get(partition, frozenset())
        added = {name for name in now - then if table.version >= WITH_COMPLETION_TIMES or ".log." not in name}
        if then - now or added:
            differing = ", ".join(sorted((then - now) | added)[:3])
            raise HudiError(f"After the restore the files of partition '{partition}' differ: {differing}")
