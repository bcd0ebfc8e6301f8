"""The indexes of a table: partitions of its metadata table, and their definitions (Hudi 1.2.0).

A definition has what the name of a partition does not tell: the columns, the function, and whether the record index is
the global or the partitioned one.
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
SECONDARY, EXPRESSION = "secondary_index_", "expr_index_"  # and the name that the owner gave

_OF_KEYS = (RECORDS, SECONDARY.rstrip("_"), EXPRESSION.rstrip("_"), BLOOM_FILTERS)

_ENABLE = {
    COLUMN_STATISTICS: "hoodie.metadata.index.column.stats.enable",
    PARTITION_STATISTICS: "hoodie.metadata.index.partition.stats.enable",
    BLOOM_FILTERS: "hoodie.metadata.index.bloom.filter.enable",
}
# A client deletes the partitions that its options do not name, and builds others that they do: those of the defaults,
# partition statistics wherever there are column statistics, and whatever is defined (`HoodieTable`,
# `HoodieBackedTableMetadataWriter.initializeIfNeeded`). The client always updates those that the table's properties
# name.
_AS_THEY_ARE = {"hoodie.metadata.auto.delete.partitions": "false", "hoodie.metadata.index.async": "true"}
# Tasks on a table with partition statistics read the metadata table by a view of the client. If that view has been used
# before, as for new partitions of a partitioned record index, it loses the paths of its base files on the way to the
# task (`StoragePathInfo` is not serialized), and each commit fails; with the server the tasks ask the driver.
_TIMELINE_SERVER = {"hoodie.embed.timeline.server": "true"}
# When the metadata table is written: Spark's default opens its deltacommit when an instant *begins*; with `false`, and
# in Flink, it is written at the end, and any open one is taken for dead and rolled back. So all writers of a table must
# use the same setting, or they make each other's commits fail.
METADATA_AT_THE_END = {"hoodie.metadata.streaming.write.enabled": "false"}


@dataclass(frozen=True)
class IndexDefinition:
    """Hudi's `HoodieIndexDefinition`. `columns` are the source fields, Hudi's own among them. `kind` says how an
    expression index tells what is in a file: by `column_stats` or by `bloom_filters`."""

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
    """The indexes that a table has or had: the partitions of its metadata table, and all definitions by their names as
    Hudi stores them."""

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
    """Returns those of these partitions that map keys to files."""
    return sorted(name for name in partitions if name.startswith(_OF_KEYS))


def options(table: OpenedTable, had: Indexes | None = None) -> dict[str, str]:
    """Returns the options of a client that keeps the indexes which the table has, or `had`, as they are, and builds no
    others."""
    had = had or (indexes_of(table) if table.metadata_partitions else Indexes(frozenset(), {}))
    partitions, defined, by_partition = had.partitions, had.defined, had.has_records_by_partition
    chosen = {
        **_AS_THEY_ARE,
        "hoodie.metadata.enable": _flag(FILES in partitions),
        **{option: _flag(partition in partitions) for partition, option in _ENABLE.items()},
        # A client of the other kind would update the wrong file groups of this one.
        "hoodie.metadata.record.index.enable": _flag(RECORDS in partitions and not by_partition),
        "hoodie.metadata.record.level.index.enable": _flag(RECORDS in partitions and by_partition),
    }
    columns = [name for name in _columns(defined) if not name.startswith("_hoodie_")]
    if columns and not any("," in name for name in columns):
        # A client's default takes the first 32, and makes them the definition.
        chosen["hoodie.metadata.index.column.stats.column.list"] = ",".join(columns)
    if of_keys(partitions):
        chosen |= _TIMELINE_SERVER
    if COLUMN_STATISTICS in partitions and PARTITION_STATISTICS not in partitions:
        # Only writers of Hudi 1.0 leave it so, and they do not stream; with streaming a client writes both.
        chosen |= METADATA_AT_THE_END
    return chosen


def state(table: OpenedTable) -> frozenset[str]:
    """Returns what a commit must know of the indexes: the partitions, and of which kind the record index is."""
    kind = {f"{RECORDS} by partition"} if has_record_index_by_partition(table) else set()
    return table.metadata_partitions | kind


def require_state(table: OpenedTable, known: frozenset[str]) -> None:
    """Raises IndexesChangedError unless the indexes are those for which a client was opened: its commit would leave the
    others without the new files, or build anew what a writer has dropped."""
    if changed := state(table) ^ known:
        raise IndexesChangedError(", ".join(sorted(changed)))


def _columns(defined: Mapping[str, IndexDefinition]) -> tuple[str, ...]:
    return defined[COLUMN_STATISTICS].columns if COLUMN_STATISTICS in defined else ()


def _flag(value: bool) -> str:
    return str(value).lower()
