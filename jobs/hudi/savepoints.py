"""Savepoints of Hudi (1.2.0): commits whose files the cleaner keeps, and to which a table can be restored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs.hudi.boundaries import relative
from jobs.hudi.jvm import translated

if TYPE_CHECKING:
    from jobs.hudi.table import HudiTable

ACTION, RESTORE = "savepoint", "restore"


@dataclass(frozen=True)
class Savepoint:
    """A completed savepoint of the commit `instant`. `files` maps partition paths to the names of the files that the
    table consisted of."""

    instant: str
    by: str
    comment: str
    files: dict[str, frozenset[str]]


class Savepoints:
    """The savepoints of one table. `client` is the Hudi client of a `WriteClient`, `config` its `HoodieWriteConfig`."""

    def __init__(self, table: HudiTable, config: Any, client: Any) -> None:
        self._table = table
        self._jvm = table.jvm
        self._config = config
        self._client = client

    def every(self) -> list[Savepoint]:
        """Returns the completed savepoints, oldest first."""
        with translated("reading the savepoints"):
            timeline = self._table.meta.reloadActiveTimeline().getSavePointTimeline().filterCompletedInstants()
            instants = list(self._jvm.items(timeline.getInstantsAsStream()))
            return [self._savepoint(timeline, item) for item in instants]

    def find(self, instant: str) -> Savepoint | None:
        return next((each for each in self.every() if each.instant == instant), None)

    def create(self, instant: str, by: str, comment: str) -> None:
        """Creates the savepoint of a completed commit; the lock must be held.

        A savepoint that its creator left unfinished is made anew: creators hold the lock.
        """
        self.remove_unfinished(instant)
        with translated(f"creating the savepoint {instant}"):
            self._client.savepoint(instant, by, comment)

    def delete(self, instant: str) -> None:
        """Deletes a savepoint, also one whose deletion was interrupted; the lock must be held."""
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

    def pending_restore(self) -> tuple[str, str] | None:
        """Returns the instant of an unfinished restore, and the savepoint that it restores."""
        with translated("reading the restores"):
            meta = self._table.meta
            meta.reloadActiveTimeline()
            table = self._jvm.hudi.table.HoodieSparkTable.create(self._config, self._jvm.engine_context(), meta)
            last = table.getRestoreTimeline().filterInflightsAndRequested().lastInstant()
            if not last.isPresent():
                return None
            to = self._jvm.hudi.table.action.restore.RestoreUtils.getSavepointToRestoreTimestamp(table, last.get())
            return str(last.get().requestedTime()), str(to)

    def schedule_restore(self, restore: str, savepoint: str) -> None:
        """Puts a restore on the timeline, as REQUESTED, with the instants that it will roll back. The lock must be
        held.

        Hudi's own `restoreToSavepoint` makes up the instant; here it must be known before.
        """
        with translated(f"planning to restore {savepoint}"):
            meta, context = self._table.meta, self._jvm.engine_context()
            meta.reloadActiveTimeline()
            table = self._jvm.hudi.table.HoodieSparkTable.create(self._config, context, meta)
            table.scheduleRestore(context, restore, savepoint)

    def restore(self, savepoint: str) -> None:
        """Executes the restore that was scheduled last, or goes on with it; the lock must be held all the time.

        Rolls back commits, newest first, and deletes their files, for good.
        """
        with translated(f"restoring {savepoint}"):
            self._client.restoreToSavepoint(savepoint)

    def _savepoint(self, timeline: Any, item: Any) -> Savepoint:
        record = timeline.readSavepointMetadata(item)
        files: dict[str, frozenset[str]] = {}
        for each in record.getPartitionMetadata().values():
            names = self._jvm.read(each.getSavepointDataFile())
            partition = relative(str(each.getPartitionPath()), "a savepoint")
            files[partition] = frozenset(relative(name, "a savepoint") for name in names)
        return Savepoint(str(item.requestedTime()), str(record.getSavepointedBy()), str(record.getComments()), files)
