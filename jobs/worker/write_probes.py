"""A worker's knowledge of whether it may write to its tables."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from jobs.errors import JobError
from jobs.hudi.write_probe import require_writable
from jobs.storage_errors import StorageRefusedError

if TYPE_CHECKING:
    from jobs.hudi.table import HudiTable

logger = logging.getLogger(__name__)


class WriteProbes:
    """The first job of each table tries it, and each one after a refusal. May be used from several threads."""

    def __init__(self) -> None:
        self._writable: set[str] = set()

    def are_due(self, table: HudiTable) -> bool:
        return table.base_path not in self._writable

    def refusal(self, table: HudiTable) -> StorageRefusedError | None:
        """Returns why this worker may not write to the table. None if it may, or if the storage does not say."""
        try:
            require_writable(table.jvm, f"{table.base_path}/.hoodie")
        except StorageRefusedError as error:
            return error
        except JobError as error:
            logger.warning("it is not known whether the table can be written: %s", error.detail)
            return None
        self._writable.add(table.base_path)
        return None

    def forget(self, table: HudiTable) -> None:
        """What was refused later may be refused at the start of the next job."""
        self._writable.discard(table.base_path)
