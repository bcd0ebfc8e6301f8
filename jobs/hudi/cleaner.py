"""Hudi's cleaner (1.2.0) with one write client: a clean is planned once, and exactly the checked plan is executed.
`BaseHoodieTableServiceClient.clean` would make another plan right before it deletes, and would open and read the
metadata table again for that."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs.hudi import plan_firewall
from jobs.hudi.jvm import translated
from jobs.hudi.records import CLEAN, Cleanable, CleanSummary

if TYPE_CHECKING:
    from jobs.hudi.records import Instant
    from jobs.hudi.table import HudiTable

# After one of these actions, planned deletions may be needed again or already done.
_OUTDATING = frozenset({"savepoint", "restore", "rollback", CLEAN})


@dataclass(frozen=True)
class CleanPlan(Cleanable):
    """A plan of a clean that is not on the timeline yet: the files to delete, and Hudi's `HoodieCleanerPlan`."""

    record: Any = None
    made_after: frozenset[Instant] = (
        frozenset()
    )  # Savepoints, restores, rollbacks and cleans on the timeline when the plan was made.


class Cleaner:
    """The cleans of one client, with its `HoodieWriteConfig` and `SparkRDDWriteClient`."""

    def __init__(self, table: HudiTable, config: Any, client: Any) -> None:
        self._table = table
        self._jvm = table.jvm
        self._config = config
        self._client = client

    def plan(self) -> CleanPlan | None:
        """Plans a clean; returns None if there is nothing to delete, or if an unfinished clean has to be completed
        first. Raises the errors of `check_cleans` for this plan and the pending ones."""
        before = self._outdating()
        with self._table.reading() as reader:
            with translated("planning the clean"):
                table = self._planning_table(reader)
                is_free = (
                    self._config.allowMultipleCleans() or table.getCleanTimeline().filterInflightsAndRequested().empty()
                )
                found = table.createCleanerPlan(self._jvm.engine_context, self._jvm.nothing()) if is_free else None
                plan = _plan_of(found.get(), before) if found is not None and found.isPresent() else None
            plan_firewall.check_cleans(self._table, plan.files if plan else {})
        return plan

    def preview(self) -> Cleanable:
        """Returns what `plan` would delete now, but writes nothing; `plan` itself may repair a damaged last clean."""
        with self._table.reading() as reader, translated("planning the clean"):
            planner = self._jvm.hudi.table.action.clean.CleanPlanner(
                self._jvm.engine_context, self._planning_table(reader), self._config
            )
            earliest = planner.getEarliestCommitToRetain()
            found, dropped = {}, []
            for partition in self._jvm.read(planner.getPartitionPathsToClean(earliest)):
                paths = planner.getDeletePaths(partition, earliest)
                found[partition] = [info["filePath"] for info in self._jvm.read(paths.getRight())]
                dropped += [partition] if paths.getLeft() else []
            return Cleanable({partition: files for partition, files in found.items() if files}, tuple(dropped))

    def is_current(self, plan: CleanPlan) -> bool:
        """Returns whether no savepoint, restore, rollback or clean was made after the plan; a plan that is older may
        delete needed files. The answer stays true while the lock is held."""
        return self._outdating() == plan.made_after

    def request(self, plan: CleanPlan) -> None:
        """Puts a plan on the timeline, as `scheduleCleaning` of Hudi's client does; the lock must be held."""
        self._table.clock.verify()
        with translated("scheduling the clean"):
            meta = self._table.meta
            states = self._jvm.hudi.common.table.timeline.HoodieInstant.State
            instant = self._client.createNewInstantTime(False)
            requested = meta.createNewInstant(states.valueOf("REQUESTED"), CLEAN, instant)
            meta.getActiveTimeline().saveToCleanRequested(requested, self._jvm.some(plan.record))

    def execute(self) -> CleanSummary | None:
        """Executes the pending cleans, which the caller has checked; returns None if there are none."""
        with translated("cleaning"):
            metadata = self._client.clean(False)
            if metadata is None:
                return None
            read = json.loads(str(metadata.toString()))
            failed = sum(len(item["failedDeleteFiles"]) for item in read["partitionMetadata"].values())
            return CleanSummary(read["startCleanTime"], read["totalFilesDeleted"], failed)

    def execute_delegated(self) -> CleanSummary | None:
        """Checks the pending cleans, and executes them. Raises the errors of `check_cleans`."""
        plan_firewall.check_cleans(self._table, {})
        return self.execute()

    def _outdating(self) -> frozenset[Instant]:
        return frozenset(each for each in self._table.instants() if each.action in _OUTDATING)

    def _planning_table(self, reader: Any) -> Any:
        """Returns Hudi's table for planning, which lists partitions and files with our reader."""
        return self._jvm.reads.table(self._table.meta, self._jvm.engine_context, self._config, reader)


def _plan_of(record: Any, made_after: frozenset[Instant]) -> CleanPlan:
    read = json.loads(str(record.toString()))
    files = {
        partition: [str(each["filePath"]) for each in infos]
        for partition, infos in (read.get("filePathsToBeDeletedPerPartition") or {}).items()
        if infos
    }
    return CleanPlan(files, tuple(read.get("partitionsToBeDeleted") or ()), record, made_after)
