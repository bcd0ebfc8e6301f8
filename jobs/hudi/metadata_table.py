"""Hudi's metadata table (1.2.0): when it was compacted, and how it is built anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.hudi import indexes
from jobs.hudi.jvm import translated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.hudi.table import HudiTable

FOLDER = ".hoodie/metadata"

# Statistics of partitions are made of those of columns.
_IN_ORDER = (indexes.COLUMN_STATISTICS, indexes.BLOOM_FILTERS, indexes.RECORDS, indexes.PARTITION_STATISTICS)
_NAMED = (indexes.SECONDARY, indexes.EXPRESSION)


class MetadataTable:
    """The metadata table of one table. `config` is the `HoodieWriteConfig` of a client."""

    def __init__(self, table: HudiTable, config: Any) -> None:
        self._table = table
        self._jvm = table.jvm
        self._config = config

    def compacted_at(self) -> str | None:
        """Returns the instant of its last compaction; None without one."""
        with translated("reading the metadata table's timeline"):
            builder = self._jvm.hudi.common.table.HoodieTableMetaClient.builder()
            builder = builder.setBasePath(f"{self._table.base_path}/{FOLDER}")
            timeline = builder.setConf(self._jvm.storage_conf()).build().getActiveTimeline()
            last = timeline.getCommitAndReplaceTimeline().filterCompletedInstants().lastInstant()
            return str(last.get().requestedTime()) if last.isPresent() else None

    def rebuild(self) -> None:
        """Deletes it, and builds the partitions that it had, by listing the storage and reading the rows.

        The lock must be held, and no instant be pending (`HoodieTableMetadataUtil`, `SparkMetadataWriterFactory`).
        """
        had = self._table.metadata_partitions
        with translated("deleting the metadata table"):
            context = self._jvm.engine_context
            self._jvm.hudi.metadata.HoodieTableMetadataUtil.deleteMetadataTable(self._table.meta, context, False)
        self.build_missing(had)

    def build_missing(self, had: frozenset[str]) -> None:
        """Builds those of these partitions that the table has no more. The lock must be held."""
        table = self._table
        table.reload()
        missing = had - table.metadata_partitions
        if not missing:
            return
        with translated("building the metadata table"):
            built = table.metadata_partitions
            named = {
                name: each
                for name, each in self._definitions().items()
                if name.startswith(_NAMED) and name not in built
            }
            # Of the defined indexes that are missing Hudi builds one, or none if there are several.
            for name in named:
                table.meta.deleteIndexDefinition(name)
            self._build([name for name in _IN_ORDER if name in missing])
            for name in sorted(missing & named.keys()):
                table.meta.buildIndexDefinition(named[name])
                self._build([name])
            for definition in named.values():
                table.meta.buildIndexDefinition(definition)

    def _build(self, partitions: Sequence[str]) -> None:
        """Builds these partitions, as Hudi's index action does (`RunIndexActionExecutor`); without the list of files,
        that too."""
        self._table.reload()
        hudi, context, meta = self._jvm.hudi, self._jvm.engine_context, self._table.meta
        last = meta.getActiveTimeline().filterCompletedInstants().lastInstant()
        instant = (
            last.get().requestedTime() if last.isPresent() else hudi.metadata.HoodieTableMetadata.SOLO_COMMIT_TIMESTAMP
        )
        wanted = self._jvm.java.java.util.ArrayList()
        for name in partitions:
            part = hudi.avro.model.HoodieIndexPartitionInfo.newBuilder().setVersion(1).setMetadataPartitionPath(name)
            wanted.add(part.setIndexUptoInstant(instant).build())
        factory = hudi.metadata.SparkMetadataWriterFactory
        writer = factory.create(self._jvm.storage_conf(), self._config, context, meta.getTableConfig())
        try:
            writer.buildMetadataPartitions(context, wanted, instant)
        finally:
            writer.close()

    def _definitions(self) -> dict[str, Any]:
        found = self._table.meta.getIndexMetadata()
        return dict(found.get().getIndexDefinitions()) if found.isPresent() else {}
