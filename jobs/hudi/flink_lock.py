"""The lock that a Flink job takes if its options name none: the file `.hoodie/.aux/lock` (`StreamerUtil.getLockConfig`,
`FileSystemBasedLockProvider.getLockConfig`, Hudi 1.2.0). Flink takes it even if the other writers of the table use
another lock.

Without a common lock two clients write the metadata table at once. Observed beside a job with Flink's defaults: the
first compaction failed, and the metadata table listed files that were gone. So on a table that Flink writes, this
service holds that file as well. The service takes the table's lock first. So if the file then has our signature, a dead
worker has left it.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from jobs.contract import WriterEngine
from jobs.errors import JobError
from jobs.format import lock_providers
from jobs.format.lock_file import SIGNED_BY, UNSIGNED
from jobs.hudi.jvm import translated
from jobs.hudi.small_file import read_object
from jobs.hudi.table import HudiTable
from jobs.lock_errors import TableLockedError

logger = logging.getLogger(__name__)

# Writers wait for the table's lock as long, because this service holds it meanwhile.
WAIT_SECONDS = 30.0
# For Flink the file expires after a minute. But a Flink job that was suspended in the midst of a commit completes this
# commit without another look at its lock.
LEFT_AFTER_MINUTES = 10
KEPT_EVERY_SECONDS = 15.0
_EXPIRES = f"{lock_providers.PREFIX}filesystem.expire"
_PAUSE_SECONDS = 0.1
_FOLDER = ".hoodie/.aux"
_FILE = f"{_FOLDER}/lock"
_HINT = (
    "Nothing was changed; the job is tried again. Give the Flink job the lock of all other writers, as `writer-options`"
    " prints it."
)
# On object storages Flink does not use a lock file (`StorageSchemes.isAtomicCreationSupported`).
_ATOMIC = ("/", "file:", "hdfs:", "viewfs:")


def is_needed(table: HudiTable) -> bool:
    """Returns whether Flink is a declared or detected writer, and its default is another lock than the table's."""
    if WriterEngine.FLINK not in table.declared.writers_engines or not table.base_path.startswith(_ATOMIC):
        return False
    lock = table.declared.lock
    folder = lock_providers.folder_of(lock, table.base_path).rstrip("/")
    return not (lock_providers.is_in_a_file(lock.provider) and folder.endswith(f"{table.path}/{_FOLDER}"))


class FlinkLock:
    """Holds the file by means of Hudi's provider. The provider of a later client removes the file if it has expired.
    `signature` is the content of the file, with a `token` of its own."""

    def __init__(self, table: HudiTable, signature: Mapping[str, Any]) -> None:
        self._table, self._signature = table, signature
        self._path = f"{table.base_path.rstrip('/')}/{_FILE}"
        self._is_held = False

    @contextmanager
    def held(self, checkpoint: Callable[[], None]) -> Iterator[None]:
        """Holds the file; the table's lock must be held. Raises `TableLockedError` after `WAIT_SECONDS`."""
        if not is_needed(self._table):
            yield
            return
        provider = self._prepared()
        self._take(provider, checkpoint)
        ended = threading.Event()
        keeping = threading.Thread(target=self._keep, args=(ended,), name="Flink's lock", daemon=True)
        keeping.start()
        try:
            yield
        finally:
            ended.set()
            keeping.join()
            self._release(provider)

    def holds(self) -> bool:
        """Returns whether the file is still ours, or was not taken at all. Flink removes the file when it has
        expired."""
        return not self._is_held or self._is_ours()

    def _prepared(self) -> Any:
        hudi = self._table.jvm.hudi
        provider = hudi.client.transaction.lock.FileSystemBasedLockProvider
        with translated(f"preparing {_FILE}"):
            options = provider.getLockConfig(self._table.base_path)
            options.put(_EXPIRES, str(LEFT_AFTER_MINUTES))
            return provider(hudi.common.config.LockConfiguration(options), self._table.jvm.storage_conf())

    def _take(self, provider: Any, checkpoint: Callable[[], None]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not self._is_taken(provider):
            holder = str(self._read().get("owner") or UNSIGNED)
            if holder.startswith(SIGNED_BY):
                logger.warning("removing %s, which %s has left", _FILE, holder)
                _remove(provider)
            elif time.monotonic() > deadline:
                raise TableLockedError(f"{_FILE}, which Flink takes by default, is held by {holder}", hint=_HINT)
            else:
                checkpoint()
                time.sleep(_PAUSE_SECONDS)

    def _is_taken(self, provider: Any) -> bool:
        with translated(f"taking {_FILE}"):
            if not provider.tryLock(0, self._table.jvm.java.java.util.concurrent.TimeUnit.MILLISECONDS):
                return False
            self._write()
            self._is_held = True
            return True

    def _keep(self, ended: threading.Event) -> None:
        """Writes the file anew, before Flink would remove it."""
        while not ended.wait(KEPT_EVERY_SECONDS):
            with suppress(JobError, OSError), translated(f"keeping {_FILE}"):
                if self._is_ours():
                    self._write()

    def _release(self, provider: Any) -> None:
        """Removes the file if it is still ours: it may have expired, and have another holder."""
        try:
            if self._is_ours():
                _remove(provider)
        except JobError as error:
            logger.warning("%s stays until it expires, because it could not be removed: %s", _FILE, error.detail)
        finally:
            self._is_held = False

    def _is_ours(self) -> bool:
        return bool(self._read().get("token") == self._signature["token"])

    def _write(self) -> None:
        self._table.jvm.reads.write(self._table.storage, self._path, json.dumps(self._signature))

    def _read(self) -> dict[str, Any]:
        return read_object(self._table.jvm, self._table.storage, self._path, _FILE)


def _remove(provider: Any) -> None:
    with translated(f"removing {_FILE}"):
        provider.unlock()
