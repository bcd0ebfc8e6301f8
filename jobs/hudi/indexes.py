"""The indexes of a table: partitions of its metadata table, and their definitions (Hudi 1.2.0).

A definition has the columns and the function of an index, and whether a record index is global or partitioned.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jobs.errors import IndexesChangedError
from jobs.hudi.jvm import translated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jobs.contract import Json
    from jobs.hudi.opened_table import OpenedTable

FILES, RECORDS, COLUMN_STATISTICS = "files", "record_index", "column_stats"
PARTITION_STATISTICS, BLOOM_FILTERS = "partition_stats", "bloom_filters"
SECONDARY, EXPRESSION = "secondary_index_", "expr_index_"  # the prefix; the name that the owner gave follows

_OF_KEYS = (RECORDS, SECONDARY.rstrip("_"), EXPRESSION.rstrip("_"), BLOOM_FILTERS)

_ENABLE = {
    COLUMN_STATISTICS: "hoodie.metadata.index.column.stats.enable",
    PARTITION_STATISTICS: "hoodie.metadata.index.partition.stats.enable",
    BLOOM_FILTERS: "hoodie.metadata.index.bloom.filter.enable",
}
# A client of Hudi by default deletes partitions that its options do not name, and builds missing ones that they name:
# those of the default options, partition statistics if there are column statistics, and all defined indexes
# (`HoodieTable`, `HoodieBackedTableMetadataWriter.initializeIfNeeded`). The options below prevent both. The client
# always updates the partitions that the table's properties name.
_AS_THEY_ARE = {"hoodie.metadata.auto.delete.partitions": "false", "hoodie.metadata.index.async": "true"}
# On a table with partition statistics, tasks read the metadata table through a view that the client sends. Once the
# client itself has used that view (it does so for new partitions of a partitioned record index), the view loses the
# paths of its base files when it is serialized (`StoragePathInfo`), and each commit fails. If the timeline server runs,
# the tasks ask the driver instead.
_TIMELINE_SERVER = {"hoodie.embed.timeline.server": "true"}
# The option decides when the metadata table is written. Spark's default `true` opens its deltacommit when an instant
# *begins*. Flink, and Spark with `false`, write the deltacommit at the end, and treat any open one as dead and roll it
# back. So all writers of a table must use the same setting, or they make each other's commits fail.
METADATA_AT_THE_END = {"hoodie.metadata.streaming.write.enabled": "false"}


@dataclass(frozen=True)
class IndexDefinition:
    """Hudi's `HoodieIndexDefinition`. `columns` are the source fields, including meta fields. `kind` is the type of an
    expression index: `column_stats` or `bloom_filters`."""

    name: str
    columns: tuple[str, ...]
    options: Mapping[str, str]
    kind: str = ""
    function: str = ""

    @property
    def is_by_partition(self) -> bool:
        """Whether the record index has entries by partition path and key (`HoodieRecordIndex`, since Hudi 1.1)."""
        return self.options.get("isPartitioned") == "true"


@dataclass(frozen=True)
class Indexes:
    """The indexes that a table has or had: the partitions of its metadata table, and all definitions by name, as Hudi
    stores them."""

    partitions: frozenset[str]
    stored: Mapping[str, Json]

    @cached_property
    def defined(self) -> dict[str, IndexDefinition]:
        return {
            name: IndexDefinition(
                name,
                tuple(each.get("sourceFields") or ()),
                each.get("indexOptions") or {},
                (each.get("indexType") or "").lower(),
                each.get("indexFunction") or "",
            )
            for name, each in self.stored.items()
        }

    @property
    def has_records_by_partition(self) -> bool:
        return RECORDS in self.partitions & self.defined.keys() and self.defined[RECORDS].is_by_partition


def indexes_of(table: OpenedTable) -> Indexes:
    """Returns the indexes as of the table's last reload."""
    with translated("reading the definitions of the indexes"):
        found = table.meta.getIndexMetadata()
        stored: dict[str, Any] = json.loads(str(found.get().toJson()))["indexDefinitions"] if found.isPresent() else {}
    return Indexes(table.metadata_partitions, stored)


def definitions(table: OpenedTable) -> dict[str, IndexDefinition]:
    """Returns the definitions as of the table's last reload, by the names of their partitions."""
    return indexes_of(table).defined


def has_record_index_by_partition(table: OpenedTable) -> bool:
    return RECORDS in table.metadata_partitions and indexes_of(table).has_records_by_partition


def of_keys(partitions: Iterable[str]) -> list[str]:
    """Returns the partitions among these that map keys to files."""
    return sorted(name for name in partitions if name.startswith(_OF_KEYS))


def options(table: OpenedTable, had: Indexes | None = None) -> dict[str, str]:
    """Returns the options of a client that keeps the table's indexes, or those that it `had`, and builds no others."""
    had = had or (indexes_of(table) if table.metadata_partitions else Indexes(frozenset(), {}))
    partitions, defined, by_partition = had.partitions, had.defined, had.has_records_by_partition
    chosen = {
        **_AS_THEY_ARE,
        "hoodie.metadata.enable": _flag(FILES in partitions),
        **{option: _flag(partition in partitions) for partition, option in _ENABLE.items()},
        # A client that is configured for the other kind of record index would update the wrong file groups.
        "hoodie.metadata.record.index.enable": _flag(RECORDS in partitions and not by_partition),
        "hoodie.metadata.record.level.index.enable": _flag(RECORDS in partitions and by_partition),
    }
    columns = [name for name in _columns(defined) if not name.startswith("_hoodie_")]
    if columns and not any("," in name for name in columns):
        # A client without this option indexes the first 32 columns, and changes the definition accordingly.
        chosen["hoodie.metadata.index.column.stats.column.list"] = ",".join(columns)
    if of_keys(partitions):
        chosen |= _TIMELINE_SERVER
    if COLUMN_STATISTICS in partitions and PARTITION_STATISTICS not in partitions:
        # Only writers of Hudi 1.0 leave a table in this state, and they also write the deltacommit at the end. A
        # streaming client would write both kinds of statistics.
        chosen |= METADATA_AT_THE_END
    return chosen


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


def _columns(defined: Mapping[str, IndexDefinition]) -> tuple[str, ...]:
    return defined[COLUMN_STATISTICS].columns if COLUMN_STATISTICS in defined else ()


def _flag(value: bool) -> str:
    return str(value).lower()
