"""The members of a table's profile about its indexes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from jobs.format.index_definitions import DEFINITIONS_FILE, EXPRESSION, FILES, Indexes
from service.lake.storage import MAX_CONFIG_BYTES, Storage
from service.lake.table_config import TableConfig
from service.model.storage_errors import PathNotFoundError

log = logging.getLogger(__name__)


def of_indexes(storage: Storage, config: TableConfig, known: Mapping[str, Any]) -> dict[str, Any]:
    """Returns two members of a `TableProfile`: the options without which a Spark writer deletes the table's indexes,
    and the expression indexes that cleans would mix up with another index.

    The file of index definitions is read only if the table has other indexes than its profile `known`, or has an
    expression index, whose type may change. If the file is damaged, the members are empty, and an audit names the
    damage.
    """
    partitions = config.metadata_partitions
    stored = known.get("index_options")
    has_expressions = any(name.startswith(EXPRESSION) for name in partitions)
    if stored is not None and not has_expressions and set(partitions) == set(known.get("metadata_partitions") or ()):
        return _members(stored)
    if not set(partitions) - {FILES}:
        return _members()
    try:
        content = storage.read(DEFINITIONS_FILE, most=MAX_CONFIG_BYTES)
    except PathNotFoundError:
        content = None
    try:
        found = Indexes.of(partitions, content)
    except ValueError as error:
        log.warning("The indexes of %s are not known: %s", storage.base_path, error)
        return _members()
    return _members(found.keeping(), found.mixed_by_cleans(partitions))


def _members(options: Mapping[str, str] | None = None, mixed: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"index_options": dict(options or {}), "indexes_mixed_by_cleans": mixed}
