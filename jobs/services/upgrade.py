"""Raises or lowers the version of a table by Hudi's own upgrader (1.2.0).

Hudi's upgrader moves all instants one by one and changes the properties at the end; if its process dies in between, no
version of Hudi can read the table. So everything that touches data files is done before, by services that prove their
work: dead writes are rolled back and logs compacted. The upgrader itself then changes only `.hoodie`, of which the job
makes a backup. The job proves that every file slice, row and instant was kept, or restores the backup.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from jobs.contract import Outcome, Result, WorkOrder
from jobs.errors import HudiError, LeaseLostError, refuse
from jobs.format.hudi_versions import OLDEST_FOR_TABLE
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi import indexes, upgrade_backup
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.merging import merging_of
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.audit import AuditParams, AuditResult
from jobs.kinds.results import KindResult
from jobs.kinds.upgrade import ChangedProperty, UpgradeParams, UpgradeResult
from jobs.problems.upgrades import TABLE_NOT_CLEAN
from jobs.protocol import upgrade_refusals
from jobs.protocol.writers import roll_back_dead
from jobs.services import audit, compaction
from jobs.table_errors import UpgradeDiffersError

logger = logging.getLogger(__name__)

_SHOWN = 3


@dataclass(frozen=True)
class Proof:
    """The facts that must be the same before and after: rows and keys, the latest file slices by the metadata table and
    by listing, completed instants with the files that they wrote and replaced, archived instants, and the merge
    mode."""

    rows: tuple[object, ...]
    slices: frozenset[tuple[object, ...]]
    listed: frozenset[tuple[object, ...]]
    instants: frozenset[tuple[str, str]]
    commits: frozenset[tuple[object, ...]]
    archived: frozenset[tuple[str, str]]
    merging: frozenset[str]

    def differences(self, other: Proof) -> list[str]:
        """Returns the names of the parts that differ, each with an example."""
        found = []
        for name in self.__dataclass_fields__:
            before, after = set(getattr(self, name)), set(getattr(other, name))
            if odd := [*sorted(map(str, before - after)), *sorted(map(str, after - before))]:
                found.append(f"{name}: {len(before - after)} gone, {len(after - before)} new, such as {odd[0][:200]}")
        return found


def run(table: HudiTable, order: WorkOrder[UpgradeParams], context: JobContext) -> Result[KindResult]:
    """Gives the table the version `to_version`. If an earlier attempt has died, first restores its backup."""
    context.step("planning")
    lock = TableLock(table, order.job_id)
    undone = False
    if not order.dry_run:
        undone = _undo_unfinished(table, lock, context)
    elif problems := upgrade_refusals.while_unfinished(table):
        # After an unfinished change each version of Hudi can read only a part of the table.
        return Result(Outcome.SUCCEEDED, details=UpgradeResult(refusals=tuple(problems)))
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        is_there = table.version == order.params.to_version
        problems = [] if is_there else upgrade_refusals.of_change(table, client, order)
        if order.dry_run:
            problems += compaction.refusals_of_everything(table, order, context)
            planned = _planned(table, client, order).having(
                refusals=tuple(problems), warnings=_warnings(table, order.params.to_version), nothing_to_do=is_there
            )
            return Result(Outcome.SUCCEEDED, details=planned)
        refuse(problems)
        planned = _planned(table, client, order).having(undone=undone, nothing_to_do=is_there)
        if is_there:
            return Result(Outcome.SUCCEEDED, details=planned)
        roll_back_dead(table, lock, client, context.checkpoint)
    compacted = compaction.of_everything(table, order, context)
    return Result(Outcome.SUCCEEDED, instants=compacted, details=_change(table, lock, order, context, planned))


def _change(
    table: HudiTable, lock: TableLock, order: WorkOrder[UpgradeParams], context: JobContext, planned: UpgradeResult
) -> UpgradeResult:
    """Changes the version. Holds the lock from the examination to the end."""
    to = order.params.to_version
    with lock.held(context.checkpoint):
        table.reload()
        with WriteClient(table, UNDER_OUR_LOCK) as client:
            refuse(upgrade_refusals.busy(table, client, compacted=True))
            dropped = _dropped(table, client, to)
        audited = _audited(table, order, context)
        if not audited.clean:
            refuse([TABLE_NOT_CLEAN.because(_wrong(audited))])
        before = _proof(table, audited)
        context.step("backing up the timeline")
        lock.verify()
        backup = upgrade_backup.keep(table, to, dropped, order.job_id)
        try:
            context.step("changing the version")
            lock.verify()
            with WriteClient(table, UNDER_OUR_LOCK) as client:
                client.upgrader.run(to)
            context.step("comparing the table with before")
            changed = HudiTable(table.jvm, table.declared)
            changed.clock.reload()
            if changed.version != to:
                raise HudiError(f"Hudi has left the table at version {changed.version}.")
            after = _audited(changed, order, context)
            differences = before.differences(_proof(changed, after))
            if differences or not after.clean:
                raise UpgradeDiffersError("; ".join(differences[:_SHOWN]) or _wrong(after))
            lock.verify()
            context.checkpoint()
        except Exception as error:
            _take_back(table, lock, backup, context, error)
            raise
        context.step("removing the backup")
        upgrade_backup.forget(changed)
    return planned.having(
        rows=audited.rows,
        key_digest=audited.key_digest,
        indexes_dropped=tuple(sorted(table.metadata_partitions - changed.metadata_partitions)),
    )


def _take_back(
    table: HudiTable, lock: TableLock, backup: upgrade_backup.Backup, context: JobContext, error: Exception
) -> None:
    """Restores the backup. If the lock is lost, leaves that to the next `upgrade` job."""
    if isinstance(error, LeaseLostError) or lock.is_lost():
        context.leaves("The timeline is half changed: the next `upgrade` job takes it back from its backup.")
        return
    logger.warning("taking the change of the table's version back: %s", error)
    with context.undoing():
        upgrade_backup.restore(table, backup)


def _undo_unfinished(table: HudiTable, lock: TableLock, context: JobContext) -> bool:
    """Undoes a change that an earlier attempt has left unfinished. Returns whether there was one."""
    if not upgrade_backup.is_there(table):
        return False
    context.step("taking back an unfinished upgrade")
    with context.undoing(), lock.held(context.checkpoint):
        backup = upgrade_backup.unfinished(table)
        if backup is None:
            upgrade_backup.remove(table)
            return False
        upgrade_backup.restore(table, backup)
    table.ignores_metadata_table = False
    table.reopen()
    return True


def _audited(table: HudiTable, order: WorkOrder[UpgradeParams], context: JobContext) -> AuditResult:
    return audit.run(table, order.having(AuditParams()), context).details


def _wrong(found: AuditResult) -> str:
    damages = [f"{each.type}: {each.detail}" for each in found.findings]
    counted = {"rows in wrong buckets": found.misplaced, "rows with the same key as another row": found.duplicates}
    damages += [f"{number} {what}" for what, number in counted.items() if number]
    unchecked = [f"{each.check}: {each.reason.title}" for each in found.unchecked]
    return "; ".join([*damages, *unchecked][:_SHOWN]) or "see the audit"


def _proof(table: HudiTable, audited: AuditResult) -> Proof:
    return Proof(
        rows=(f"{audited.rows} rows", audited.key_digest),
        slices=_slices(table, by_listing=False),
        listed=_slices(table, by_listing=True),
        instants=frozenset((item.requested, item.action) for item in table.instants() if item.state == "COMPLETED"),
        commits=frozenset(
            (
                each.write.instant,
                each.write.operation,
                tuple(sorted(each.file_names)),
                tuple(sorted(each.write.replaced)),
            )
            for each in table.commits()
        ),
        archived=table.archived(),
        merging=frozenset({merging_of(table).mode}),
    )


def _slices(table: HudiTable, *, by_listing: bool) -> frozenset[tuple[object, ...]]:
    found = table.file_slices_by_listing() if by_listing else table.file_slices()
    return frozenset((item.partition, item.file_id, item.base_file, item.log_files) for item in found)


def _warnings(table: HudiTable, to: int) -> tuple[str, ...]:
    """Returns sentences about what the owner should know before the change."""
    found = []
    if _moves_the_timeline(table, to):
        found.append(
            "While the instants move, readers may fail or miss rows for some seconds: stop them, or let them read "
            "again afterwards."
        )
    if to < table.version:
        found.append(
            f"A writer with a newer Hudi upgrades the table again, unless it has hoodie.write.table.version={to} and"
            " hoodie.write.auto.upgrade=false."
        )
    if to < WITH_COMPLETION_TIMES <= table.version:
        found.append(
            "Time travel to commits before the change may miss rows that were in logs then. Incremental readers use "
            "the times at which commits began, so let them read all commits before the change."
        )
    return tuple(found)


def _moves_the_timeline(table: HudiTable, to: int) -> bool:
    return (table.version < WITH_COMPLETION_TIMES) != (to < WITH_COMPLETION_TIMES)


def _planned(table: HudiTable, client: WriteClient, order: WorkOrder[UpgradeParams]) -> UpgradeResult:
    """Returns the result of a dry run: the changes that the job would make."""
    to = order.params.to_version
    if to not in OLDEST_FOR_TABLE:
        return UpgradeResult(from_version=table.version, to_version=to)
    slices = table.file_slices()
    moves = _moves_the_timeline(table, to)
    dropped = _dropped(table, client, to)
    backup = upgrade_backup.planned(table, to, dropped)
    changes = client.upgrader.rehearse(to) if to != table.version else {}
    return UpgradeResult(
        from_version=table.version,
        to_version=to,
        files=sum(item.number_of_files for item in slices),
        bytes=sum(item.bytes for item in slices),
        needs_hudi=upgrade_refusals.needed(to),
        excluded=tuple(upgrade_refusals.excluded(table, to)),
        properties=tuple(
            ChangedProperty(name=name, before=before, after=after) for name, (before, after) in changes.items()
        ),
        instants=len(table.instants()) if moves else 0,
        archived_instants=len(table.archived()) if moves else 0,
        file_groups_with_logs=sum(bool(item.log_files) for item in slices),
        indexes=tuple(sorted(table.metadata_partitions)),
        indexes_dropped=tuple(dropped),
        backup_files=len(backup.copied),
        backup_bytes=sum(backup.files[path][0] for path in backup.copied),
    )


def _dropped(table: HudiTable, client: WriteClient, to: int) -> list[str]:
    return client.upgrader.indexes_lost(to, indexes.indexes_of(table).stored)
