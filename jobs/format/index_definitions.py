"""The indexes of a table: partitions of its metadata table, and their definitions (Hudi 1.2.0).

A definition has the columns and the function of an index, and whether a record index is global or partitioned.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from jobs.contract import Json

FILES, RECORDS, COLUMN_STATISTICS = "files", "record_index", "column_stats"
PARTITION_STATISTICS, BLOOM_FILTERS = "partition_stats", "bloom_filters"
SECONDARY, EXPRESSION = "secondary_index_", "expr_index_"  # the prefix; the name that the owner gave follows
# The option of writers, and its values for indexes that find a key in all partitions (`HoodieIndex.IndexType`).
INDEX_TYPE = "hoodie.index.type"
GLOBAL_TYPES = frozenset({"GLOBAL_BLOOM", "GLOBAL_SIMPLE", "RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX"})
# `HoodieTableMetaClient.getIndexDefinitionPath`, relative to the base path.
METADATA_FOLDER = ".hoodie/metadata"
DEFINITIONS_FILE = ".hoodie/.index_defs/index.json"

_OF_KEYS = (RECORDS, SECONDARY.rstrip("_"), EXPRESSION.rstrip("_"), BLOOM_FILTERS)
_ENABLE = {
    FILES: "hoodie.metadata.enable",
    COLUMN_STATISTICS: "hoodie.metadata.index.column.stats.enable",
    PARTITION_STATISTICS: "hoodie.metadata.index.partition.stats.enable",
    BLOOM_FILTERS: "hoodie.metadata.index.bloom.filter.enable",
}
# The keys say whether each partition of the data has an index of its own.
ENABLE_RECORDS = {
    False: "hoodie.metadata.record.index.enable",
    True: "hoodie.metadata.record.level.index.enable",
}
# How many file groups Hudi gives to a new index, by the beginning of its partition's name. For a record index and a
# secondary one this is the least number; Hudi takes more for very many rows. A record index in each partition of the
# data has an option of its own. A client with complete options has these keys, which take precedence over older ones.
_FILE_GROUPS = {
    RECORDS: "hoodie.metadata.global.record.level.index.min.filegroup.count",
    SECONDARY: "hoodie.metadata.global.record.level.index.min.filegroup.count",
    COLUMN_STATISTICS: "hoodie.metadata.index.column.stats.file.group.count",
    PARTITION_STATISTICS: "hoodie.metadata.index.partition.stats.file.group.count",
    BLOOM_FILTERS: "hoodie.metadata.index.bloom.filter.file.group.count",
    EXPRESSION: "hoodie.metadata.index.expression.file.group.count",
}
_FILE_GROUPS_BY_PARTITION = "hoodie.metadata.record.level.index.min.filegroup.count"
_MOST_COLUMNS = 32  # `hoodie.metadata.index.column.stats.max.columns.to.index`
_STATISTICS_COLUMNS = "hoodie.metadata.index.column.stats.column.list"


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
    stores them. `file_groups` are the numbers of file groups that some of these partitions had."""

    partitions: frozenset[str]
    stored: Mapping[str, Json]
    file_groups: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, partitions: Iterable[str], content: str | bytes | None) -> Indexes:
        """`content` is that of the file of definitions, if there is one. Raises ValueError if it is damaged."""
        try:
            stored = json.loads(content)["indexDefinitions"] if content else {}
            found = cls(frozenset(partitions), dict(stored))
            _ = found.defined
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the definitions of the indexes are damaged: {error!r}") from error
        return found

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

    def on(self, columns: Mapping[str, bool]) -> Indexes:
        """Returns the indexes that a table with these columns can have. Secondary and expression indexes of other
        columns are left out. If the statistics name other columns, they get the table's first columns instead, as by
        Hudi's default. `columns` says of each column whether it can have statistics."""

        def has_all(name: str) -> bool:
            tops = {each.partition(".")[0] for each in self.defined[name].columns}
            return all(each in columns or each.startswith("_hoodie_") for each in tops)

        kept = {name: each for name, each in self.stored.items() if has_all(name)}
        gone = {name for name in self.stored.keys() - kept.keys() if name.startswith((SECONDARY, EXPRESSION))}
        if COLUMN_STATISTICS in self.stored.keys() - kept.keys():
            # A client keeps the columns with which it was opened, unless it is given others.
            first = [name for name, is_flat in columns.items() if is_flat][:_MOST_COLUMNS]
            kept[COLUMN_STATISTICS] = {**self.stored[COLUMN_STATISTICS], "sourceFields": first}
        return Indexes(self.partitions - gone, kept, self.file_groups)

    def without_keys(self) -> Indexes:
        """Returns the indexes except for the record index, which has one row for each key, and the indexes that need
        it."""

        def stays(name: str) -> bool:
            return name != RECORDS and not name.startswith(SECONDARY)

        kept = {name: each for name, each in self.stored.items() if stays(name)}
        return Indexes(frozenset(filter(stays, self.partitions)), kept, self.file_groups)

    @property
    def has_records_by_partition(self) -> bool:
        return RECORDS in self.partitions & self.defined.keys() and self.defined[RECORDS].is_by_partition

    def mixed_by_cleans(self, partitions: Collection[str]) -> tuple[str, ...]:
        """Returns the expression indexes whose type is among these partitions of the metadata table, each with its
        type: each clean by Hudi 1.2.0 that deletes files would mix the two up.

        The clean's entries of an expression index (`convertMetadataToExpressionIndexRecords`) get the partition of the
        type, but the file ids of the expression index. A file id in two partitions is one bucket to Hudi
        (`UpsertPartitioner`), and keys are looked up modulo the number of file groups.
        """
        return tuple(
            f"{name} in {each.kind}"
            for name, each in sorted(self.defined.items())
            if name.startswith(EXPRESSION) and name in self.partitions and each.kind in partitions
        )

    def options(self) -> dict[str, str]:
        """Returns the options by which a writer builds and keeps exactly these indexes, and deletes others."""
        by_partition = self.has_records_by_partition
        chosen = {option: _flag(partition in self.partitions) for partition, option in _ENABLE.items()}
        # A client that is configured for the other kind of record index would update the wrong file groups.
        chosen |= {
            option: _flag(RECORDS in self.partitions and kind is by_partition)
            for kind, option in ENABLE_RECORDS.items()
        }
        statistics = self.defined.get(COLUMN_STATISTICS)
        columns = [name for name in statistics.columns if not name.startswith("_hoodie_")] if statistics else []
        if columns and not any("," in name for name in columns):
            # A client without this option indexes the first 32 columns, and changes the definition accordingly.
            chosen[_STATISTICS_COLUMNS] = ",".join(columns)
        return chosen

    def sizes(self, building: Iterable[str]) -> dict[str, str]:
        """Returns the options by which a client gives these partitions as many file groups as they had. No two of them
        may be named indexes (`SECONDARY`, `EXPRESSION`), which share an option."""
        chosen = {}
        for name in building:
            option = next((option for prefix, option in _FILE_GROUPS.items() if name.startswith(prefix)), None)
            if option and name in self.file_groups:
                by_partition = name == RECORDS and self.has_records_by_partition
                chosen[_FILE_GROUPS_BY_PARTITION if by_partition else option] = str(self.file_groups[name])
        return chosen

    def keeping(self) -> dict[str, str]:
        """Returns the options without which a writer deletes these indexes. The writer may build others."""
        return {name: value for name, value in self.options().items() if value != _flag(False)}


def of_keys(partitions: Iterable[str]) -> list[str]:
    """Returns the partitions among these that map keys to files."""
    return sorted(name for name in partitions if name.startswith(_OF_KEYS))


def _flag(value: bool) -> str:
    return str(value).lower()
