"""Tests whether a worker can write to its tables."""

from __future__ import annotations

import logging

from jobs.errors import JobError
from jobs.hudi.table import HudiTable
from jobs.hudi.write_probe import require_writable
from jobs.storage_errors import StorageRefusedError

logger = logging.getLogger(__name__)


class WriteProbes:
    """Remembers which tables this worker can write to. The first job of each table makes the test, and each job after a
    refusal makes it again. May be used from several threads."""

    def __init__(self) -> None:
        self._writable: set[str] = set()

    def are_due(self, table: HudiTable) -> bool:
        return table.base_path not in self._writable

    def refusal(self, table: HudiTable) -> StorageRefusedError | None:
        """Returns why this worker cannot write to the table; None if it can, or if the test gave no answer."""
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
        """Makes the next job test the table again."""
        self._writable.discard(table.base_path)
