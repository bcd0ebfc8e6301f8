"""Checks whether the merge of a compaction plan by Arrow is proved to be equal to Hudi's own, before Arrow executes the
plan. The checks write nothing. Each reason against Arrow is a typed `Problem`. Reasons in the log files themselves
(kinds of blocks, partial updates) are found while the files are read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from jobs.contract import Problem
from jobs.dataplane.slice_merge import MergeRules, SliceFiles
from jobs.errors import RefusedError
from jobs.format.file_names import parse_log_file_name
from jobs.format.meta_columns import OPERATION
from jobs.hudi.hadoop import storage_of
from jobs.hudi.merging import TAKING_THE_NEWER, has_schema_on_read, merging_of
from jobs.hudi.table import HudiTable
from jobs.problems.arrow_merges import (
    LOG_FILES_NOT_COVERED,
    MERGE_MODE_NOT_COVERED,
    MERGE_PROPERTIES_NOT_COVERED,
    OPERATION_FIELD,
    OPTIONS_NOT_COVERED,
    PAYLOAD_NOT_COVERED,
    SCHEMA_ON_READ,
    TABLE_VERSION_NOT_COVERED,
    TYPES_NOT_COVERED,
)
from jobs.problems.tables import (
    BASE_FILES_NOT_PARQUET,
    BOOTSTRAPPED_TABLE,
    CHANGE_DATA_CAPTURE,
    INDEX_MAPS_KEYS_TO_FILES,
)
from jobs.protocol import older_hudi, preflight

_VERSIONS = (6, 8, 9)
_UNKNOWN_BYTES = 128 * 1024 * 1024
_ORDERS = ("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING")
_MAPS_KEYS = ("record_index", "secondary_index", "expr_index", "bloom_filters")
# Properties of tables whose merge does more than take the newer row.
_MERGE_PROPERTIES = ("hoodie.record.merge.property.", "hoodie.table.partial.update.mode", "hoodie.payload.")
# Options of the owner that change how Hudi's executor merges, or the files that it writes.
_OPTIONS = (
    "hoodie.bloom.",
    "hoodie.compaction.payload.",
    "hoodie.datasource.write.payload.",
    "hoodie.datasource.write.precombine.",
    "hoodie.datasource.write.reconcile.",
    "hoodie.datasource.write.record.merger.",
    "hoodie.index.bloom.",
    "hoodie.parquet.field_id.",
    "hoodie.parquet.outputtimestamptype",
    "hoodie.parquet.write",
    "hoodie.payload.",
    "hoodie.record.merge.",
    "hoodie.schema.on.read.",
    "hoodie.table.ordering.",
    "hoodie.write.record.merge.",
    "hoodie.write.set.null.",
)
_PLAIN = frozenset({"null", "boolean", "int", "long", "float", "double", "string", "bytes"})
_LOGICAL = frozenset({"decimal", "date", "timestamp-micros", "local-timestamp-micros"})
_WRITES = frozenset({"commit", "deltacommit", "replacecommit"})
_TAKEN = frozenset({"commit", "deltacommit", "rollback"})


def reasons_against(table: HudiTable) -> list[Problem]:
    """Returns the reasons that hold for every plan of the table."""
    problems = reasons_against_joining(table, with_logs=True)
    if mapping := sorted(name for name in table.metadata_partitions if name.startswith(_MAPS_KEYS)):
        problems.append(INDEX_MAPS_KEYS_TO_FILES.because(", ".join(mapping), hint=""))
    return problems


def reasons_against_joining(table: HudiTable, *, with_logs: bool) -> list[Problem]:
    """Returns the reasons against a replacement of file groups by files that Arrow writes. If no slice has
    logs (`with_logs`), nothing is merged. Indexes are no reason, since the client reads the keys of the new files."""
    problems = [*(_of_merging(table) if with_logs else ()), *_of_table(table)]
    problems += of_schema(json.loads(table.schema(with_meta_fields=True)))
    try:
        storage_of(table)
    except RefusedError as error:
        problems += error.reasons
    return problems


def reasons_against_plan(plan: Mapping[str, Any]) -> list[Problem]:
    """Returns the reasons that hold for one plan: Hudi's `HoodieCompactionPlan` as JSON."""
    problems: dict[str, Problem] = {}
    for operation in plan.get("operations") or ():
        logs = [parse_log_file_name(_name(path)) for path in operation.get("deltaFilePaths") or ()]
        where = f"partition '{operation.get('partitionPath') or ''}', file group {operation.get('fileId')}"
        if operation.get("bootstrapFilePath"):
            problems.setdefault("bootstrap", _bootstrapped(where))
        if not all(logs):
            problems.setdefault("log", _unknown_log(where))
    return list(problems.values())


def rules_of(table: HudiTable) -> MergeRules:
    """Returns the merge rules of a table for which `reasons_against` returns nothing."""
    instants = table.instants()
    completed = [each for each in instants if each.state == "COMPLETED"]
    writes = [each for each in instants if each.action in _WRITES]
    return MergeRules(
        cast("Any", merging_of(table).mode),
        table.ordering_fields,
        table.version,
        completed=frozenset(each.requested for each in completed if each.action in _WRITES),
        # `HoodieCompactor.getMaxInstantTime`
        latest=max((each.requested for each in completed if each.action in _TAKEN), default=""),
        pending=frozenset(each.requested for each in writes if each.state != "COMPLETED"),
        # `containsOrBeforeTimelineStarts` of the completed commits
        archived_before=min((each.requested for each in completed if each.action in _WRITES), default=""),
        with_default=columns_with_default(json.loads(table.schema(with_meta_fields=True))),
        by_older_hudi=older_hudi.merging_logs_otherwise(table) is not None,
    )


def columns_with_default(schema: Mapping[str, Any]) -> frozenset[str]:
    """Returns the columns of an Avro schema with a default other than null, in the column or in a nested field. Hudi
    may fill such a column if a file lacks it."""
    return frozenset(field["name"] for field in schema["fields"] if _has_default(field))


def _has_default(kind: Any) -> bool:
    if isinstance(kind, list):
        return any(map(_has_default, kind))
    if not isinstance(kind, dict):
        return False
    return kind.get("default") is not None or any(map(_has_default, kind.values()))


def slices_of(plan: Mapping[str, Any]) -> list[SliceFiles]:
    """Returns the file slices of a plan, the largest first."""
    operations = sorted(plan.get("operations") or (), key=_bytes_read, reverse=True)
    return [_slice(operation) for operation in operations]


def _slice(operation: Mapping[str, Any]) -> SliceFiles:
    partition = operation.get("partitionPath") or ""
    base = operation.get("dataFilePath")
    logs = (_name(path) for path in operation.get("deltaFilePaths") or ())
    at = f"{partition}/" if partition else ""
    names = tuple(at + name for name in logs)
    return SliceFiles(partition, operation["fileId"], at + _name(base) if base else None, names, _bytes_read(operation))


def _bytes_read(operation: Mapping[str, Any]) -> int:
    """Returns the planner's bytes to read, which are whole MiB rounded down (`CompactionStrategy.captureMetrics`); if
    the plan has none, a number that does not count as small."""
    megabytes = (operation.get("metrics") or {}).get("TOTAL_IO_READ_MB")
    return _UNKNOWN_BYTES if megabytes is None else int((megabytes + 0.5) * 1024 * 1024)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _of_merging(table: HudiTable) -> Iterator[Problem]:
    if table.version not in _VERSIONS:
        yield TABLE_VERSION_NOT_COVERED.because(str(table.version))
        return
    merging = merging_of(table)
    if merging.mode not in _ORDERS:
        detail = merging.mode or "none is known"
        yield MERGE_MODE_NOT_COVERED.because(detail)
    if merging.mode == _ORDERS[0] and not table.ordering_fields:
        yield MERGE_MODE_NOT_COVERED.because(title="Rows are merged by event time, but the table has no ordering field")
    if unknown := sorted(merging.payloads - TAKING_THE_NEWER):
        yield PAYLOAD_NOT_COVERED.because(", ".join(unknown))
    if found := sorted(name for name in table.properties if name.startswith(_MERGE_PROPERTIES)):
        yield MERGE_PROPERTIES_NOT_COVERED.because(", ".join(found))


def _of_table(table: HudiTable) -> Iterator[Problem]:
    if found := sorted(name for name in table.declared.hudi_options if name.startswith(_OPTIONS)):
        yield OPTIONS_NOT_COVERED.because(", ".join(found))
    if has_schema_on_read(table):
        yield SCHEMA_ON_READ.because()
    properties = table.properties
    if properties.get("hoodie.table.base.file.format", "PARQUET").upper() != "PARQUET":
        yield BASE_FILES_NOT_PARQUET.because(title="The table's base files are not Parquet")
    yield from preflight.columns_left_out(table)
    if table.records_changes:
        yield CHANGE_DATA_CAPTURE.because(
            title="The table records changes (CDC), and a compaction writes some of them", hint=""
        )
    if "hoodie.bootstrap.base.path" in properties:
        yield BOOTSTRAPPED_TABLE.because()


def of_schema(schema: Mapping[str, Any]) -> Iterator[Problem]:
    """Yields the reasons against a table with this latest Avro schema, with meta fields."""
    names = {field["name"] for field in schema["fields"]}
    if OPERATION in names:
        yield OPERATION_FIELD.because(OPERATION)
    found = {field["name"]: kind for field in schema["fields"] for kind in _uncovered(field["type"])}
    if found:
        detail = ", ".join(f"{name}: {kind}" for name, kind in sorted(found.items()))
        yield TYPES_NOT_COVERED.because(detail)


def _uncovered(kind: Any) -> Iterator[str]:
    """Yields the types in an Avro type whose values may differ between files that Hudi and Arrow write."""
    if isinstance(kind, list):
        others = [each for each in kind if each != "null"]
        if len(others) > 1:
            yield "union"
        for each in others:
            yield from _uncovered(each)
    elif isinstance(kind, str):
        if kind not in _PLAIN:
            yield kind
    elif logical := kind.get("logicalType"):
        if logical not in _LOGICAL:
            yield str(logical)
    elif kind["type"] == "record":
        for field in kind["fields"]:
            yield from _uncovered(field["type"])
    elif kind["type"] in {"array", "map"}:
        yield from _uncovered(kind["items" if kind["type"] == "array" else "values"])
    elif not isinstance(kind["type"], str) or kind["type"] not in _PLAIN:
        yield str(kind["type"]) if isinstance(kind["type"], str) else "nested type"


def _bootstrapped(where: str) -> Problem:
    return BOOTSTRAPPED_TABLE.because(where, title="Some rows are in the files that the table was bootstrapped from")


def _unknown_log(where: str) -> Problem:
    return LOG_FILES_NOT_COVERED.because(where)
