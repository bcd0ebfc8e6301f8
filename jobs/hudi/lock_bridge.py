"""The lock bridge: lends the table's lock to a Hudi client that locks by itself during its work (cleaning, clustering).
Such a client would take the writers' lock without an owner's name: if the worker were killed meanwhile, nobody could
tell whose lock file is left, and no writer could take the lock any more. So the client is opened with Hudi's own lock
within one process (`InProcessLockProvider`, one lock per base path). The bridge holds that lock; when the client waits
for it, the bridge takes and signs the table's lock, lets the client continue, and releases the table's lock when the
client has released the in-process lock."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from jobs.errors import JobError
from jobs.hudi import janino
from jobs.hudi.instant_generators import instant_generators
from jobs.hudi.jvm import translated
from jobs.hudi.lock import Checkpoint, TableLock
from jobs.hudi.table import HudiTable

logger = logging.getLogger(__name__)

_PAUSE_SECONDS = 0.2  # A pause in which waiting writers can take the lock.
_BETWEEN_INTERRUPTS_SECONDS = 0.02
_LONGEST_CALL = 10_000  # milliseconds

_SOURCE = """
package groundskeeper;

import java.util.concurrent.locks.ReentrantReadWriteLock;

public class LentLock {
  private static final long MILLISECONDS = 2L;

  private final ReentrantReadWriteLock lock;
  private volatile boolean ended;

  public LentLock(ReentrantReadWriteLock lock) {
    this.lock = lock;
  }

  public void take() {
    lock.writeLock().lock();
  }

  public void release() {
    lock.writeLock().unlock();
  }

  // Waits until a client wants the lock. Returns false if none does within this many milliseconds, or if the bridge
  // ends.
  public boolean isWanted(long most) throws InterruptedException {
    long last = System.nanoTime() + most * 1000000L;
    while (!ended && System.nanoTime() - last < 0) {
      if (lock.hasQueuedThreads()) {
        return true;
      }
      Thread.sleep(MILLISECONDS);
    }
    return false;
  }

  public void end() {
    ended = true;
  }

  // The lock is not fair, so it must not be taken back before the client has it or has stopped waiting.
  public void letIn() throws InterruptedException {
    release();
    while (lock.hasQueuedThreads()) {
      Thread.sleep(MILLISECONDS);
    }
    take();
  }
}
"""


@contextmanager
def bridged_lock(
    table: HudiTable, lock: TableLock, checkpoint: Checkpoint, *, may_pass: Callable[[], bool] = lambda: True
) -> Iterator[None]:
    """Makes clients of the calling thread with the options `LENT_LOCK` take the table's lock whenever they lock.

    `may_pass` is called with the table's lock held. If it returns False, the lock is released, and taken again a little
    later. If it raises, the client fails with that error. `checkpoint` may end a wait for the table's lock by raising;
    the client then fails with that error, or with another error of the lock.
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
            lock = provider(configuration, jvm.storage_conf()).getLock()
            self._lent = janino.instance(jvm, _SOURCE, "groundskeeper.LentLock", lock, beside=provider)
            self._locks = instant_generators(jvm).locks
            # pyspark gives each Python thread one Java thread.
            self._client = self._locks.user()
        self._is_ready = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"lock bridge of {table.base_path}", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._is_ready.wait()

    def stop(self) -> None:
        self._ended.set()
        # If the JVM is gone, the thread ends by itself.
        with suppress(JobError, OSError), translated("ending the lock bridge"):
            self._lent.end()
        self._thread.join()

    def _run(self) -> None:
        try:
            with translated("bridging the table's lock"):
                self._lent.take()
                self._is_ready.set()
                try:
                    self._serve_client()
                finally:
                    self._lent.release()
        except JobError as error:
            self.error = error
        finally:
            self._is_ready.set()

    def _serve_client(self) -> None:
        while not self._ended.is_set():
            if not self._lent.isWanted(_LONGEST_CALL):
                continue
            try:
                with self._lock.held(self._checkpoint, self._client):
                    if is_passed := self._may_pass():
                        self._lent.letIn()
                if not is_passed:
                    self._ended.wait(_PAUSE_SECONDS)
            except JobError as error:
                logger.warning("the lock bridge cannot take the table's lock: %s", error.title)
                self.error = error
                self._reject_client()

    def _reject_client(self) -> None:
        while not self._ended.is_set():
            if self._lent.isWanted(_LONGEST_CALL):
                self._locks.interrupt(self._client)
                self._ended.wait(_BETWEEN_INTERRUPTS_SECONDS)
