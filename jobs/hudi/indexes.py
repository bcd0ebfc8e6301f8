"""The indexes of an open table, and the options of a client that keeps them (Hudi 1.2.0)."""

from __future__ import annotations

import json
from typing import Any

from jobs.errors import IndexesChangedError
from jobs.format.hudi_versions import release
from jobs.format.index_definitions import (
    COLUMN_STATISTICS,
    PARTITION_STATISTICS,
    RECORDS,
    IndexDefinition,
    Indexes,
    of_keys,
)
from jobs.hudi.jvm import translated
from jobs.hudi.opened_table import OpenedTable

# A client of Hudi by default deletes partitions that its options do not name, and builds missing partitions: those that
# its options or Hudi's defaults name, partition statistics if there are column statistics, and all defined indexes
# (`HoodieTable`, `HoodieBackedTableMetadataWriter.initializeIfNeeded`). The options below prevent both. The client
# always updates the partitions that the table's properties name.
_AS_THEY_ARE = {"hoodie.metadata.auto.delete.partitions": "false", "hoodie.metadata.index.async": "true"}
# On a table with partition statistics, tasks read the metadata table through a view that the client sends. The client
# itself uses that view for new partitions of a partitioned record index. Afterwards the view loses the paths of its
# base files when it is serialized (`StoragePathInfo`), and each commit fails. If the timeline server runs, the tasks
# ask the driver instead.
_TIMELINE_SERVER = {"hoodie.embed.timeline.server": "true"}
# The option decides when the metadata table is written. Spark's default `true` opens its deltacommit when an instant
# *begins*. Flink, Hudi before 1.1, and Spark with `false` write the deltacommit at the end, and treat any open one as
# dead and roll it back. So all writers of a table must use the same setting, or they make each other's commits fail. A
# Flink job that finds its rows by the record index is like Spark with `true`
# (`OptionsResolver.isStreamingIndexWriteEnabled`).
_STREAMING = (1, 1)
METADATA_AT_THE_END = {"hoodie.metadata.streaming.write.enabled": "false"}


def indexes_of(table: OpenedTable) -> Indexes:
    """Returns the indexes as of the table's last reload."""
    with translated("reading the definitions of the indexes"):
        found = table.jvm.reads.indexes(table.meta)
        stored: dict[str, Any] = json.loads(found)["indexDefinitions"] if found is not None else {}
    return Indexes(table.metadata_partitions, stored)


def definitions(table: OpenedTable) -> dict[str, IndexDefinition]:
    """Returns the definitions as of the table's last reload, by the names of their partitions."""
    return indexes_of(table).defined


def has_record_index_by_partition(table: OpenedTable) -> bool:
    return RECORDS in table.metadata_partitions and indexes_of(table).has_records_by_partition


def options(table: OpenedTable, had: Indexes | None = None) -> dict[str, str]:
    """Returns the options of a client that keeps the table's indexes, or those that the table `had`, and builds no
    others."""
    had = had or (indexes_of(table) if table.metadata_partitions else Indexes(frozenset(), {}))
    partitions = had.partitions
    chosen = {**_AS_THEY_ARE, **had.options()}
    if of_keys(partitions):
        chosen |= _TIMELINE_SERVER
    if COLUMN_STATISTICS in partitions and PARTITION_STATISTICS not in partitions:
        # Only writers of Hudi 1.0 leave a table in this state, and they also write the deltacommit at the end. A
        # streaming client would write both kinds of statistics.
        chosen |= METADATA_AT_THE_END
    return chosen


def beside_flink(table: OpenedTable) -> dict[str, str]:
    """Returns the options of a client of a table that Flink may write."""
    return {} if RECORDS in table.metadata_partitions else METADATA_AT_THE_END


def beside_older_writers(table: OpenedTable) -> dict[str, str]:
    """Returns the options of a client of a table that Hudi before 1.1 writes, according to the owner."""
    version = table.declared.writers_hudi_version
    return METADATA_AT_THE_END if version is not None and release(version) < _STREAMING else {}


def state(table: OpenedTable) -> frozenset[str]:
    """Returns the state of the indexes for which a client is opened: the partitions, and the kind of the record
    index."""
    kind = {f"{RECORDS} by partition"} if has_record_index_by_partition(table) else set()
    return table.metadata_partitions | kind


def require_state(table: OpenedTable, known: frozenset[str]) -> None:
    """Raises IndexesChangedError if the indexes have changed since a client was opened. The client's commit would leave
    its files out of new indexes, or would rebuild indexes that a writer has dropped."""
    if changed := state(table) ^ known:
        raise IndexesChangedError(", ".join(sorted(changed)))
