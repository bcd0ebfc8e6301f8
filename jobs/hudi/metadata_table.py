"""Hudi's metadata table (1.2.0): when it was compacted, and how it is built anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.hudi.jvm import translated

if TYPE_CHECKING:
    from jobs.hudi.table import HudiTable

FOLDER = ".hoodie/metadata"


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
        """Deletes it, and builds the partitions that the client's options name, by listing the storage.

        The lock must be held, and no instant be pending (`HoodieTableMetadataUtil`, `SparkMetadataWriterFactory`).
        """
        with translated("building the metadata table"):
            hudi, context = self._jvm.hudi.metadata, self._jvm.engine_context()
            hudi.HoodieTableMetadataUtil.deleteMetadataTable(self._table.meta, context, False)
            self._table.reload()
            config = self._table.meta.getTableConfig()
            hudi.SparkMetadataWriterFactory.create(self._jvm.storage_conf(), self._config, context, config).close()
