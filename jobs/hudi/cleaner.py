"""Hudi's cleaner (1.2.0) with one write client: a clean is planned in parts, and exactly the checked plans are
executed. `BaseHoodieTableServiceClient.clean` would make another plan right before it deletes, and would open and read
the metadata table again for that."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from jobs.errors import JobError
from jobs.format.plan_files import File
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi import plan_checks
from jobs.hudi.clean_parts import clean_parts
from jobs.hudi.clean_plan import CleanPlan
from jobs.hudi.client_part import ClientPart
from jobs.hudi.jvm import translated
from jobs.hudi.records import CLEAN, CleanSummary, Instant

# After one of these actions, a file that a plan deletes may be needed again, or may be deleted already.
_OUTDATING = frozenset({"savepoint", "restore", "rollback", CLEAN})
_MOST_LISTED = 200_000  # some 200 MB of the JVM


class Cleaner(ClientPart):
    def plan(self, most_files: int, done: CleanPlan | None = None) -> CleanPlan | None:
        """Plans a clean of at most this many files, or the part after `done`, which has just been executed. Returns
        None if there is nothing to delete, or if an unfinished clean has to be completed first. Raises the errors of
        `check_cleans` for this plan and the pending ones."""
        before = self._outdating()
        with self._table.reading() as reader:
            with translated("planning the clean"):
                plan = self._plan(reader, most_files, before, done)
            plan_checks.check_cleans(self._table, plan)
        return plan

    def _plan(
        self, reader: Any, most_files: int, before: frozenset[Instant], done: CleanPlan | None
    ) -> CleanPlan | None:
        table = self._planning_table(reader)
        cleans = table.getCleanTimeline()
        if not self._config.allowMultipleCleans() and not cleans.filterInflightsAndRequested().empty():
            return None
        last = cleans.filterCompletedInstants().lastInstant()
        if last.isPresent() and self._table.meta.getActiveTimeline().isEmpty(last.get()):
            # Hudi repairs a damaged last clean.
            found = table.createCleanerPlan(self._jvm.engine_context, self._jvm.nothing())
            return _plan_of(found.get(), before) if found.isPresent() else None
        if done is not None and done.made_after == before and done.parts.holdsFor(table, self._config):
            done.parts.begin(done.reached, 0)
            _forget_plans()
            return self._next(reader, done.parts, before)
        return self._next(reader, self._parts(table, most_files), before)

    def preview(self, most_files: int) -> Iterator[CleanPlan]:
        """Yields the parts that `plan` would plan now, but writes nothing; `plan` itself may repair a damaged last
        clean."""
        with self._table.reading() as reader:
            with translated("planning the clean"):
                parts = self._parts(self._planning_table(reader), most_files)
            found = None
            while found is None or not found.is_last:
                with translated("planning the clean"):
                    found = self._next(reader, parts, frozenset())
                    parts.begin(parts.at(), parts.taken())
                if found is None:
                    return
                yield found
                _forget_plans()

    def _parts(self, table: Any, most_files: int) -> Any:
        parts = clean_parts(self._jvm, self._jvm.engine_context, self._config, table, most_files, _MOST_LISTED)
        parts.begin(0, 0)
        return parts

    def _next(self, reader: Any, parts: Any, before: frozenset[Instant]) -> CleanPlan | None:
        """Returns the next part; None if nothing is left to delete and no clean has to record that."""
        while not parts.add(table := self._planning_table(reader), self._config):
            pass
        is_marked = self._table.version >= WITH_COMPLETION_TIMES
        plan = _plan_of(parts.plan(table, self._config, is_marked), before)
        plan = replace(
            plan,
            bytes=int(parts.bytes()),
            latest=frozenset(_file(path) for path in self._jvm.read(parts.latest())),
            is_last=bool(parts.isLast()),
            parts=parts,
            reached=int(parts.at()),
            looked_at=int(parts.partitions()),
        )
        return None if plan.is_empty and not parts.isWorthRemembering() else plan

    def is_current(self, plan: CleanPlan) -> bool:
        """Returns whether no savepoint, restore, rollback or clean was made after the plan; a plan that is older may
        delete needed files. The answer stays true while the lock is held."""
        return self._outdating() == plan.made_after

    def request(self, plan: CleanPlan, require: Callable[[], None]) -> None:
        """Puts a plan on the timeline, as `scheduleCleaning` of Hudi's client does; the lock must be held. `require`
        raises if the lock was lost meanwhile: a savepoint may have been made since the plan was checked, so the plan is
        removed before anybody executes it."""
        self._table.clock.verify()
        with translated("scheduling the clean"):
            meta = self._table.meta
            states = self._jvm.hudi.common.table.timeline.HoodieInstant.State
            instant = self._client.createNewInstantTime(False)
            requested = meta.createNewInstant(states.valueOf("REQUESTED"), CLEAN, instant)
            meta.getActiveTimeline().saveToCleanRequested(requested, self._jvm.some(plan.record))
        try:
            require()
        except JobError:
            with translated("removing the plan of the clean"):
                meta.getActiveTimeline().deletePending(requested)
            raise

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
        plan_checks.check_cleans(self._table)
        return self.execute()

    def _outdating(self) -> frozenset[Instant]:
        return frozenset(each for each in self._table.instants() if each.action in _OUTDATING)

    def _planning_table(self, reader: Any) -> Any:
        """Returns Hudi's table for planning, which lists partitions and files with our reader."""
        return self._jvm.reads.table(self._table.meta, self._jvm.engine_context, self._config, reader)


def _forget_plans() -> None:
    """Lets the JVM free earlier plans, each of which names many files. Py4J's objects refer to themselves through their
    methods, so only Python's garbage collector frees them."""
    gc.collect()


def _plan_of(record: Any, made_after: frozenset[Instant]) -> CleanPlan:
    read = json.loads(str(record.toString()))
    files = {
        partition: [str(each["filePath"]) for each in infos]
        for partition, infos in (read.get("filePathsToBeDeletedPerPartition") or {}).items()
        if infos
    }
    return CleanPlan(files, tuple(read.get("partitionsToBeDeleted") or ()), record=record, made_after=made_after)


def _file(path: Any) -> File:
    partition, _, name = str(path).rpartition("/")
    return partition, name
