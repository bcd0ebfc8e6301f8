"""Hudi's write client (`SparkRDDWriteClient`, 1.2.0), through which all changes of a table go."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from typing import Any, TypeVar

from py4j.java_gateway import get_java_class

from jobs.contract import Json, Problem
from jobs.errors import JobError, refuse
from jobs.format.written_file import WrittenFile
from jobs.hudi import ended_instant, hashing_metadata, indexes, lent_reader, plan_checks, write_stats
from jobs.hudi.archiver import Archiver
from jobs.hudi.cleaner import Cleaner
from jobs.hudi.client_part import ClientPart, present_schema
from jobs.hudi.clusterings import Clusterings
from jobs.hudi.heartbeats import has_expired
from jobs.hudi.indexer import Indexer
from jobs.hudi.jvm import translated
from jobs.hudi.keyed_writes import KeyedWrites
from jobs.hudi.late_files import LateFiles
from jobs.hudi.metadata_rollbacks import continued
from jobs.hudi.metadata_table import MetadataTable
from jobs.hudi.options import WITH_OPERATIONS, bucket_index_options, client_options
from jobs.hudi.partition_ttl import PartitionTtl
from jobs.hudi.plan_paths import check_plans
from jobs.hudi.plan_withdrawal import PlanWithdrawal
from jobs.hudi.records import REPLACE, FileSlice
from jobs.hudi.savepoints import Savepoints
from jobs.hudi.table import HudiTable
from jobs.hudi.upgrader import Upgrader
from jobs.hudi.write_stats import WriteStat
from jobs.problems.bucket_indexes import HASH_FIELDS_NOT_IN_KEY, OF_ANOTHER_KEY
from jobs.tracing import span

logger = logging.getLogger(__name__)

_ROLLBACK_PLAN = ".rollback.requested"
_Part = TypeVar("_Part", bound=ClientPart)


def _part(kind: type[_Part]) -> cached_property[_Part]:
    """Returns a property of `WriteClient` that makes a part of the client when it is first needed."""

    def made(opened: WriteClient) -> _Part:
        return kind(opened._table, opened._config, opened._client if kind.needs_client else None)

    return cached_property(made)


class WriteClient(AbstractContextManager["WriteClient"]):
    """One Hudi client with the options of `jobs.hudi.options`; `mode` is how it shares the table with writers.

    The client never takes the table's lock by itself: the caller holds the lock, or the lock bridge lends it.
    """

    def __init__(self, table: HudiTable, mode: Mapping[str, str], extra: Mapping[str, str] | None = None) -> None:
        self._table = table
        self._jvm = table.jvm
        self._indexes = indexes.state(table)
        options = client_options(table)
        if table.declared.index:
            rules = table.bucket_rules()
            expressions = str(rules) if rules else None
            options |= bucket_index_options(table.declared.index, table.record_key_fields, expressions)
        options |= {**mode, **(extra or {})}
        self._options = options

    # Hudi's own client is opened when it is first needed: most searches for dead writers find none.

    @cached_property
    def _config(self) -> Any:
        schema, options = self._table.schema(), self._options
        refuse(self._of_hash_fields())
        if self._table.may_merge and self._table.records_operations:
            options = {**options, **WITH_OPERATIONS}
        with translated("opening a Hudi client"):
            builder = self._jvm.hudi.config.HoodieWriteConfig.newBuilder().withPath(self._table.base_path)
            return builder.withSchema(schema).withProps(self._jvm.map(options)).build()

    def _of_hash_fields(self) -> list[Problem]:
        unknown, key = self._table.hash_fields_not_in_key, ", ".join(self._table.record_key_fields)
        if not unknown:
            return []
        detail = f"hash fields {', '.join(unknown)}; the record key is {key or 'generated'}"
        return [HASH_FIELDS_NOT_IN_KEY.because(detail, hint=OF_ANOTHER_KEY)]

    @cached_property
    def _client(self) -> Any:
        config = self._config
        with translated("opening a Hudi client"):
            return self._jvm.hudi.client.SparkRDDWriteClient(self._jvm.engine_context, config)

    cleaner = _part(Cleaner)
    archiver = _part(Archiver)
    metadata_table = _part(MetadataTable)
    withdrawal = _part(PlanWithdrawal)
    savepoints = _part(Savepoints)
    partition_ttl = _part(PartitionTtl)
    upgrader = _part(Upgrader)
    indexer = _part(Indexer)
    keyed_writes = _part(KeyedWrites)

    @cached_property
    def clusterings(self) -> Clusterings:
        return Clusterings(self._table, self._config, self._client, self._indexes)

    @cached_property
    def late_files(self) -> LateFiles:
        return LateFiles(self._table)

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        if "_client" not in self.__dict__:
            return
        # Closing a client whose lock attempt failed deletes the *holder's* lock file (FileSystemBasedLockProvider 1.2).
        if error is None:
            with translated("closing a Hudi client"):
                self._client.close()
            return
        # The client's timers would renew the heartbeat of an abandoned instant once a minute until the worker ends.
        with suppress(JobError, OSError), translated("stopping heartbeats"):
            self._client.getHeartbeatClient().close()
        with suppress(JobError, OSError), translated("stopping the timeline server"):
            if (server := self._client.getTimelineServer()).isPresent():
                server.get().stopForBasePath(self._table.base_path)

    # -- Hudi's own table services

    def schedule_compaction(self) -> str | None:
        """Schedules a compaction of every file group with logs; returns None when there is nothing to compact."""
        self._table.clock.verify()
        with translated("scheduling the compaction"):
            return lent_reader.scheduled_compaction(self._table, self._config, self._client)

    def begin_compaction(self, instant: str) -> Any:
        """Starts to execute a plan that has no runner (`jobs.protocol.plan_owner`); the lock must be held.

        Hudi first rolls back files that another runner has written for the plan. The methods below take the returned
        object. Raises the errors of `check_compaction`.
        """
        plan_checks.check_compaction(self._table, instant)
        with continued(self._table, instant), translated("beginning the compaction"):
            self.start_heartbeat(instant)
            if self._table.indexes_of_keys:
                # Spark's tasks then write the indexes of keys as well, and the functions for that need real RDDs.
                return self._client.compact(instant, False)
            return self._jvm.engine_context.beginCompaction(self._client, instant)

    def execute_compaction(self, begun: Any) -> list[WriteStat]:
        """Writes the new base files, which takes long and needs no lock. Hudi keeps the statuses."""
        with translated("compacting"):
            return write_stats.written_by(self._jvm, self._client, begun)

    def take_compacted(self, begun: Any, stats: Sequence[Json]) -> list[WriteStat]:
        """Prepares the compaction for a commit with files that were not written by Hudi. `stats` are their statistics
        as JSON."""
        with translated("taking over the compacted files"):
            return write_stats.put(self._jvm, begun, stats)

    def commit_compaction(self, instant: str, begun: Any, require: Callable[[], None] = lambda: None) -> None:
        """Completes the instant; the lock must be held. Raises IndexesChangedError as `commit_replacement` does.

        `require` raises if another attempt has begun the plan anew. The check comes last, because Hudi (1.2.0) would
        complete a completed instant once more.
        """
        self._table.clock.verify(instant)
        commit = span("commit", hudi__instant=instant)
        with translated("committing the compaction"), commit:
            present_schema(self._table, self._client)
            indexes.require_state(self._table, self._indexes)
            require()
            self._client.commitCompaction(instant, begun, self._jvm.nothing())
            self._client.getHeartbeatClient().stop(instant)

    # -- instants of dead writers

    def rollback(self, instant: str, require: Callable[[], None] = lambda: None) -> None:
        """Rolls back a pending instant: its data files, markers, entries on the timeline, hashing config or metadata.
        A completed instant is not rolled back here, although Hudi would do so. The lock must be held, so that nothing
        completes in between; `require` raises if it is lost.
        """
        if self._table.state_of(instant) == "COMPLETED":
            logger.warning("%s has completed in the meantime and is not rolled back", instant)
            return
        check_plans(self._table, "rollback")
        self.late_files.marked_files(instant)
        # Hudi ignores the hashing files of a pending instant, but may follow them once the instant is gone.
        hashing_metadata.forget(self._table, instant)
        require()
        with continued(self._table, instant), translated(f"rolling back {instant}"):
            self._client.rollback(instant)
            self.forget_heartbeat(instant)

    def roll_back(self, instant: str, rollback: str) -> None:
        """Rolls back an instant, completed or not, as instant `rollback`; or continues that rollback. The lock must be
        held.

        Hudi makes a completed instant inflight first, so no interrupted rollback leaves the instant completed.
        """
        check_plans(self._table, "rollback")
        if self._table.state_of(instant) is None:
            self.finish_rollback(instant)
        else:
            self.late_files.marked_files(instant)
            with continued(self._table, instant), translated(f"rolling back {instant}"):
                self._client.rollback(instant, rollback)
        self.tidy_up(instant)
        hashing_metadata.forget(self._table, instant)

    def pending_rollbacks(self) -> dict[str, str]:
        """Returns the unfinished rollbacks -> the instants that they roll back."""
        with translated("reading the pending rollbacks"):
            return {
                str(item.requestedTime()): str(plan.getInstantToRollback().getCommitTime())
                for item, plan in self._rollback_plans()
            }

    def empty_rollbacks(self) -> frozenset[str]:
        """Returns the pending rollbacks whose plan is an empty file. Their clients died while they wrote the plan,
        before they rolled anything back."""
        pending = frozenset(item.requested for item in self._table.pending() if item.action == "rollback")
        if not pending:
            return frozenset()
        plans = {name: each for name, each in self._table.timeline_files().items() if name.endswith(_ROLLBACK_PLAN)}
        return pending & {name.removesuffix(_ROLLBACK_PLAN) for name, each in plans.items() if not each.bytes}

    def _rollback_plans(self) -> Iterator[tuple[Any, Any]]:
        """Yields the unfinished rollbacks with their plans, except for empty plans. Hudi deletes these when it rolls
        the next instant back (`BaseHoodieTableServiceClient.getPendingRollbackInfos`)."""
        meta, empty = self._table.meta, self.empty_rollbacks()
        pending = meta.reloadActiveTimeline().filterPendingRollbackTimeline()
        for item in self._jvm.items(pending.getInstantsAsStream()):
            if str(item.requestedTime()) not in empty:
                yield item, self._jvm.hudi.table.action.rollback.RollbackUtils.getRollbackPlan(meta, item)

    def finish_rollback(self, instant: str) -> None:
        """Completes a rollback that was interrupted right after it had removed the instant from the timeline. Hudi's
        own `rollback` does not find such a rollback of a replacecommit, because it tries to read the removed instant to
        see whether it was a clustering (`BaseHoodieTableServiceClient.getPendingRollbackInfos`)."""
        check_plans(self._table, "rollback")
        with continued(self._table, instant), translated(f"finishing the rollback of {instant}"):
            for item, plan in self._rollback_plans():
                if str(plan.getInstantToRollback().getCommitTime()) == instant:
                    info = self._jvm.some(self._jvm.hudi.common.HoodiePendingRollbackInfo(item, plan))
                    self._client.getTableServiceClient().rollback(instant, info, False, False)

    def tidy_up(self, instant: str) -> None:
        """Removes markers and heartbeat of an instant that a worker completed or rolled back before it died."""
        ended_instant.tidy_up(self._table, instant)

    def start_heartbeat(self, instant: str) -> None:
        """Sends heartbeats until `end_heartbeat`, or until the client is closed."""
        with translated("starting a heartbeat"):
            self._client.getHeartbeatClient().start(instant)

    def end_heartbeat(self, instant: str) -> None:
        """Ends the heartbeat that this client sends for an instant."""
        with translated("ending a heartbeat"):
            self._client.getHeartbeatClient().stop(instant)

    def forget_heartbeat(self, instant: str) -> None:
        """Removes the heartbeat of a dead attempt; Hudi would consider it alive for two more minutes."""
        ended_instant.forget_heartbeat(self._table, instant)

    def is_dead(self, instant: str) -> bool:
        """Returns whether a writer that sends heartbeats has stopped sending them for this instant. An instant without
        any heartbeat is not dead in this sense: see `dead_writes` in `jobs.protocol.writers`."""
        return has_expired(self._table, instant)

    def has_heartbeat(self, instant: str) -> bool:
        return ended_instant.has_heartbeat(self._table, instant)

    # -- replacing file groups with a replacecommit

    def new_instant(self) -> str:
        """Returns a new instant, later than any other and not yet on the timeline. The lock must be held."""
        self._table.clock.verify()
        with translated("making an instant"):
            return str(self._client.createNewInstantTime(False))

    def start_replacement(self, instant: str, operation: str = "CLUSTER") -> None:
        """Starts a replacecommit of this `WriteOperationType`, as REQUESTED. The lock must still be held.

        CLUSTER is also the operation type of a change of the number of buckets (see `RESCALED_KEY`). This method does
        the same as `BaseHoodieWriteClient.startCommit`, which does not accept an existing instant.
        """
        with translated("starting the replacecommit"):
            self._operation = getattr(self._jvm.hudi.common.model.WriteOperationType, operation)
            self.start_heartbeat(instant)
            self._table.meta.getActiveTimeline().createRequestedCommitWithReplaceMetadata(instant, REPLACE)

    def begin_replacement(self, instant: str) -> None:
        """Makes the instant INFLIGHT. Files may be written after this."""
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
        """Completes the replacecommit: `written` replaces the file groups of `replaced`, atomically.

        Files of this instant that are not in `written` are deleted, because Hudi finds their markers. Raises
        IndexesChangedError if the table's indexes have changed since the client was opened.
        """
        self._table.clock.verify(instant)
        schema = present_schema(self._table, self._client)
        indexes.require_state(self._table, self._indexes)
        metadata: dict[str, Any] = {"partitionToWriteStats": {}, "partitionToReplaceFileIds": {}}
        for file in written:
            metadata["partitionToWriteStats"].setdefault(file.partition, []).append(write_stats.of_new_file(file))
        for item in replaced:
            metadata["partitionToReplaceFileIds"].setdefault(item.partition, []).append(item.file_id)
        commit = span("commit", hudi__instant=instant)
        with translated("committing"), commit:
            # Passing the metadata as JSON takes one call of the JVM instead of one for each field of each file.
            kind = self._jvm.hudi.common.model.HoodieReplaceCommitMetadata
            described = kind.fromJsonString(json.dumps(metadata), get_java_class(kind))
            extra = self._jvm.some(self._jvm.map({**extra_metadata, "schema": schema}))
            stats, gone = described.getWriteStats(), described.getPartitionToReplaceFileIds()
            self._client.commitStats(instant, stats, extra, REPLACE, gone, self._jvm.nothing())
