"""Reads how Hudi merges the rows of a table, with Hudi's own code for the table's properties (1.2.0)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jobs.errors import HudiError
from jobs.format import schema_history
from jobs.format.schema_history import SchemaHistory
from jobs.hudi.jvm import translated
from jobs.hudi.table import HudiTable

TAKING_THE_NEWER = frozenset(
    f"org.apache.hudi.common.model.{name}"
    for name in ("OverwriteWithLatestAvroPayload", "DefaultHoodieRecordPayload", "EventTimeAvroPayload")
)
"""Payloads whose merge only takes the newer row, in all versions of tables (`EightToNineUpgradeHandler`, 1.2.0, renames
them). The first is the default before 1.0, the last Flink's; both others are subclasses of the first."""
_INFERRED_BELOW = 8


@dataclass(frozen=True)
class Merging:
    """The rules by which rows are merged. `mode` is the name of Hudi's `RecordMergeMode`, empty if there is none.
    `payloads` are the payload classes of the table, now and before its upgrade to version 9."""

    mode: str
    payloads: frozenset[str]


def merging_of(table: HudiTable) -> Merging:
    """Returns the mode of Hudi's readers (`HoodieReaderContext.initRecordMerger`): the mode in the table's properties;
    before version 8 the mode that follows from payload class, strategy and ordering fields."""
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


def has_schema_on_read(table: HudiTable) -> bool:
    """Returns whether commits have a schema of Hudi's schema on read, which allows renamed and changed columns."""
    resolver = table.schema_resolver()
    with translated("reading the table's schema"):
        return bool(resolver.getTableInternalSchemaFromCommitMetadata().isPresent())


def history_of(table: HudiTable) -> SchemaHistory:
    """Returns the history of the table's schema. Raises HudiError if it is unreadable."""
    resolver = table.schema_resolver()
    with translated("reading the history of the schema"):
        history = str(resolver.getTableHistorySchemaStrFromCommitMetadata().orElse(""))
    try:
        return schema_history.parsed(history)
    except ValueError as error:
        raise HudiError(str(error)) from error
