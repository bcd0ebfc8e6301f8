"""Hudi's write client (`SparkRDDWriteClient`, 1.2.0): the only thing that ever changes a table."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from py4j.java_gateway import get_java_class

from jobs.errors import JobError, PlanTakenError
from jobs.format.instants import wall_clock
from jobs.hudi import hashing_config
from jobs.hudi.jvm import translated
from jobs.hudi.options import bucket_index_options, client_options
from jobs.hudi.table import REPLACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from jobs.format.written_file import WrittenFile
    from jobs.hudi.table import FileSlice, HudiTable

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CleanSummary:
    """What a clean did: its instant, the files it deleted, and the instants of dead writers it rolled back."""

    instant: str
    deleted_files: int
    failed_deletes: int


class WriteClient:
    """One Hudi client with the options of `jobs.hudi.options`; `mode` is how it shares the table with writers.

    It takes the table's lock never by itself: either the lock is held around it, or lent to it.
    """

    def __init__(self, table: HudiTable, mode: Mapping[str, str], extra: Mapping[str, str] | None = None) -> None:
        self._table = table
        self._jvm = table.jvm
        options = client_options(
            table_name=table.name,
            table_version=table.version,
            metadata_partitions=table.metadata_partitions,
            owner_options=table.declared.hudi_options,
            beside_flink=table.may_have_flink is not None,
        )
        if table.declared.index:
            rules = table.bucket_rules()
            expressions = str(rules) if rules else None
            options |= bucket_index_options(table.declared.index, table.record_key_fields, expressions)
        options |= {**mode, **(extra or {})}
        self._schema = table.schema()
        with translated("opening a Hudi client"):
            builder = self._jvm.hudi.config.HoodieWriteConfig.newBuilder()
            builder = builder.withPath(table.base_path).withSchema(self._schema).withProps(self._jvm.map(options))
            self._config = builder.build()
            self._client: Any = self._jvm.hudi.client.SparkRDDWriteClient(self._jvm.engine_context(), self._config)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Closing a client whose lock attempt failed deletes the *holder's* lock file (FileSystemBasedLockProvider 1.2).
        if error is None:
            with translated("closing a Hudi client"):
                self._client.close()
            return
        # Its timers would renew the heartbeat of an instant that is given up, once a minute until the worker ends.
        with suppress(JobError, OSError), translated("stopping heartbeats"):
            self._client.getHeartbeatClient().close()

    # -- Hudi's own table services

    def schedule_compaction(self) -> str | None:
        """Plans a compaction of every file group with logs; None when there is nothing to compact."""
        with translated("scheduling the compaction"):
            return _value(self._client.scheduleCompaction(self._jvm.nothing()))

    def begin_compaction(self, instant: str) -> Any:
        """Takes a plan in hand; the lock must be held. What it returns is for the two methods below.

        Raises `PlanTakenError` while another runner shows signs of life: two on one plan corrupt a table (Hudi #18012).
        """
        with translated("beginning the compaction"):
            if self.has_heartbeat(instant) and not self.is_dead(instant):
                raise PlanTakenError(f"instant {instant}")
            self._client.getHeartbeatClient().start(instant)
            return self._client.compact(instant, False)

    def execute_compaction(self, begun: Any) -> None:
        """Writes the new base files. The long part, for which no lock is needed; Hudi keeps the statuses."""
        with translated("compacting"):
            begun.getWriteStatuses().count()

    def commit_compaction(self, instant: str, begun: Any) -> None:
        """Completes the instant; the lock must be held."""
        with translated("committing the compaction"):
            self._present_schema()
            self._client.commitCompaction(instant, begun, self._jvm.nothing())
            self._client.getHeartbeatClient().stop(instant)

    def _present_schema(self) -> str:
        """Makes the commit name the table's schema as of now, not as of when the client was opened.

        Else it would take back the columns that somebody has added meanwhile: writers, for which the new column has no
        schema then, fail. Whatever the extra metadata says, Hudi takes the configuration's
        (`CommitUtils.buildMetadata`).
        """
        self._table.reload()
        schema = self._table.schema()
        self._client.getConfig().setSchema(schema)
        return schema

    def schedule_clustering(self) -> str | None:
        with translated("scheduling the clustering"):
            return _value(self._client.scheduleClustering(self._jvm.nothing()))

    def cluster(self, instant: str) -> None:
        with translated("clustering"):
            self._client.cluster(instant, True)

    def clean(self) -> CleanSummary | None:
        """Deletes what the options say is not needed any more; None when there is nothing to delete."""
        with translated("cleaning"):
            metadata = self._client.clean()
            if metadata is None:
                return None
            failed = sum(len(item.getFailedDeleteFiles()) for item in metadata.getPartitionMetadata().values())
            return CleanSummary(str(metadata.getStartCleanTime()), int(metadata.getTotalFilesDeleted()), failed)

    def files_to_clean(self) -> dict[str, list[str]]:
        """What `clean` would delete now: partition path -> absolute paths. Nothing is written (`CleanPlanner`)."""
        with translated("planning the clean"):
            context = self._jvm.engine_context()
            table = self._jvm.hudi.table.HoodieSparkTable.create(self._config, context, self._table.meta)
            planner = self._jvm.hudi.table.action.clean.CleanPlanner(context, table, self._config)
            earliest = planner.getEarliestCommitToRetain()
            found = {}
            for partition in self._jvm.read(planner.getPartitionPathsToClean(earliest)):
                infos = self._jvm.read(planner.getDeletePaths(partition, earliest).getRight())
                found[partition] = [info["filePath"] for info in infos]
            return {partition: files for partition, files in found.items() if files}

    # -- instants of dead writers

    def rollback(self, instant: str) -> None:
        """Undoes a pending instant: its data files, its markers, its entries on the timeline, its hashing config.

        Hudi would undo a completed one just as well; that one is left alone. Call it with the lock held, so that
        nothing completes in between.
        """
        if self._table.state_of(instant) == "COMPLETED":
            logger.warning("%s has completed meanwhile, and is not rolled back", instant)
            return
        with translated(f"rolling back {instant}"):
            self._client.rollback(instant)
            self.forget_heartbeat(instant)
        hashing_config.remove(self._table, instant)

    def rolled_back_but_writing(self) -> dict[str, str]:
        """Instants that were rolled back, and by which instant, that have markers all the same.

        Their live writers went on for a while.
        """
        with translated("looking for late markers"):
            meta, paths = self._table.meta, self._jvm.hudi.storage.StoragePath
            folder = paths(meta.getTempFolderPath())
            if not meta.getStorage().exists(folder):
                return {}
            entries = self._jvm.items(meta.getStorage().listDirectEntries(folder).stream())
            marked = {str(entry.getPath().getName()) for entry in entries if entry.isDirectory()}
        return {instant: by for instant, by in self.rolled_back().items() if instant in marked} if marked else {}

    def rolled_back(self) -> dict[str, str]:
        """Instants that were rolled back, and by which instant, by the active timeline.

        A table service's plan is not gone when it is rolled back, but begun again, perhaps at this moment; so what the
        timeline has, or had until it was archived, is none of them.
        """
        with translated("reading the rollbacks"):
            timeline = self._table.meta.reloadActiveTimeline()
            done = timeline.getRollbackTimeline().filterCompletedInstants()
            undone: dict[str, str] = {}
            for item in self._jvm.items(done.getInstantsAsStream()):
                for instant in self._jvm.read(timeline.readRollbackMetadata(item).getCommitsRollback()):
                    undone[instant] = str(item.requestedTime())
            still_there = {str(item.requestedTime()) for item in self._jvm.items(timeline.getInstantsAsStream())}
            gone = sorted(undone.keys() - still_there)
        return {instant: undone[instant] for instant in gone if not self._table.was_archived(instant)}

    def marked_files(self, instant: str) -> set[str]:
        """The data files, relative to the base path, that a writer has announced by markers of any type.

        A writer at work goes on to announce files, and rewrites markers while they are read here; so one that is cut
        off is passed over, and an error that Hudi raises is a reason to try again.
        """
        with translated(f"reading the markers of {instant}"):
            folder = self._jvm.hudi.storage.StoragePath(self._table.meta.getMarkerFolderPath(instant))
            if not self._table.meta.getStorage().exists(folder):
                return set()
            context = self._jvm.engine_context()
            table = self._jvm.hudi.table.HoodieSparkTable.create(self._config, context, self._table.meta)
            rollbacks = self._jvm.hudi.table.marker.MarkerBasedRollbackUtils
            markers = self._jvm.read(rollbacks.getAllMarkerPaths(table, context, instant, 1))
        return {marker.rpartition(".marker.")[0] for marker in markers} - {""}

    def files_of(self, undone: Mapping[str, str]) -> dict[str, set[str]]:
        """Data files of these instants that are there although they were rolled back, relative to the base path.

        Found by their names, whether there are markers or not; and logs of before table version 8, whose names do not
        tell it, if they were written after the rollback. Lists every partition.
        """
        found: dict[str, set[str]] = {}
        suspicious = min((wall_clock(by) for by in undone.values()), default=None)
        if suspicious is None:
            return found
        with translated("listing the partitions"):
            storage, paths = self._table.meta.getStorage(), self._jvm.hudi.storage.StoragePath
            for partition in self._table.partitions():
                folder = paths(f"{self._table.base_path}/{partition}" if partition else self._table.base_path)
                for entry in self._jvm.items(storage.listDirectEntries(folder).stream()):
                    name = str(entry.getPath().getName())
                    relative = f"{partition}/{name}" if partition else name
                    if ".log." in name and self._table.version < 8:
                        if self._table.moment(int(entry.getModificationTime())) >= suspicious:
                            for instant in undone:
                                found.setdefault(instant, set()).add(relative)
                    else:
                        for instant in [each for each in undone if f"_{each}." in name]:
                            found.setdefault(instant, set()).add(relative)
        return found

    def remove_late_files(self, instant: str, files: Iterable[str]) -> int:
        """Removes those of these files that a live writer has written after its instant was rolled back.

        Returns how many it found. The files are relative to the base path.
        """
        with translated(f"removing late files of {instant}"):
            storage, base_path = self._table.meta.getStorage(), self._table.meta.getBasePath()
            paths = [self._jvm.hudi.storage.StoragePath(base_path, file) for file in files]
            late = [path for path in paths if storage.exists(path) and self._is_written_by(instant, path)]
            return sum(bool(storage.deleteFile(path)) for path in late)

    def _is_written_by(self, instant: str, path: Any) -> bool:
        """By the file's name; or by its blocks, since a log's name does not tell before table version 8.

        Such a name may return: a writer that starts again makes the same write token, and takes the free log version.
        A log that cannot be read tells nothing, and adds nothing to the table either.
        """
        name = str(path.getName())
        if instant in name:
            return True
        with suppress(JobError), translated(f"reading {name}", expected=JobError):
            return self._instants_in(path) == {instant}
        return False

    def _instants_in(self, path: Any) -> set[str | None]:
        """The instants that the blocks of a log file say they were written by; None of a corrupt one."""
        log = self._jvm.hudi.common.table.log
        reader = log.HoodieLogFormat.newReader(
            self._table.meta.getStorage(), self._jvm.hudi.common.model.HoodieLogFile(path), None
        )
        try:
            key = log.block.HoodieLogBlock.HeaderMetadataType.valueOf("INSTANT_TIME")
            found: set[str | None] = set()
            while reader.hasNext():
                found.add(reader.next().getLogBlockHeader().get(key))
            return found
        finally:
            reader.close()

    def finish_rollback(self, instant: str) -> None:
        """Completes the rollback of an instant that is gone from the timeline, if it was cut short right after that.

        Hudi's own `rollback` does not find such a one of a replacecommit: to tell it from clustering it wants to read
        the instant that is gone (`BaseHoodieTableServiceClient.getPendingRollbackInfos`).
        """
        with translated(f"finishing the rollback of {instant}"):
            meta = self._table.meta
            pending = meta.reloadActiveTimeline().filterPendingRollbackTimeline()
            for item in self._jvm.items(pending.getInstantsAsStream()):
                plan = self._jvm.hudi.table.action.rollback.RollbackUtils.getRollbackPlan(meta, item)
                if str(plan.getInstantToRollback().getCommitTime()) == instant:
                    info = self._jvm.some(self._jvm.hudi.common.HoodiePendingRollbackInfo(item, plan))
                    self._client.getTableServiceClient().rollback(instant, info, False, False)

    def tidy_up(self, instant: str) -> None:
        """Removes markers and heartbeat of an instant that was completed or rolled back by a worker that then died."""
        with translated("removing markers"):
            folder = self._jvm.hudi.storage.StoragePath(self._table.meta.getMarkerFolderPath(instant))
            storage = self._table.meta.getStorage()
            if storage.exists(folder):
                storage.deleteDirectory(folder)
        self.forget_heartbeat(instant)

    def forget_heartbeat(self, instant: str) -> None:
        """Removes the heartbeat of a dead attempt; Hudi would take it for alive for two more minutes."""
        with translated("removing a heartbeat"):
            if not self.has_heartbeat(instant):
                return
            self._jvm.hudi.client.heartbeat.HeartbeatUtils.deleteHeartbeatFile(
                self._table.meta.getStorage(), self._table.meta.getBasePath().toString(), instant
            )

    def is_dead(self, instant: str) -> bool:
        """Whether a writer that does send heartbeats has stopped sending them for this instant.

        False for an instant without any heartbeat: see `dead_writes` in `jobs.protocol.writers`.
        """
        with translated("reading a heartbeat"):
            return self.has_heartbeat(instant) and bool(self._client.getHeartbeatClient().isHeartbeatExpired(instant))

    def has_heartbeat(self, instant: str) -> bool:
        with translated("looking for a heartbeat"):
            heartbeats = self._jvm.hudi.client.heartbeat.HoodieHeartbeatClient
            base_path, storage = self._table.meta.getBasePath().toString(), self._table.meta.getStorage()
            return bool(heartbeats.heartbeatExists(storage, base_path, instant))

    # -- replacing file groups with a replacecommit

    def new_instant(self) -> str:
        """An instant of now, later than any other; the lock must be held. Nothing is on the timeline yet."""
        with translated("making an instant"):
            return str(self._client.createNewInstantTime(False))

    def start_replacement(self, instant: str, operation: str) -> None:
        """Starts a replacecommit of this `WriteOperationType`: it is REQUESTED. The lock must still be held.

        As `BaseHoodieWriteClient.startCommit`, which takes no instant that was made (and reported) before.
        """
        with translated("starting the replacecommit"):
            self._operation = getattr(self._jvm.hudi.common.model.WriteOperationType, operation)
            self._client.getHeartbeatClient().start(instant)
            self._table.meta.getActiveTimeline().createRequestedCommitWithReplaceMetadata(instant, REPLACE)

    def begin_replacement(self, instant: str) -> None:
        """REQUESTED -> INFLIGHT: from now on files are written."""
        with translated("starting the replacecommit"):
            meta = self._table.meta
            meta.reloadActiveTimeline()
            self._client.preWrite(instant, self._operation, meta)
            metadata = self._jvm.hudi.common.model.HoodieReplaceCommitMetadata()
            metadata.setOperationType(self._operation)
            states = self._jvm.hudi.common.table.timeline.HoodieInstant.State
            requested = meta.createNewInstant(states.valueOf("REQUESTED"), REPLACE, instant)
            meta.getActiveTimeline().transitionReplaceRequestedToInflight(requested, self._jvm.some(metadata))

    def commit_replacement(
        self,
        instant: str,
        written: Iterable[WrittenFile],
        replaced: Iterable[FileSlice],
        extra_metadata: Mapping[str, str],
    ) -> None:
        """Completes the replacecommit: `written` takes the place of the file groups of `replaced`, atomically.

        Files of this instant that are not in `written` vanish: Hudi finds their markers.
        """
        schema = self._present_schema()
        metadata: dict[str, Any] = {"partitionToWriteStats": {}, "partitionToReplaceFileIds": {}}
        for file in written:
            metadata["partitionToWriteStats"].setdefault(file.partition, []).append(_write_stat(file))
        for item in replaced:
            metadata["partitionToReplaceFileIds"].setdefault(item.partition, []).append(item.file_id)
        with translated("committing"):
            # By way of Hudi's JSON: one call, and not one for each member of each file.
            kind = self._jvm.hudi.common.model.HoodieReplaceCommitMetadata
            described = kind.fromJsonString(json.dumps(metadata), get_java_class(kind))
            extra = self._jvm.some(self._jvm.map({**extra_metadata, "schema": schema}))
            stats, gone = described.getWriteStats(), described.getPartitionToReplaceFileIds()
            self._client.commitStats(instant, stats, extra, REPLACE, gone, self._jvm.nothing())


def _write_stat(file: WrittenFile) -> dict[str, Any]:
    """Hudi's `HoodieWriteStat` of a new file group's first base file."""
    return {
        "partitionPath": file.partition,
        "fileId": file.file_id,
        "path": f"{file.partition}/{file.file_name}" if file.partition else file.file_name,
        "prevCommit": "null",
        "numWrites": file.rows,
        "numInserts": file.rows,
        "numUpdateWrites": 0,
        "numDeletes": 0,
        "totalWriteBytes": file.bytes,
        "fileSizeInBytes": file.bytes,
        "totalWriteErrors": 0,
    }


def _value(option: Any) -> str | None:
    return str(option.get()) if option.isPresent() else None
