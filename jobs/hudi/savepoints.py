"""Savepoints of Hudi (1.2.0): commits whose files the cleaner keeps, and to which a table can be restored."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from jobs.hudi.boundaries import relative
from jobs.hudi.client_part import ClientPart
from jobs.hudi.jvm import translated
from jobs.hudi.table import HudiTable

ACTION, RESTORE = "savepoint", "restore"
BY = "groundskeeper"
OF_REPAIR = "holds file groups whose rows a repair is about to write elsewhere"
"""The comment of a savepoint that a repair makes, and removes at its end."""


@dataclass(frozen=True)
class Savepoint:
    """A completed savepoint of the commit `instant`. `files` maps partition paths to the names of the table's files at
    that commit."""

    instant: str
    by: str
    comment: str
    files: dict[str, frozenset[str]]

    @property
    def is_of_repair(self) -> bool:
        return (self.by, self.comment) == (BY, OF_REPAIR)


@dataclass(frozen=True)
class PendingRestore:
    """An unfinished restore to `savepoint`, which rolls back the instants `planned`."""

    instant: str
    savepoint: str
    planned: frozenset[str]


def savepoints_of(table: HudiTable) -> list[Savepoint]:
    """Returns the completed savepoints, oldest first. Raises HudiError if one cannot be read, because its files are
    unknown then."""
    if not any(item.action == ACTION for item in table.instants()):
        return []
    with translated("reading the savepoints"):
        timeline = table.meta.reloadActiveTimeline().getSavePointTimeline().filterCompletedInstants()
        instants = list(table.jvm.items(timeline.getInstantsAsStream()))
        # JSON takes one call for each savepoint, however many files it has.
        return [_savepoint(str(item.requestedTime()), timeline.readSavepointMetadata(item)) for item in instants]


def of_repairs(table: HudiTable) -> list[str]:
    """Returns the instants of the savepoints that repairs have made."""
    return [each.instant for each in savepoints_of(table) if each.is_of_repair]


def _savepoint(instant: str, record: Any) -> Savepoint:
    read = json.loads(str(record.toString()))
    files = {
        relative(str(partition), "a savepoint"): frozenset(
            relative(str(name), "a savepoint") for name in each.get("savepointDataFile") or ()
        )
        for partition, each in (read.get("partitionMetadata") or {}).items()
    }
    return Savepoint(instant, str(read.get("savepointedBy") or ""), str(read.get("comments") or ""), files)


class Savepoints(ClientPart):
    def find(self, instant: str) -> Savepoint | None:
        return next((each for each in savepoints_of(self._table) if each.instant == instant), None)

    def create(self, instant: str, by: str, comment: str) -> None:
        """Creates the savepoint of a completed commit; the lock must be held.

        An unfinished savepoint is created again, because no other creator can be active while the lock is held.
        """
        self.remove_unfinished(instant)
        with translated(f"creating the savepoint {instant}"):
            self._client.savepoint(instant, by, comment)

    def delete(self, instant: str) -> None:
        """Deletes a savepoint, or completes an interrupted deletion; the lock must be held."""
        with translated(f"deleting the savepoint {instant}"):
            self._client.deleteSavepoint(instant)
        self.remove_unfinished(instant)

    def remove_unfinished(self, instant: str) -> None:
        with translated(f"removing the unfinished savepoint {instant}"):
            timeline = self._table.meta.reloadActiveTimeline()
            unfinished = timeline.getSavePointTimeline().filterInflightsAndRequested()
            for item in self._jvm.items(unfinished.getInstantsAsStream()):
                if str(item.requestedTime()) == instant:
                    timeline.deleteInflight(item)
        self._table.meta.reloadActiveTimeline()

    # -- restoring

    def pending_restore(self) -> PendingRestore | None:
        with translated("reading the restores"):
            meta = self._table.meta
            meta.reloadActiveTimeline()
            table = self._jvm.hudi.table.HoodieSparkTable.create(self._config, self._jvm.engine_context, meta)
            last = table.getRestoreTimeline().filterInflightsAndRequested().lastInstant()
            if not last.isPresent():
                return None
            to = self._jvm.hudi.table.action.restore.RestoreUtils.getSavepointToRestoreTimestamp(table, last.get())
            return PendingRestore(str(last.get().requestedTime()), str(to), self._planned(last.get()))

    def undone(self) -> frozenset[str]:
        """Returns the instants that the last completed restore of the active timeline has rolled back."""
        with translated("reading the restores"):
            timeline = self._table.meta.reloadActiveTimeline()
            last = timeline.getRestoreTimeline().filterCompletedInstants().lastInstant()
            return self._planned(last.get()) if last.isPresent() else frozenset()

    def _planned(self, restore: Any) -> frozenset[str]:
        utils = self._jvm.hudi.table.action.restore.RestoreUtils
        plan = utils.getRestorePlan(self._table.meta, restore).getInstantsToRollback()
        return frozenset(str(item.getCommitTime()) for item in self._jvm.items(plan.stream()))

    def schedule_restore(self, restore: str, savepoint: str) -> None:
        """Puts a restore on the timeline, as REQUESTED, with the instants that it will roll back. The lock must be
        held.

        Hudi's own `restoreToSavepoint` generates the instant; here the caller must know it before.
        """
        with translated(f"planning to restore {savepoint}"):
            meta, context = self._table.meta, self._jvm.engine_context
            meta.reloadActiveTimeline()
            table = self._jvm.hudi.table.HoodieSparkTable.create(self._config, context, meta)
            table.scheduleRestore(context, restore, savepoint)

    def forget_requested_rollbacks(self, instants: Collection[str]) -> None:
        """Removes the rollbacks among these that are only requested from the timeline; the lock must be held. A
        continued restore requests its rollbacks again. At its end Hudi (1.2.0) deletes the inflight file of each
        pending rollback since its start, and fails at a rollback without one, at every attempt
        (`BaseRestoreActionExecutor.finishRestore`)."""
        with translated("removing the requested rollbacks of a restore"):
            timeline = self._table.meta.reloadActiveTimeline()
            pending = timeline.filterPendingRollbackTimeline().getInstantsAsStream()
            for item in list(self._jvm.items(pending)):
                if str(item.requestedTime()) in instants and item.isRequested():
                    timeline.deletePending(item)
            self._table.meta.reloadActiveTimeline()

    def restore(self, savepoint: str) -> None:
        """Executes or continues the restore that was scheduled last; the lock must be held all the time. Rolls back
        commits, newest first, and permanently deletes their files."""
        with translated(f"restoring {savepoint}"):
            self._client.restoreToSavepoint(savepoint)
