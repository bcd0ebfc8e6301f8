"""Checks whether the lock is still ours, by the state that its provider keeps outside this process. The client's memory
proves nothing: after a pause longer than its ZooKeeper session, Curator still reports the lock as acquired
(`InterProcessMutex.isAcquiredInThisProcess`), although another writer may have taken it and committed. The classes and
members named here are those of Hudi 1.2.0."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from jobs.errors import JobError
from jobs.format.lock_providers import DYNAMODB, HIVE, IN_STORAGE, PREFIX, ZOOKEEPER
from jobs.hudi.jvm import Jvm, translated
from jobs.hudi.table import HudiTable
from jobs.lock_errors import LockLostError, LockUnavailableError

# If less time is left, a lease may end before the commit has begun.
_LEAST_LEASE_SECONDS = 2.0
_METASTORE_SECONDS = 10


class Proof(Protocol):
    """A proof of ownership, created right after the lock was taken."""

    def holds(self) -> bool:
        """Returns whether we have held the lock all the time since then. Raises `JobError` if the state cannot be
        read."""


class SignedFile:
    """Hudi's filesystem lock: it is ours while its file has the content that we wrote."""

    def __init__(self, read: Callable[[], Mapping[str, Any]], note: Mapping[str, Any]) -> None:
        self._read = read
        self._note = note

    def holds(self) -> bool:
        return self._read() == self._note


class ZookeeperNode:
    """ZooKeeper: the first of the lock's nodes is the one that we created.

    The node is ephemeral and its number is never reused, so while it exists our session has not ended.
    """

    def __init__(self, jvm: Jvm, provider: Any) -> None:
        self._jvm = jvm
        self._mutex = provider.getLock()
        with translated("reading the lock's ZooKeeper nodes"):
            self._path = str(_of_this_thread(jvm, self._mutex))

    def holds(self) -> bool:
        with translated("reading the lock's ZooKeeper nodes"):
            nodes = self._jvm.read(self._mutex.getParticipantNodes())
        return bool(nodes) and nodes[0] == self._path


class StorageLock:
    """`StorageBasedLockProvider`: the lock file in the storage names its owner, and until when the lock is valid.

    The owner is a name of this instance of the provider, which renews the file only if nobody else has written it.
    `getLock` returns only the provider's memory.
    """

    def __init__(self, provider: Any) -> None:
        self._client = field_of(provider, "storageLockClient")
        self._owner = str(field_of(provider, "ownerId"))

    def holds(self) -> bool:
        with translated("reading the lock file"):
            found = self._client.readCurrentLockFile()
            state, file = str(found.getLeft().toString()), found.getRight()
            if state == "NOT_EXISTS":
                return False
            if state != "SUCCESS":
                raise LockUnavailableError("the storage did not return the lock file")
            left = file.get().getValidUntilMs() / 1000 - time.time()
            is_ours = str(file.get().getOwner()) == self._owner and not file.get().isExpired()
        return is_ours and left > _LEAST_LEASE_SECONDS


class DynamodbItem:
    """DynamoDB: a heartbeat on the condition that the item has our owner and version (`sendHeartbeat`) succeeds.

    The heartbeat also extends the lease. The lock's client refuses it once the lease has ended, even if nobody has
    taken the lock, because others may take it at any moment.
    """

    def __init__(self, provider: Any) -> None:
        with translated("reading the lock's item"):
            self._item = provider.getLock()

    def holds(self) -> bool:
        try:
            with translated("renewing the lock's item", by=_of_heartbeat):
                self._item.sendHeartBeat()
        except LockLostError:
            return False
        return True


class MetastoreLock:
    """The Hive metastore: the lock is ours while the metastore lists its number as acquired. The metastore forgets a
    lock without heartbeats for `hive.txn.timeout`, and never reuses a number. The check also extends the lock
    (`TxnHandler.checkLock`). The check uses a client of its own, because the provider's client would block its
    heartbeats for the whole socket timeout if the server is silent."""

    def __init__(self, jvm: Jvm, provider: Any, uris: str) -> None:
        with translated("reading the lock's number"):
            self._number = provider.getLock().getLockid()
            hive = jvm.java.org.apache.hadoop.hive
            self._conf = hive.conf.HiveConf(jvm.hadoop_conf, provider.getClass())
            if uris:
                self._conf.set("hive.metastore.uris", uris)
            self._conf.set("hive.metastore.client.socket.timeout", f"{_METASTORE_SECONDS}s")
            self._connect = hive.metastore.HiveMetaStoreClient

    def holds(self) -> bool:
        try:
            with translated("asking for the lock", by=_of_metastore):
                client = self._connect(self._conf)
                try:
                    return str(client.checkLock(self._number).getState().toString()) == "ACQUIRED"
                finally:
                    client.close()
        except LockLostError:
            return False


class Unproved:
    """A provider whose state we cannot read; jobs that need a proof are refused (`jobs.protocol.preflight`)."""

    def holds(self) -> bool:
        return True


def proof_of(table: HudiTable, kind: str, provider: Any) -> Proof:
    """Returns the proof for a lock that `provider` has just taken and that is not a file with our signature."""
    if kind in ZOOKEEPER:
        return ZookeeperNode(table.jvm, provider)
    if kind == IN_STORAGE:
        return StorageLock(provider)
    if kind in DYNAMODB:
        return DynamodbItem(provider)
    if kind == HIVE:
        return MetastoreLock(table.jvm, provider, table.declared.lock.options.get(f"{PREFIX}hivemetastore.uris", ""))
    return Unproved()


def storage_answers(provider: Any) -> bool:
    """Returns whether a `StorageBasedLockProvider` can read its lock file, or learn that there is none.

    Errors of the JVM are left to the caller.
    """
    found = field_of(provider, "storageLockClient").readCurrentLockFile()
    return str(found.getLeft().toString()) != "UNKNOWN_ERROR"


def _of_heartbeat(causes: Sequence[tuple[str, str]]) -> JobError:
    is_refused = any(name.endswith(".LockNotGrantedException") for name, _ in causes)
    return LockLostError() if is_refused else LockUnavailableError("DynamoDB did not answer")


def _of_metastore(causes: Sequence[tuple[str, str]]) -> JobError:
    # The last two concern locks of transactions; ours belongs to none.
    gone = ("NoSuchLockException", "TxnAbortedException", "NoSuchTxnException")
    is_gone = any(name.rpartition(".")[2] in gone for name, _ in causes)
    return LockLostError() if is_gone else LockUnavailableError("the Hive metastore did not answer")


def field_of(instance: Any, name: str, base: Any = None) -> Any:
    """Returns the value of a field that is not public, declared by the object's class or else by `base`."""
    with translated("reading the lock provider"):
        field = (base or instance.getClass()).getDeclaredField(name)
        field.setAccessible(True)
        return field.get(instance)


def _of_this_thread(jvm: Jvm, mutex: Any) -> Any:
    """Calls `InterProcessMutex.getLockPath`, which is not public."""
    kind = mutex.getClass()
    while kind.getSimpleName() != "InterProcessMutex":
        kind = kind.getSuperclass()
    java = jvm.java.java.lang
    gateway: Any = jvm.spark.sparkContext._gateway
    method = kind.getDeclaredMethod("getLockPath", gateway.new_array(java.Class, 0))
    method.setAccessible(True)
    return method.invoke(mutex, gateway.new_array(java.Object, 0))
