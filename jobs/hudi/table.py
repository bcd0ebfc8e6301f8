"""A Hudi table as the JVM reads it: properties, timeline, partitions, file slices."""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import cached_property
from typing import Any

from jobs import contract
from jobs.contract import WriterEngine
from jobs.errors import FileMissingError, JobError
from jobs.format import consistent_hashing, flink_marks, index_definitions
from jobs.format.bucket_rules import BucketRules
from jobs.format.stale_writes import Group
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi import hashing_config, held_files
from jobs.hudi.commit_order import in_order
from jobs.hudi.file_listing import ListedFile, listed_each
from jobs.hudi.instant_generators import instant_generators
from jobs.hudi.jvm import Jvm, reread, translated
from jobs.hudi.opened_table import OpenedTable
from jobs.hudi.records import (
    CLUSTERING,
    COMPACTION,
    HOUSEKEEPING,
    INGESTION,
    LOG_COMPACTION,
    OVERWRITES,
    REPLACE,
    Commit,
    FileSlice,
    Instant,
    commit_of,
)
from jobs.hudi.slice_listing import SliceListing
from jobs.hudi.table_clock import TableClock

_READ = {
    "commit": "readCommitMetadata",
    "deltacommit": "readCommitMetadata",
    REPLACE: "readReplaceCommitMetadata",
    "clean": "readCleanMetadata",
    "rollback": "readRollbackMetadata",
    "restore": "readRestoreMetadata",
    "savepoint": "readSavepointMetadata",
}
"""Methods of Hudi's `HoodieTimeline` by action."""

_UNNAMED = "UNKNOWN"
"""The `WriteOperationType` of an empty inflight file."""


class HudiTable(OpenedTable):
    """One table. Timeline and file slices are always current, the rest as of the last `reload()`.

    `lock_wait_seconds` is the total time that the job has waited for the table's lock.
    """

    def __init__(self, jvm: Jvm, table: contract.Table) -> None:
        # Storages that are opened from now on look at the lock (`jobs.hudi.held_storage`).
        files = instant_generators(jvm).files
        super().__init__(jvm, table)
        held_files.hold(jvm, files, table.base_path)
        self.lock_wait_seconds = 0.0
        self._listing = SliceListing(self)
        # A rolled-back instant may complete again with other files, so the key has both of its times.
        self._commits: dict[tuple[str, str | None], Commit] = {}
        self.clock = TableClock(self)

    @property
    def indexes_of_keys(self) -> list[str]:
        """The metadata partitions that map keys to files."""
        return index_definitions.of_keys(self.metadata_partitions)

    # -- timeline

    def unreadable_instants(self) -> dict[str, str]:
        """Returns the completed instants whose metadata cannot be read, each with the reason. Those that `commits` has
        read are not read again."""
        found: dict[str, str] = {}
        with translated("reading the timeline"):
            # One call reads all. Only the few that it cannot read are read again, to get the reason.
            doubtful = set(json.loads(self.jvm.reads.unreadable(self.meta, self.jvm.map(_READ), self._known())))
            if not doubtful:
                return found
            timeline = self.meta.reloadActiveTimeline()
            for item in self.jvm.items(timeline.filterCompletedInstants().getInstantsAsStream()):
                read = _READ.get(str(item.getAction()))
                if read and str(item.requestedTime()) in doubtful:
                    try:
                        with translated(f"reading {item.requestedTime()}", expected=JobError):
                            getattr(timeline, read)(item)
                    except JobError as error:
                        found[str(item.requestedTime())] = error.detail
        return found

    def pending(self, *, without: str | None = None) -> list[Instant]:
        """Returns requested and inflight instants that may change rows or files, except for `without` (our own)."""
        return [
            instant
            for instant in self.instants()
            if instant.state != "COMPLETED" and instant.action not in HOUSEKEEPING and instant.requested != without
        ]

    def pending_writes(self) -> list[Instant]:
        """Returns the pending instants of writers, including inflight overwrites and deletions of partitions. A
        requested replacecommit is left out, because it does not show its operation yet."""
        return [
            item
            for item in self.pending()
            if item.action in INGESTION or (item.action == REPLACE and self._overwrites(item))
        ]

    def _overwrites(self, pending: Instant) -> bool:
        """Returns whether a pending replacecommit is the overwrite of a writer. Flink, and Spark's row writer, leave
        the inflight file empty (1.2.0). So does Hudi's clustering before table version 8, which has a plan."""
        operation = self._operation_of(pending)
        return operation in OVERWRITES or (operation == _UNNAMED and not self.is_plan(pending))

    def is_plan(self, pending: Instant) -> bool:
        """Returns whether a pending instant is the plan of a table service that reads file groups."""
        if pending.action == REPLACE:
            return self.version < WITH_COMPLETION_TIMES and self.is_clustering_plan(pending.requested)
        return pending.action in {COMPACTION, LOG_COMPACTION, CLUSTERING}

    def is_clustering_plan(self, requested: str) -> bool:
        """Returns whether this pending replacecommit is a clustering plan, as before table version 8."""
        with translated(f"reading the plan of {requested}"):
            instants = self.meta.reloadActiveTimeline().filterPendingReplaceTimeline()
            plans = self.jvm.hudi.common.util.ClusteringUtils
            return any(
                bool(plans.getClusteringPlan(self.meta, item).isPresent())
                for item in self.jvm.items(instants.getInstantsAsStream())
                if str(item.requestedTime()) == requested
            )

    @reread
    def _operation_of(self, pending: Instant) -> str | None:
        """Returns the operation of an inflight instant; None if it is still requested or gone."""
        if pending.state != "INFLIGHT":
            return None
        with translated(f"reading {pending.requested}", expected=FileMissingError):
            found = self.jvm.reads.operation(self.meta, pending.requested)
            return None if found is None else str(found)

    @reread
    def commits(self) -> list[Commit]:
        """Returns the active timeline's completed instants that wrote or replaced files, in the order of completion.
        The metadata of known instants is cached."""
        with translated("reading the timeline's commits", expected=FileMissingError):
            listed = json.loads(self.jvm.reads.commits(self.meta, self._known()))
        self._commits = {
            (requested, completed): self._commits.get((requested, completed))
            or commit_of(requested, completed or "", record)
            for requested, completed, record in listed
        }
        return in_order(self, self._commits.values())

    def _known(self) -> str:
        return ",".join(f"{requested}/{completed}" for requested, completed in self._commits)

    @reread
    def rollbacks(self) -> dict[str, str]:
        """Returns the rolled-back instants, each with its rollback's instant, by the active timeline."""
        if not any(item.action == "rollback" for item in self.instants()):
            return {}
        with translated("reading the rollbacks", expected=FileMissingError):
            timeline = self.meta.reloadActiveTimeline()
            done = timeline.getRollbackTimeline().filterCompletedInstants()
            return {
                instant: str(item.requestedTime())
                for item in self.jvm.items(done.getInstantsAsStream())
                for instant in self.jvm.read(timeline.readRollbackMetadata(item).getCommitsRollback())
            }

    def replaced_by(self, instant: str) -> frozenset[Group]:
        """Returns the file groups that this completed instant replaced; empty when it is not in the active timeline."""
        return next((each.write.replaced for each in self.commits() if each.write.instant == instant), frozenset())

    def completed_writes(self) -> list[tuple[str, str]]:
        """Returns requested and completion time of the writers' completed commits in the active timeline."""
        action = "deltacommit" if self.is_merge_on_read else "commit"
        return [
            (item["requestedTime"], item["completionTime"])
            for item in self._timeline()
            if item["state"] == "COMPLETED" and item["action"] == action
        ]

    def now(self) -> datetime:
        """Returns the current time in the frame of the table's instants."""
        return self.clock.now()

    def moment(self, milliseconds: int) -> datetime:
        """Converts a file's time to the frame of the table's instants."""
        return self.clock.moment(milliseconds)

    @cached_property
    def may_have_flink(self) -> str | None:
        """A sentence for users with the evidence that a Flink job may be writing the table; None if there is none.
        Declared and detected engines take precedence over marks on the table."""
        engines = self.declared.writers_engines
        if WriterEngine.FLINK in engines:
            return "Flink is a declared or detected writer"
        return None if engines else self.flink_mark

    @cached_property
    def flink_mark(self) -> str | None:
        """A sentence for users about the mark that Flink has left on this table (`flink_marks`), also with its start;
        None if there is none."""
        named = [commit.write.instant for commit in self.commits() if flink_marks.CHECKPOINT in commit.extra]
        if named:
            return f"{named[-1]} was committed by Flink (its metadata has a checkpoint id)"
        names = sorted(self.entries_in(".hoodie/.aux"))
        found = next((name for name in names if name.startswith(flink_marks.VIEW_STORAGE)), None)
        return f"a Flink job has been started on it (.hoodie/.aux/{found})" if found else None

    def flink_commits(self, known: Container[str]) -> list[str]:
        """Returns the commits of Flink that are not among the `known` instants, except for those of an overwrite, which
        only a batch makes."""
        later = [commit for commit in self.commits() if commit.write.instant not in known]
        found = [
            commit.write.instant
            for commit in later
            if flink_marks.CHECKPOINT in commit.extra and commit.write.operation not in flink_marks.OF_BATCHES
        ]
        if profiled := {commit.write.instant for commit in later if commit.write.operation in flink_marks.PROFILED}:
            files = self.timeline_files()
            for instant in profiled.difference(found):
                inflight = (files.get(f"{instant}.{name}") for name in ("inflight", "deltacommit.inflight"))
                found += [instant for file in inflight if file and not file.bytes]
        return sorted(found)

    # -- files

    def partitions(self) -> list[str]:
        """Returns the partition paths. Raises PathOutsideTableError if one leads out of the table."""
        return self._listing.partitions()

    def files_in(self, partition: str) -> set[str]:
        """Returns the names of all files in the folder of a partition; empty without that folder."""
        return set(self.entries_in(partition))

    def entries_in(self, folder: str) -> dict[str, ListedFile]:
        """Returns the files and folders in a folder of the table, by name; empty without that folder."""
        return self.once(lambda: self.entries_of([folder])[folder], "entries", folder)

    def entries_of(self, folders: Sequence[str]) -> dict[str, dict[str, ListedFile]]:
        """Returns what `entries_in` does for each of these folders."""
        named = f"'{folders[0]}'" if len(folders) == 1 else f"{len(folders)} folders"
        with translated(f"listing {named}"):
            paths = [f"{self.base_path}/{folder}".rstrip("/") for folder in folders]
            return dict(zip(folders, listed_each(self.jvm, self.storage, paths), strict=True))

    def reading(self) -> AbstractContextManager[Any]:
        """Yields Hudi's reader of partitions and files (`HoodieTableMetadata`) as of now. Until the end of the context
        `partitions` and `file_slices` list with it, unless an instant completes."""
        return self._listing.reading()

    def file_slices(self, partitions: Collection[str] | None = None) -> list[FileSlice]:
        """Returns the latest file slices; lists them again only if an instant has completed since. Those of some
        `partitions` only are listed each time, and are not marked with late writes."""
        return self._listing.latest() if partitions is None else self._listing.latest_in(partitions)

    def file_slices_by_listing(self) -> list[FileSlice]:
        """Returns the latest file slices by listing the storage, whatever the metadata table says."""
        return self._listing.listed(from_metadata=False)

    def has_consistent_hashing(self) -> bool:
        """Returns whether the table has metadata of Hudi's consistent-hashing bucket index."""
        return self.once(self._has_metadata_of_hashing, "consistent hashing")

    def _has_metadata_of_hashing(self) -> bool:
        path = self.jvm.hudi.storage.StoragePath(f"{self.base_path}/{consistent_hashing.FOLDER}")
        with translated("checking for consistent hashing"):
            return bool(self.storage.exists(path))

    # -- bucket index

    def bucket_rules(self) -> BucketRules | None:
        """Returns each partition's number of buckets, by the hashing config or else by the declared index."""
        return hashing_config.rules_of(self)
