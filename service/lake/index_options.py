"""The options that keep a table's indexes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from jobs.format.index_definitions import DEFINITIONS_FILE, FILES, Indexes
from service.lake.storage import MAX_CONFIG_BYTES, Storage
from service.lake.table_config import TableConfig
from service.model.storage_errors import PathNotFoundError

log = logging.getLogger(__name__)


def index_options(storage: Storage, config: TableConfig, known: Mapping[str, Any]) -> dict[str, str]:
    """Returns the options without which a Spark writer deletes the table's indexes.

    The file of definitions is read only if the table has other indexes than its profile `known`. Returns no options if
    the file is damaged: an audit names the damage.
    """
    partitions = config.metadata_partitions
    stored = known.get("index_options")
    if stored is not None and set(partitions) == set(known.get("metadata_partitions") or ()):
        return dict(stored)
    if not set(partitions) - {FILES}:
        return {}
    try:
        content = storage.read(DEFINITIONS_FILE, most=MAX_CONFIG_BYTES)
    except PathNotFoundError:
        content = None
    try:
        return Indexes.of(partitions, content).keeping()
    except ValueError as error:
        log.warning("The indexes of %s are not known: %s", storage.base_path, error)
        return {}
