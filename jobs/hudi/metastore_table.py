"""A table of a metastore: how it is, and how Hudi's sync defines it (`HiveSyncTool`, 1.2.0)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jobs.format.partition_values import CLASSES
from jobs.hudi.jvm import translated
from jobs.hudi.table import HudiTable
from jobs.job_params import PartitionExtractor

LAST_SYNCED = "last_commit_time_sync"
_LAST_COMPLETED = "last_commit_completion_time_sync"
_HIVE, _META = "hoodie.datasource.hive_sync.", "hoodie.meta.sync."


@dataclass(frozen=True)
class Target:
    uris: str
    database: str
    table: str
    strategy: str
    partition_fields: tuple[str, ...]
    extractor: PartitionExtractor
    create_database: bool = True

    def options(self, base_path: str, *, has_metadata: bool) -> dict[str, str]:
        return {
            "hoodie.datasource.meta.sync.base.path": base_path,
            f"{_HIVE}mode": "hms",
            f"{_HIVE}use_jdbc": "false",
            f"{_HIVE}metastore.uris": self.uris,
            f"{_HIVE}database": self.database,
            f"{_HIVE}table": self.table,
            f"{_HIVE}table.strategy": self.strategy,
            f"{_HIVE}partition_fields": ",".join(self.partition_fields),
            f"{_HIVE}partition_extractor_class": f"org.apache.hudi.hive.{CLASSES[self.extractor]}",
            f"{_HIVE}auto_create_database": str(self.create_database).lower(),
            # If they were true, the next two options would remove properties that others have set on the table in the
            # metastore.
            f"{_HIVE}recreate_table_on_error": "false",
            f"{_HIVE}ignore_exceptions": "false",
            f"{_META}incremental": "true",
            f"{_META}metadata_file_listing": str(has_metadata).lower(),
        }


@dataclass(frozen=True)
class MetastoreTable:
    """A table in the metastore. `columns` maps names to types, in order and without the partition columns. `partitions`
    maps partition values to locations. `synced` is the requested time of the last commit that was synced."""

    location: str
    is_hudi: bool
    columns: Mapping[str, str]
    partition_columns: Mapping[str, str]
    partitions: Mapping[tuple[str, ...], str]
    synced: str | None


@dataclass(frozen=True)
class Formats:
    """The classes by which Hive reads a table, and the properties that name them and the table to Spark."""

    input_format: str
    output_format: str
    serde: str
    serde_properties: Mapping[str, str]
    table_properties: Mapping[str, str]


def timeline_of(table: HudiTable) -> Any:
    """Returns a meta client whose timeline does not change any more, so that later instants do not count as synced."""
    with translated("opening the table"):
        builder = table.jvm.hudi.common.table.HoodieTableMetaClient.builder()
        builder = builder.setBasePath(table.base_path).setConf(table.jvm.storage_conf())
        return builder.setLoadActiveTimelineOnLoad(True).build()


class Definition:
    """Defines the tables that a metastore has for one Hudi table, as of a timeline. Connects to no metastore."""

    def __init__(self, table: HudiTable, target: Target, timeline: Any) -> None:
        self._table, self._jvm, self._target, self._meta = table, table.jvm, target, timeline

    def columns(self) -> tuple[dict[str, str], dict[str, str]]:
        """Returns the columns that the metastore's tables should have, and their partition columns."""
        with translated("reading the table's schema"):
            util = self._jvm.hudi.hive.util.HiveSchemaUtil
            schema = util.hoodieSchemaToMapSchema(self._schema, False, False)
            columns = types_of(util.convertMapSchemaToHiveFieldSchema(schema, self._config))
            keys = {name: str(util.getPartitionKeyType(schema, name)) for name in self._target.partition_fields}
            return columns, {name.lower(): kind.lower() for name, kind in keys.items()}

    def comments(self) -> dict[str, str]:
        """Returns the comments of columns that the schema of the table documents."""
        with translated("reading the table's schema"):
            fields = self._schema.getFields()
            listed = [fields.get(number) for number in range(fields.size())]
            return {str(each.name()).lower(): str(each.doc().get()) for each in listed if each.doc().isPresent()}

    def formats(self, *, merges_logs: bool, is_read_optimized: bool) -> Formats:
        """Returns the formats of one of the metastore's tables. `merges_logs` is set if it shows the rows of the logs
        of a merge-on-read table, `is_read_optimized` if it leaves them out."""
        with translated("describing the table"):
            util = self._jvm.hudi.hadoop.utils.HoodieInputFormatUtils
            of_spark = self._jvm.hudi.sync.common.util.SparkDataSourceTableUtils
            kind = self._meta.getTableConfig().getBaseFileFormat()
            fields = self._jvm.java.java.util.ArrayList()
            for name in self._target.partition_fields:
                fields.add(name)
            holder = self._jvm.hudi.hive.HiveSyncConfigHolder
            threshold = self._config.getIntOrDefault(holder.HIVE_SYNC_SCHEMA_STRING_LENGTH_THRESHOLD)
            version = self._config.getStringOrDefault(
                self._jvm.hudi.sync.common.HoodieSyncConfig.META_SYNC_SPARK_VERSION
            )
            return Formats(
                input_format=str(util.getInputFormatClassName(kind, merges_logs)),
                output_format=str(util.getOutputFormatClassName(kind)),
                serde=str(util.getSerDeClassName(kind)),
                serde_properties=dict(of_spark.getSparkSerdeProperties(is_read_optimized, self._table.base_path)),
                table_properties=dict(of_spark.getSparkTableProperties(fields, version, threshold, self._schema)),
            )

    def synced(self) -> dict[str, str]:
        """Returns the properties by which Hudi's tools find the last commit that was synced
        (`HoodieHiveSyncClient.updateLastCommitTimeSynced`)."""
        with translated("reading the timeline"):
            timeline = self._meta.getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
            requested, completed = timeline.lastInstant(), timeline.getLatestCompletionTime()
            found = {LAST_SYNCED: str(requested.get().requestedTime())} if requested.isPresent() else {}
            return found | ({_LAST_COMPLETED: str(completed.get())} if completed.isPresent() else {})

    def properties(self) -> Any:
        """Returns the options of Hudi's sync as Java's `Properties`."""
        properties = self._jvm.java.java.util.Properties()
        has_metadata = "files" in self._table.metadata_partitions
        for key, value in self._target.options(self._table.base_path, has_metadata=has_metadata).items():
            properties.setProperty(key, value)
        return properties

    @cached_property
    def _schema(self) -> Any:
        return self._jvm.hudi.common.table.ParquetTableSchemaResolver(self._meta).getTableSchema(True)

    @cached_property
    def _config(self) -> Any:
        conf = self._jvm.java.org.apache.hadoop.conf.Configuration(self._jvm.hadoop_conf)
        return self._jvm.hudi.hive.HiveSyncConfig(self.properties(), conf)


def types_of(fields: Any) -> dict[str, str]:
    """Returns the types of Hive's columns by name, in lower case."""
    listed = [fields.get(number) for number in range(fields.size())]
    return {str(each.getName()).lower(): str(each.getType()).lower() for each in listed}
