"""The lock bridge: gives the table's lock to a Hudi client that locks by itself during its work (cleaning, clustering).

Such a client would take the writers' lock without an owner's name: if the worker is killed in the meantime, the lock
file that it leaves cannot be attributed, and no writer can take the lock any more. So the client is opened with Hudi's
own lock within one process (`InProcessLockProvider`, one lock per base path). The bridge holds that lock; when the
client waits for it, the bridge takes the table's lock, signed, lets the client continue, and releases the table's lock
when the client has released the in-process lock.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jobs.errors import JobError
from jobs.hudi.jvm import translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jobs.hudi.lock import Checkpoint, TableLock
    from jobs.hudi.table import HudiTable

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.02
_PAUSE_SECONDS = 0.2  # Writers that wait for the lock get it meanwhile.


@contextmanager
def bridged_lock(
    table: HudiTable, lock: TableLock, checkpoint: Checkpoint, *, may_pass: Callable[[], bool] = lambda: True
) -> Iterator[None]:
    """Makes clients of the calling thread with the options `LENT_LOCK` take the table's lock whenever they lock.

    `may_pass` is asked with the table's lock held. If it returns False, the lock is released, and taken again a little
    later; if it raises, that is the error of the client.

    `checkpoint` may end a wait for the table's lock by raising. The client then fails, and its error is replaced by
    that one, or by another error of the lock.
    """
    bridge = _LockBridge(table, lock, checkpoint, may_pass)
    bridge.start()
    try:
        yield
    except JobError as error:
        raise bridge.error or error from None
    finally:
        bridge.stop()
    if bridge.error:
        raise bridge.error


class _LockBridge:
    """A thread that holds the in-process lock, except while it holds the table's lock for a client."""

    def __init__(self, table: HudiTable, lock: TableLock, checkpoint: Checkpoint, may_pass: Callable[[], bool]) -> None:
        self.error: JobError | None = None
        self._may_pass = may_pass
        self._lock = lock
        self._checkpoint = checkpoint
        jvm = table.jvm
        with translated("preparing the lock bridge"):
            properties = jvm.hudi.common.config.TypedProperties()
            properties.setProperty("hoodie.base.path", table.base_path)
            configuration = jvm.hudi.common.config.LockConfiguration(properties)
            provider: Any = jvm.hudi.client.transaction.lock.InProcessLockProvider
            self._in_process_lock = provider(configuration, jvm.storage_conf()).getLock()
            # pyspark gives each Python thread one Java thread.
            self._client = jvm.java.java.lang.Thread.currentThread()
        self._is_ready = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"lock bridge of {table.base_path}", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._is_ready.wait()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with translated("bridging the table's lock"):
                self._in_process_lock.writeLock().lock()
                self._is_ready.set()
                try:
                    self._serve_client()
                finally:
                    self._in_process_lock.writeLock().unlock()
        except JobError as error:
            self.error = error
        finally:
            self._is_ready.set()

    def _serve_client(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            if not self._in_process_lock.hasQueuedThreads():
                continue
            try:
                with self._lock.held(self._checkpoint):
                    if is_passed := self._may_pass():
                        self._pass_to_client()
                if not is_passed:
                    self._ended.wait(_PAUSE_SECONDS)
            except JobError as error:
                logger.warning("the lock bridge cannot take the table's lock: %s", error.title)
                self.error = error
                self._reject_client()

    def _pass_to_client(self) -> None:
        self._in_process_lock.writeLock().unlock()
        # The lock is not fair, so it must not be taken back before the client has it or has stopped waiting.
        while self._in_process_lock.hasQueuedThreads():
            self._ended.wait(POLL_SECONDS / 4)
        self._in_process_lock.writeLock().lock()

    def _reject_client(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            if self._in_process_lock.hasQueuedThreads():
                self._client.interrupt()
