"""Checks whether a lock that was taken is still ours, by the state that its provider keeps outside this process.

A client's own memory proves nothing: after a pause longer than its ZooKeeper session, Curator still says that the lock
is acquired (`InterProcessMutex.isAcquiredInThisProcess`), while another writer has held it and has committed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from jobs.errors import JobError
from jobs.format.lock_providers import IN_STORAGE, ZOOKEEPER
from jobs.hudi.jvm import translated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jobs.hudi.table import HudiTable


class Proof(Protocol):
    """A proof of ownership, created right after the lock was taken."""

    def holds(self) -> bool:
        """Returns whether we have held the lock ever since. An unknown state counts as lost."""


class SignedFile:
    """Hudi's filesystem lock: its file holds the content that we wrote into it."""

    def __init__(self, read: Callable[[], Mapping[str, Any]], note: Mapping[str, Any]) -> None:
        self._read = read
        self._note = note

    def holds(self) -> bool:
        return self._read() == self._note


class ZookeeperNode:
    """ZooKeeper: the first of the lock's nodes is the one that we created.

    It is ephemeral and its number is never reused, so while it exists our session has never ended.
    """

    def __init__(self, table: HudiTable, provider: Any) -> None:
        self._table = table
        self._mutex = provider.getLock()
        with translated("reading the lock's ZooKeeper nodes"):
            self._path = str(_of_this_thread(table, self._mutex))

    def holds(self) -> bool:
        with suppress(JobError), translated("reading the lock's ZooKeeper nodes"):
            nodes = self._table.jvm.read(self._mutex.getParticipantNodes())
            return bool(nodes) and nodes[0] == self._path
        return False


class StorageLock:
    """`StorageBasedLockProvider`: the lock file that it keeps renewing, with its owner and its expiry."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._owner = self._current()

    def holds(self) -> bool:
        return self._owner is not None and self._current() == self._owner

    def _current(self) -> str | None:
        with suppress(JobError), translated("reading the lock file"):
            file = self._provider.getLock()
            return None if file is None or file.isExpired() else str(file.getOwner())
        return None


class Unproved:
    """A provider without a state that we can read. Only the timeline remains as a check: see `Replacement`."""

    def holds(self) -> bool:
        return True


def proof_of(table: HudiTable, provider_class: str, manager: Any) -> Proof:
    """Returns the proof for providers whose lock is not a file that we sign; `manager` is a `TransactionManager`."""
    if provider_class in ZOOKEEPER:
        with translated("reading the lock provider"):
            return ZookeeperNode(table, manager.getLockManager().getLockProvider())
    if provider_class == IN_STORAGE:
        with translated("reading the lock provider"):
            return StorageLock(manager.getLockManager().getLockProvider())
    return Unproved()


def _of_this_thread(table: HudiTable, mutex: Any) -> Any:
    """Calls `InterProcessMutex.getLockPath`, which is not public."""
    kind = mutex.getClass()
    while kind.getSimpleName() != "InterProcessMutex":
        kind = kind.getSuperclass()
    java = table.jvm.java.java.lang
    gateway: Any = table.jvm.spark.sparkContext._gateway
    method = kind.getDeclaredMethod("getLockPath", gateway.new_array(java.Class, 0))
    method.setAccessible(True)
    return method.invoke(mutex, gateway.new_array(java.Object, 0))
