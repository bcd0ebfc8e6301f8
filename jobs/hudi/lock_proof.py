"""Whether a lock that was taken is still ours, by what its provider keeps outside of this process.

A client's own memory proves nothing: after a pause longer than its ZooKeeper session, Curator still says that the lock
is acquired (`InterProcessMutex.isAcquiredInThisProcess`), while another writer has had it and has committed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from jobs.errors import JobError
from jobs.hudi.jvm import translated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jobs.hudi.table import HudiTable

ZOOKEEPER = (
    "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
    "org.apache.hudi.client.transaction.lock.ZookeeperBasedImplicitBasePathLockProvider",
)
IN_STORAGE = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"


class Proof(Protocol):
    """Made right after the lock was taken."""

    def holds(self) -> bool:
        """Whether we have held it ever since. What cannot be found out counts as lost."""


class SignedFile:
    """Hudi's filesystem lock: its file holds what we wrote into it."""

    def __init__(self, read: Callable[[], Mapping[str, Any]], note: Mapping[str, Any]) -> None:
        self._read = read
        self._note = note

    def holds(self) -> bool:
        return self._read() == self._note


class ZookeeperNode:
    """The first of the lock's nodes is the one that we made. It is ephemeral and its number is never given again, so
    while it is there our session has never ended."""

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
    """`StorageBasedLockProvider`: the lock file that it keeps renewing, with its owner and its end."""

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
    """A provider that tells nothing we know of. Only the timeline is left to judge by: see `Replacement`."""

    def holds(self) -> bool:
        return True


def proof_of(table: HudiTable, provider_class: str, manager: Any) -> Proof:
    """For providers that keep their lock elsewhere than in a file of ours; `manager` is a `TransactionManager`."""
    if provider_class in ZOOKEEPER:
        with translated("looking at the lock"):
            return ZookeeperNode(table, manager.getLockManager().getLockProvider())
    if provider_class == IN_STORAGE:
        with translated("looking at the lock"):
            return StorageLock(manager.getLockManager().getLockProvider())
    return Unproved()


def _of_this_thread(table: HudiTable, mutex: Any) -> Any:
    """`InterProcessMutex.getLockPath`, which is not public."""
    kind = mutex.getClass()
    while kind.getSimpleName() != "InterProcessMutex":
        kind = kind.getSuperclass()
    java = table.jvm.java.java.lang
    gateway: Any = table.jvm.spark.sparkContext._gateway
    method = kind.getDeclaredMethod("getLockPath", gateway.new_array(java.Class, 0))
    method.setAccessible(True)
    return method.invoke(mutex, gateway.new_array(java.Object, 0))
