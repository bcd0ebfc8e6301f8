"""Reasons against building or dropping an index, and the indexes that a build leads to."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from jobs.contract import Problem
from jobs.format.hudi_versions import release
from jobs.format.index_definitions import (
    BLOOM_FILTERS,
    COLUMN_STATISTICS,
    EXPRESSION,
    FILES,
    PARTITION_STATISTICS,
    RECORDS,
    SECONDARY,
    Indexes,
)
from jobs.hudi import indexes
from jobs.hudi.table import HudiTable
from jobs.kinds.index import IndexParams
from jobs.problems.indexes import (
    EXPRESSION_INDEX,
    INDEX_IN_USE,
    INDEX_NOT_KEPT,
    INDEX_NOT_OFFERED,
    INDEX_NOT_PROVED,
    INDEXING_PENDING,
    NO_METADATA_TABLE,
    OTHER_RECORD_INDEX,
)
from jobs.problems.tables import COLUMN_UNKNOWN
from jobs.protocol import missing_parts, older_hudi, preflight, repeated_file_ids, unique_keys

PARTITIONED = "partitioned_record"
_PARTITION = {
    "record": RECORDS,
    PARTITIONED: RECORDS,
    "column_stats": COLUMN_STATISTICS,
    "bloom_filters": BLOOM_FILTERS,
}
_PREFIX = {"secondary": SECONDARY, "expression": EXPRESSION}
_PROVED_SINCE = (1, 2)
# Table versions on which a build was tried. Writers of Hudi 1.2 committed before and after it.
_PROVED_ON = {
    "record": (6, 8, 9),
    PARTITIONED: (9,),
    "column_stats": (6, 8, 9),
    "bloom_filters": (6, 8, 9),
}
_WITH_PARTITION_STATISTICS = 8
_LATEST_COMMITS = 10
_NEW_KEYS_IN_LOGS = "a bucket index on merge-on-read: Hudi takes no new keys from logs, where its writers put them"


def partitions_of(table: HudiTable, params: IndexParams) -> tuple[str, ...]:
    """Returns the partitions of the metadata table that belong to the index, in the order in which Hudi builds them.

    Statistics of partitions belong to the column statistics of a partitioned table: a client of Hudi 1.2 builds both.
    """
    kind = str(params.index)
    if kind in _PREFIX:
        prefix = _PREFIX[kind]
        name = params.name or ""
        return (name if name.startswith(prefix) else prefix + name,)
    partition = _PARTITION[kind]
    is_partitioned = bool(table.properties.get("hoodie.table.partition.fields"))
    if partition != COLUMN_STATISTICS or not is_partitioned or table.version < _WITH_PARTITION_STATISTICS:
        return (partition,)
    return partition, PARTITION_STATISTICS


def wanted(table: HudiTable, params: IndexParams) -> Indexes:
    """Returns the table's indexes with the one that is to be built."""
    had = indexes.indexes_of(table)
    new = partitions_of(table, params)
    stored: dict[str, Any] = {name: each for name, each in had.stored.items() if name not in new}
    if RECORDS in new:
        is_by_partition = str(params.index == PARTITIONED).lower()
        stored[RECORDS] = {"indexOptions": {"isPartitioned": is_by_partition}}
    if params.columns:
        stored[COLUMN_STATISTICS] = {"sourceFields": list(params.columns)}
    return Indexes(had.partitions | set(new), stored)


def of_build(table: HudiTable, params: IndexParams) -> list[Problem]:
    """Returns all reasons why the index cannot be built."""
    kind = str(params.index)
    if kind in _PREFIX:
        return [INDEX_NOT_OFFERED.because(kind)]
    if FILES not in table.metadata_partitions:
        return [NO_METADATA_TABLE.because()]
    problems = [*missing_parts.missing(table), *preflight.of_lock(table), *of_indexing(table), *_of_users(table)]
    problems += [INDEX_NOT_PROVED.because(detail) for detail in _not_proved(table, kind)]
    problems += [*_of_columns(table, params), *of_expressions(table, partitions_of(table, params))]
    if RECORDS in partitions_of(table, params):
        problems += _of_records(table, params)
    return problems


def of_drop(table: HudiTable, params: IndexParams) -> list[Problem]:
    """Returns all reasons why the index cannot be dropped."""
    problems = [*missing_parts.of_metadata_table(table), *preflight.of_lock(table), *of_indexing(table)]
    gone = set(partitions_of(table, params))
    if RECORDS in gone:
        needs = sorted(each for each in table.metadata_partitions if each.startswith(SECONDARY))
        kind = table.declared.hudi_options.get("hoodie.index.type", "")
        if kind in ("RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX"):
            needs.append(f"writers with hoodie.index.type={kind}")
        if needs:
            problems.append(INDEX_IN_USE.because(f"{RECORDS} is needed by {', '.join(needs)}"))
    return problems


def of_indexing(table: HudiTable) -> list[Problem]:
    """Returns the refusal if somebody else is building an index."""
    pending = [item for item in table.instants() if item.action == "indexing" and item.state != "COMPLETED"]
    inflight = sorted(filter(None, table.properties.get("hoodie.table.metadata.partitions.inflight", "").split(",")))
    if not pending and not inflight:
        return []
    found = [f"{item.requested} ({item.state.lower()})" for item in pending]
    found += [f"partitions in flight: {', '.join(inflight)}"] if inflight else []
    return [INDEXING_PENDING.because(", ".join(found))]


def of_expressions(table: HudiTable, partitions: Collection[str]) -> list[Problem]:
    """Returns the refusal if an expression index has the type of an index in these partitions of the metadata table:
    cleans would mix the two up (`Indexes.mixed_by_cleans`)."""
    if not any(name.startswith(EXPRESSION) for name in table.metadata_partitions):
        return []
    mixed = indexes.indexes_of(table).mixed_by_cleans(partitions)
    return [EXPRESSION_INDEX.because(", ".join(mixed))] if mixed else []


def of_cleaning(table: HudiTable) -> list[Problem]:
    """Returns the refusal of cleanings because of an expression index."""
    return of_expressions(table, table.metadata_partitions)


def is_other_record_index(table: HudiTable, params: IndexParams) -> bool:
    """Returns whether the table has the other type of record index: partitioned in place of global, or the reverse."""
    is_by_partition = indexes.has_record_index_by_partition(table)
    is_of_records = RECORDS in partitions_of(table, params) and RECORDS in table.metadata_partitions
    return is_of_records and is_by_partition != (params.index == PARTITIONED)


def _of_users(table: HudiTable) -> Iterator[Problem]:
    declared = table.declared
    for who, version in (("writers", declared.writers_hudi_version), ("readers", declared.readers_hudi_version)):
        if version and release(version) < _PROVED_SINCE:
            yield INDEX_NOT_KEPT.because(f"{who} declared: Hudi {version}")
    if older := older_hudi.seen_before_1_0(table, _LATEST_COMMITS):
        yield INDEX_NOT_KEPT.because(older)
    if flink := table.may_have_flink:
        yield INDEX_NOT_KEPT.because(flink)


def _not_proved(table: HudiTable, kind: str) -> Iterator[str]:
    properties = table.properties
    if table.version not in _PROVED_ON[kind]:
        versions = ", ".join(map(str, _PROVED_ON[kind]))
        yield f"{kind} on version {table.version}: it was tried on version {versions}"
    if "hoodie.bootstrap.base.path" in properties:
        yield "a bootstrapped table: its base files are elsewhere"
    if properties.get("hoodie.table.base.file.format", "PARQUET").upper() != "PARQUET":
        yield "base files other than Parquet"
    if not table.has_meta_fields:
        yield "a table without meta fields: rows cannot be identified by their keys"
    if repeated_file_ids.non_blocking(table.file_slices()):
        yield "a table of non-blocking writers: their commits do not wait for the lock"
    if not table.completed_writes():
        yield "a table without a completed write"


def _of_columns(table: HudiTable, params: IndexParams) -> Iterator[Problem]:
    names = [field["name"] for field in json.loads(table.schema())["fields"]]
    # Hudi takes the columns as one text with commas.
    unknown = [each for each in params.columns or () if each not in names or "," in each]
    if unknown:
        yield COLUMN_UNKNOWN.because(", ".join(unknown), hint=f"Its columns are {', '.join(sorted(names)[:100])}.")


def _of_records(table: HudiTable, params: IndexParams) -> list[Problem]:
    if is_other_record_index(table, params):
        present = "partitioned" if params.index == "record" else "global"
        return [OTHER_RECORD_INDEX.because(f"{RECORDS} is {present}")]
    if loses_new_keys(table):
        return [INDEX_NOT_KEPT.because(_NEW_KEYS_IN_LOGS, hint="The bucket index finds the file of a key without it.")]
    if RECORDS in table.metadata_partitions or not table.has_meta_fields:
        return []
    return unique_keys.refusals(table, had=wanted(table, params))


def loses_new_keys(table: HudiTable) -> bool:
    """Returns whether writers leave new keys out of a record index. Writers of a bucket index write new keys to logs,
    and Hudi takes from logs only deleted keys and keys that come back (`convertMetadataToRecordIndexRecords`,
    1.2.0)."""
    return table.is_merge_on_read and bool(table.declared.index or table.has_consistent_hashing())
