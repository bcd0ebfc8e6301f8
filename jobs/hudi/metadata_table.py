"""Hudi's metadata table (1.2.0): its files, its compaction, and its rebuild."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jobs.errors import HudiError
from jobs.format.file_names import parse_base_file_name
from jobs.format.index_definitions import (
    BLOOM_FILTERS,
    COLUMN_STATISTICS,
    EXPRESSION,
    FILES,
    METADATA_FOLDER,
    PARTITION_STATISTICS,
    RECORDS,
    SECONDARY,
    Indexes,
)
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi import archiver, file_listing, index_note, indexes
from jobs.hudi.client_part import ClientPart
from jobs.hudi.jvm import translated
from jobs.hudi.savepoints import RESTORE
from jobs.hudi.table import HudiTable
from jobs.kinds.metadata_table import MetadataTableFiles
from jobs.lock_errors import TableLockedError
from jobs.table_errors import MetadataTableBusyError, TableEmptyError

FOLDER = METADATA_FOLDER

# Partition statistics are computed from column statistics.
_IN_ORDER = (
    COLUMN_STATISTICS,
    BLOOM_FILTERS,
    RECORDS,
    PARTITION_STATISTICS,
)
_NAMED = (SECONDARY, EXPRESSION)
# A compaction is due at once, and cleaning follows it.
COMPACTED_AT_ONCE = {
    "hoodie.metadata.compact.trigger.strategy": "NUM_COMMITS",
    "hoodie.metadata.compact.max.delta.commits": "1",
    "hoodie.metadata.table.service.manager.enabled": "false",
    "hoodie.metadata.write.fail.on.table.service.failures": "true",
}


@dataclass(frozen=True)
class MetadataTableState:
    """The files of a metadata table, and its pending instants."""

    files: MetadataTableFiles
    pending: tuple[str, ...]


@contextmanager
def reader(table: HudiTable) -> Iterator[Any]:
    """Yields Hudi's reader of a table's metadata table (`HoodieBackedTableMetadata`)."""
    jvm = table.jvm
    config = jvm.hudi.common.config.HoodieMetadataConfig.newBuilder().enable(True).build()
    found = jvm.hudi.metadata.HoodieBackedTableMetadata(jvm.engine_context, table.storage, config, table.base_path)
    try:
        yield found
    finally:
        found.close()


def meta_client(table: HudiTable) -> Any:
    """Returns Hudi's `HoodieTableMetaClient` of a table's metadata table. Callers translate its errors."""
    builder = table.jvm.hudi.common.table.HoodieTableMetaClient.builder()
    return builder.setBasePath(f"{table.base_path}/{FOLDER}").setConf(table.jvm.storage_conf()).build()


def compacted_at(table: HudiTable) -> str | None:
    """Returns the instant of the metadata table's last compaction; None if there was none."""
    with translated("reading the metadata table's timeline"):
        return _last_compaction(meta_client(table).getActiveTimeline())


class MetadataTable(ClientPart):
    needs_client = False

    def compacted_at(self) -> str | None:
        """Returns the instant of its last compaction; None if there was none."""
        return compacted_at(self._table)

    def state(self) -> MetadataTableState:
        """Reads the latest file slices and the timeline of the metadata table."""
        hudi = self._jvm.hudi
        with translated("reading the metadata table"):
            meta = self._meta()
            timeline = meta.getActiveTimeline()
            pending = timeline.filterInflightsAndRequested().getInstants()
            slices = [
                each
                for name in sorted(self._table.metadata_partitions)
                for each in hudi.metadata.HoodieTableMetadataUtil.getPartitionLatestFileSlices(
                    meta, hudi.common.util.Option.empty(), name
                )
            ]
            files = MetadataTableFiles(
                commits=int(self._since_compaction(timeline).countInstants()),
                base_files=sum(bool(each.getBaseFile().isPresent()) for each in slices),
                log_files=sum(int(each.getLogFiles().count()) for each in slices),
                bytes=sum(int(each.getTotalFileSize()) for each in slices),
            )
            return MetadataTableState(files, tuple(sorted(str(each.requestedTime()) for each in pending)))

    def reaches_back_to(self, instant: str) -> bool:
        """Returns whether a restore to this instant can restore the metadata table: no base file of its list of files
        is later (`BaseHoodieWriteClient.restoreToSavepoint`, 1.2)."""
        folder = f"{self._table.base_path}/{METADATA_FOLDER}/{FILES}"
        names = file_listing.listed(self._jvm, self._table.storage, folder)
        found = [each.instant for name in names if (each := parse_base_file_name(name))]
        return all(each[: len(instant)] <= instant for each in found)

    def has_logs_of(self, instants: Collection[str]) -> bool:
        """Returns whether one of these instants of the table completed since the last compaction."""
        with translated("reading the metadata table's timeline"):
            commits = self._since_compaction(self._meta().getActiveTimeline())
            names = {str(each.requestedTime()) for each in self._jvm.items(commits.getInstantsAsStream())}
            return not names.isdisjoint(instants)

    def _since_compaction(self, timeline: Any) -> Any:
        """Returns the deltacommits that completed after the last compaction was planned. A writer plans and runs the
        compaction within its own deltacommit, which was requested before the compaction and completes after it."""
        last = _last_compaction(timeline)
        commits = timeline.getDeltaCommitTimeline().filterCompletedInstants()
        if last is None:
            return commits
        if self._table.version < WITH_COMPLETION_TIMES:
            return commits.findInstantsAfter(last)
        return commits.findInstantsModifiedAfterByCompletionTime(last)

    def archive_restores(self) -> None:
        """Moves the completed restores of the metadata table's own timeline to its history. A restore of the table
        leaves one, and Hudi's archiver goes beyond it. Then all logs count as logs of the latest slices: no clean
        deletes them, and readers open each of them. The lock must be held."""
        if self._table.version < WITH_COMPLETION_TIMES:
            return
        with translated("reading the metadata table's timeline"):
            meta = self._meta()
            restores = meta.getActiveTimeline().getRestoreTimeline().filterCompletedInstants().getInstantsAsStream()
            found = [str(each.requestedTime()) for each in self._jvm.items(restores)]
        archiver.move(self._jvm, self._config, meta, dict.fromkeys(found, RESTORE))

    def compact(self) -> None:
        """Runs Hudi's services of the metadata table: compaction, cleaning and archival. The lock must be held. The
        client must have been opened with `COMPACTED_AT_ONCE` (`HoodieBackedTableMetadataWriter.performTableServices`).
        Restores are archived first, so that Hudi sees to which slices its logs belong.

        Hudi dates the compaction before each pending instant of the data table, so writers in flight are not disturbed.
        """
        self.archive_restores()
        try:
            with translated("compacting the metadata table"):
                writer = self._writer(self._config)
                try:
                    writer.performTableServices(self._jvm.hudi.common.util.Option.empty(), True)
                finally:
                    writer.close()
        except TableLockedError as error:
            # Hudi takes no lock here: the runner of a pending compaction has a heartbeat that has not expired.
            raise MetadataTableBusyError(error.detail) from error

    def _meta(self) -> Any:
        return meta_client(self._table)

    def _writer(self, config: Any) -> Any:
        context, properties = self._jvm.engine_context, self._table.meta.getTableConfig()
        factory = self._jvm.hudi.metadata.SparkMetadataWriterFactory
        return factory.create(self._jvm.storage_conf(), config, context, properties)

    def rebuild(self, had: Indexes) -> None:
        """Deletes the metadata table, and builds the indexes that the table had, by listing the storage and reading the
        rows. Indexes of columns that are gone are dropped. The lock must be held, and no instant may be pending
        (`HoodieTableMetadataUtil`, `SparkMetadataWriterFactory`).
        """
        kept = self.buildable(had)
        with translated("deleting the metadata table"):
            # Each writer tries to build the indexes that have a definition.
            for name in sorted(indexes.definitions(self._table).keys() - kept.stored.keys()):
                self._table.meta.deleteIndexDefinition(name)
        self.delete()
        self.build_missing(kept)

    def delete(self) -> None:
        """Deletes the metadata table; the table's properties no longer name it. The lock must be held."""
        with translated("deleting the metadata table"):
            context = self._jvm.engine_context
            self._jvm.hudi.metadata.HoodieTableMetadataUtil.deleteMetadataTable(self._table.meta, context, False)

    def buildable(self, had: Indexes) -> Indexes:
        """Returns the indexes among these whose columns the table has."""
        try:
            fields = json.loads(self._table.schema())["fields"]
        except TableEmptyError:
            return had
        return had.on({field["name"]: _is_flat(field["type"]) for field in fields})

    def build_missing(self, had: Indexes) -> None:
        """Builds the indexes among these that the table lacks, and deletes the note (`index_note`). The lock must be
        held. Raises HudiError if one could not be built."""
        self.build(had)
        index_note.forget(self._table)

    def build(self, had: Indexes) -> None:
        """Builds the indexes among these that the table lacks, in the way of a writer that finds new indexes in its
        options. The lock must be held, and no write may be pending. Raises HudiError if one could not be built."""
        table = self._table
        table.reload()
        if missing := had.partitions - table.metadata_partitions:
            with translated("building the metadata table"):
                self._build_all(had, missing)
            table.reload()
            if missing := had.partitions - table.metadata_partitions:
                raise HudiError(f"Hudi has not built these indexes: {', '.join(sorted(missing))}")

    def _build_all(self, had: Indexes, missing: Collection[str]) -> None:
        meta = self._table.meta
        named = {
            name: each
            for name, each in self._definitions(had).items()
            if name.startswith(_NAMED) and name not in self._table.metadata_partitions
        }
        # Hudi builds a missing index with a definition only if no other one is missing.
        for name in named.keys() & indexes.definitions(self._table).keys():
            meta.deleteIndexDefinition(name)
        self._build([name for name in _IN_ORDER if name in missing], had)
        for name in sorted(named.keys() & missing):
            self._table.meta.buildIndexDefinition(named[name])
            self._build([name], had)
        for definition in named.values():
            self._table.meta.buildIndexDefinition(definition)

    def _build(self, partitions: Sequence[str], had: Indexes) -> None:
        """Builds these partitions, and the list of files if it is missing.

        Builds them at the instant of the table's last write. At the instant of an indexing, Hudi would write all
        partitions with this one instant, and each write would first roll back the write before, although its index is
        complete (`generateUniqueInstantTime` of `HoodieBackedTableMetadataWriter`, Hudi 1.2.0).
        """
        self._table.reload()
        hudi, context, meta = self._jvm.hudi, self._jvm.engine_context, self._table.meta
        last = meta.getActiveTimeline().getWriteTimeline().filterCompletedInstants().lastInstant()
        instant = (
            last.get().requestedTime() if last.isPresent() else hudi.metadata.HoodieTableMetadata.SOLO_COMMIT_TIMESTAMP
        )
        wanted = self._jvm.java.java.util.ArrayList()
        for name in partitions:
            part = hudi.avro.model.HoodieIndexPartitionInfo.newBuilder().setVersion(1).setMetadataPartitionPath(name)
            wanted.add(part.setIndexUptoInstant(instant).build())
        writer = self._writer(self._config_for(had, partitions))
        try:
            writer.buildMetadataPartitions(context, wanted, instant)
        finally:
            writer.close()

    def _config_for(self, had: Indexes, building: Collection[str]) -> Any:
        """Returns the configuration of a client that keeps exactly the indexes `had`, and builds those in the
        partitions `building`."""
        options = {**indexes.options(self._table, had), **had.sizes(building), "hoodie.metadata.enable": "true"}
        builder = self._jvm.hudi.config.HoodieWriteConfig.newBuilder().withProps(self._config.getProps())
        return builder.withProps(self._jvm.map(options)).build()

    def _definitions(self, had: Indexes) -> dict[str, Any]:
        stored = json.dumps({"indexDefinitions": had.stored})
        return dict(self._jvm.hudi.common.model.HoodieIndexMetadata.fromJson(stored).getIndexDefinitions())


def _is_flat(kind: Any) -> bool:
    """Returns whether an Avro type, or each member of a union, has no parts."""
    kinds = kind if isinstance(kind, list) else [kind]
    return not any(isinstance(each, dict) and each["type"] in ("array", "map", "record") for each in kinds)


def _last_compaction(timeline: Any) -> str | None:
    last = timeline.getCommitAndReplaceTimeline().filterCompletedInstants().lastInstant()
    return str(last.get().requestedTime()) if last.isPresent() else None
