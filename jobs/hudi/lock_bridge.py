"""Lends the table's lock to a Hudi client that locks by itself, in the midst of its work (cleaning, clustering).

Such a client would take the writers' lock without a name: if the worker is killed meanwhile, nobody can tell whose the
lock file was that it left, and no writer gets in any more. So the client is opened with Hudi's own lock within one
process (`InProcessLockProvider`, a lock for each base path). We hold that one, and when the client waits for it we take
the table's lock, signed, let the client in, and give the table's lock back when it is out again.
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

    from jobs.hudi.lock import TableLock
    from jobs.hudi.table import HudiTable

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.02


@contextmanager
def lent(table: HudiTable, lock: TableLock, checkpoint: Callable[[], None]) -> Iterator[None]:
    """While this lasts, clients in the calling thread with the options `LENT_LOCK` lock the table whenever they lock.

    `checkpoint` may end a wait for the table's lock by raising. That error, or another one of the lock, takes the place
    of the one with which the client then fails.
    """
    lender = _LockBridge(table, lock, checkpoint)
    lender.start()
    try:
        yield
    except JobError as error:
        raise lender.error or error from None
    finally:
        lender.stop()
    if lender.error:
        raise lender.error


class _LockBridge:
    """A thread that holds the in-process lock, but for the moments when it holds the table's lock for a client."""

    def __init__(self, table: HudiTable, lock: TableLock, checkpoint: Callable[[], None]) -> None:
        self.error: JobError | None = None
        self._lock = lock
        self._checkpoint = checkpoint
        jvm = table.jvm
        with translated("preparing to lend the table's lock"):
            properties = jvm.hudi.common.config.TypedProperties()
            properties.setProperty("hoodie.base.path", table.base_path)
            configuration = jvm.hudi.common.config.LockConfiguration(properties)
            provider: Any = jvm.hudi.client.transaction.lock.InProcessLockProvider
            self._gate = provider(configuration, jvm.storage_conf()).getLock()
            # pyspark gives each Python thread one Java thread.
            self._client = jvm.java.java.lang.Thread.currentThread()
        self._is_shut = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"lock lender of {table.base_path}", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._is_shut.wait()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with translated("lending the table's lock"):
                self._gate.writeLock().lock()
                self._is_shut.set()
                try:
                    self._lend()
                finally:
                    self._gate.writeLock().unlock()
        except JobError as error:
            self.error = error
        finally:
            self._is_shut.set()

    def _lend(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            if not self._gate.hasQueuedThreads():
                continue
            try:
                with self._lock.held(self._checkpoint):
                    self._let_in()
            except JobError as error:
                logger.warning("the table's lock cannot be lent: %s", error.title)
                self.error = error
                self._turn_away()

    def _let_in(self) -> None:
        self._gate.writeLock().unlock()
        # Whoever asks for this lock first gets it, whoever waits: so not before the client is in, or has gone.
        while self._gate.hasQueuedThreads():
            self._ended.wait(POLL_SECONDS / 4)
        self._gate.writeLock().lock()

    def _turn_away(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            if self._gate.hasQueuedThreads():
                self._client.interrupt()
