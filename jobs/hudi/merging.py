"""Reads how Hudi merges the rows of a table, with Hudi's own code for the table's properties (1.2.0)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs.errors import HudiError, RefusedError, refuse
from jobs.format import schema_history
from jobs.format.schema_history import LATEST, SchemaHistory
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi.jvm import translated
from jobs.hudi.table import HudiTable
from jobs.problems.tables import MERGE_RULES_UNCLEAR, SCHEMA_ON_READ_UNREADABLE, UNSENT_VALUES_IN_LOGS
from jobs.table_errors import TableEmptyError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobs.contract import Problem
    from jobs.hudi.records import FileSlice

_MODE, _STRATEGY = "hoodie.record.merge.mode", "hoodie.record.merge.strategy.id"

TAKING_THE_NEWER = frozenset(
    f"org.apache.hudi.common.model.{name}"
    for name in ("OverwriteWithLatestAvroPayload", "DefaultHoodieRecordPayload", "EventTimeAvroPayload")
)
"""Payloads whose merge only takes the newer row, in all versions of tables (`EightToNineUpgradeHandler`, 1.2.0, renames
them). The first is the default before 1.0, and the last is Flink's. The other two are subclasses of the first."""
_INFERRED_BELOW = 9
_BY_COLUMN = "hoodie.table.partial.update.mode"
_COMMIT_TIME, _CUSTOM = "COMMIT_TIME_ORDERING", "CUSTOM"
# `Type.fromValue` of Hudi's schema on read.
_UNKNOWN_TYPE = re.compile(r"Invalid value of Type: ([\w-]+)")


@dataclass(frozen=True)
class Merging:
    """The rules by which rows are merged. `mode` is the name of Hudi's `RecordMergeMode`, empty if there is none.
    `payloads` are the payload classes of the table, now and before its upgrade to version 9."""

    mode: str
    payloads: frozenset[str]


def merging_of(table: HudiTable) -> Merging:
    """Returns the mode of Hudi's readers (`HoodieReaderContext.initRecordMerger`): the mode in the table's properties;
    before version 9 the mode that follows from the properties. Raises RefusedError if they contradict each other."""
    try:
        return _merging_of(table)
    except HudiError as error:
        if type(error) is not HudiError:
            raise
        raise RefusedError([MERGE_RULES_UNCLEAR.because(error.detail)]) from error


def _merging_of(table: HudiTable) -> Merging:
    with translated("reading how rows are merged"):
        config: Any = table.meta.getTableConfig()
        mode = config.getRecordMergeMode()
        if table.version < _INFERRED_BELOW:
            found = table.jvm.hudi.common.table.HoodieTableConfig.inferMergingConfigsForPreV9Table(
                mode,
                config.getPayloadClass(),
                config.getRecordMergeStrategyId(),
                ",".join(table.ordering_fields) or None,
                config.getTableVersion(),
            )
            mode = found.getLeft()
        named = (config.getPayloadClassIfPresent().orElse(None), config.getLegacyPayloadClass())
        return Merging(str(mode or ""), frozenset(str(each) for each in named if each))


def by_column(table: HudiTable) -> list[str]:
    """Returns the property by which columns without a value keep the value of the earlier row, if it is set."""
    return [_BY_COLUMN] if table.properties.get(_BY_COLUMN) else []


def against_clustering_by_hudi(table: HudiTable, slices: Iterable[FileSlice]) -> list[Problem]:
    """Returns the refusal of a clustering by Hudi of slices with logs, if a value of the table's properties stands for
    values that were not sent. Hudi's client (1.2.0) does not pass that value to the readers of a clustering
    (`ClusteringExecutionStrategy.getReaderProperties`)."""
    if table.properties.get(_BY_COLUMN) != "FILL_UNAVAILABLE":
        return []
    number = sum(bool(item.log_files) for item in slices)
    return [UNSENT_VALUES_IN_LOGS.because(f"{number} file groups have logs")] if number else []


def unclear(table: HudiTable) -> list[Problem]:
    """Returns the refusal of jobs that merge rows, if the properties of a merge-on-read table do not tell Hudi how, or
    name an ordering field that is no column. Readers of file slices with logs fail on such a table."""
    if not table.is_merge_on_read:
        return []
    try:
        mode = merging_of(table).mode
    except RefusedError as error:
        return list(error.reasons)
    properties = table.properties
    # Hudi (1.2.0) infers the mode of older tables, but its readers need the property itself from version 8 on.
    if not mode or (table.version >= WITH_COMPLETION_TIMES and not properties.get(_MODE)):
        return [MERGE_RULES_UNCLEAR.because(f"{_MODE} is missing")]
    if mode == _CUSTOM and table.version >= _INFERRED_BELOW and not properties.get(_STRATEGY):
        return [MERGE_RULES_UNCLEAR.because(f"{_MODE} is {mode}, and {_STRATEGY} is missing")]
    if mode == _COMMIT_TIME:
        return []  # Nothing reads the ordering fields.
    try:
        columns = {field["name"] for field in json.loads(table.schema())["fields"]}
    except TableEmptyError:
        return []
    if unknown := [name for name in table.ordering_fields if name.partition(".")[0] not in columns]:
        return [MERGE_RULES_UNCLEAR.because(f"the ordering field {unknown[0]} is no column")]
    return []


def has_schema_on_read(table: HudiTable) -> bool:
    """Returns whether commits have a schema of Hudi's schema on read, which allows renamed and changed columns."""
    return bool(unreadable_schema(table)) or _schema_on_read(table) is not None


def schema_on_read_of(table: HudiTable) -> dict[str, str]:
    """Returns the extra metadata by which a commit keeps schema on read. Hudi's writers with that option write the same
    metadata (`BaseHoodieWriteClient.saveInternalSchema`, 1.2.0). The result is empty for a table without schema on
    read. Readers follow the latest commit whose operation may change the schema: if it knows of no schema on read,
    renamed columns lose their values. Raises RefusedError for a schema that Hudi cannot read."""
    refuse(unreadable_schema(table))
    found = _schema_on_read(table)
    return {LATEST: str(table.jvm.hudi.internal.schema.utils.SerDeHelper.toJson(found))} if found is not None else {}


def unreadable_schema(table: HudiTable) -> list[Problem]:
    """Returns the refusal of jobs that read rows by a schema on read which Hudi has stored and cannot read. Hudi 1.2.0
    writes the names of some types of Avro there that its `Type.fromValue` does not know."""
    try:
        _schema_on_read(table, expected=HudiError)
    except HudiError as error:
        if not (unknown := _UNKNOWN_TYPE.search(error.detail)):
            raise
        return [SCHEMA_ON_READ_UNREADABLE.because(f"a column has the type {unknown[1]}")]
    return []


def _schema_on_read(table: HudiTable, expected: type[HudiError] | None = None) -> Any | None:
    resolver = table.schema_resolver()
    with translated("reading the table's schema", expected=expected):
        return resolver.getTableInternalSchemaFromCommitMetadata().orElse(None)


def forgotten_changes(table: HudiTable, history: SchemaHistory) -> dict[str, int]:
    """Returns the columns that schema on read has renamed, or given the name of a dropped column, by the table's
    `history` (`SchemaHistory.changed`), if the writer of the latest commit had no schema on read. Readers then look for
    the columns of all files by their present names, also readers with schema on read (1.2.0)."""
    changed = history.changed(types=False)
    return changed if changed and not has_schema_on_read(table) else {}


def history_of(table: HudiTable) -> SchemaHistory:
    """Returns the history of the table's schema. Raises HudiError if it is unreadable."""
    resolver = table.schema_resolver()
    with translated("reading the history of the schema"):
        history = str(resolver.getTableHistorySchemaStrFromCommitMetadata().orElse(""))
    try:
        return schema_history.parsed(history)
    except ValueError as error:
        raise HudiError(str(error)) from error
