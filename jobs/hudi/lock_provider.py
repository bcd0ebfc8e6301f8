"""Hudi's lock provider of a table: loads it, takes the lock, and distinguishes a held lock from an unreachable one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from jobs.errors import JobError
from jobs.format import lock_providers
from jobs.hudi.jvm import Jvm, innermost, refused_by_storage, translated
from jobs.hudi.lock_proof import field_of, storage_answers
from jobs.hudi.options import MULTI_WRITER, lock_options
from jobs.hudi.table import HudiTable
from jobs.hudi.write_probe import require_writable
from jobs.lock_errors import LockUnavailableError, LockUnusableError, TableLockedError
from jobs.storage.lock_servers import unreachable

CONNECT_SECONDS = 3.0
SILENCE_SECONDS = 20
_LOOK_SECONDS = 0.2

# Simple class names of Java exceptions in the chain of causes. If the chain has no other class, somebody else holds the
# lock (`LockManager.lock`, and `acquireLock` of the ZooKeeper provider); the second one is also raised when we
# interrupt the wait.
_HELD = frozenset({"HoodieLockException", "InterruptedException", "LockNotGrantedException"})
_NOT_LOADED = frozenset(
    {
        "ClassNotFoundException",
        "NoClassDefFoundError",
        "NoSuchMethodException",
        "NoSuchMethodError",
        "ClassCastException",
        "HoodieNotSupportedException",
        # An option is missing or malformed.
        "IllegalArgumentException",
    }
)


class Provider:
    """An instance of the provider, which can take the lock once. The next instance for the table can reuse its
    `config`, because making that takes longer than taking the lock."""

    def __init__(self, table: HudiTable, config: Any = None) -> None:
        """Loads the provider; most providers connect to their server then. Raises `LockUnavailableError` and
        `LockUnusableError`."""
        self._table = table
        self._lock = table.declared.lock
        self.kind = lock_providers.class_of(self._lock.provider)
        self._require_server()
        with translated("opening the table's lock", by=self._out_of_reach):
            self.config = self._made_config() if config is None else config
            self._manager = table.jvm.hudi.client.transaction.TransactionManager(self.config, self._storage())
            self.instance = self._manager.getLockManager().getLockProvider()

    def _made_config(self) -> Any:
        jvm = self._table.jvm
        options = {
            **MULTI_WRITER,
            **lock_options(self._lock),
            # There are few retries, because the job must reach a checkpoint after them.
            "hoodie.write.lock.client.num_retries": "1" if self.kind == lock_providers.IN_STORAGE else "5",
            "hoodie.table.name": self._table.name,
        }
        builder = jvm.hudi.config.HoodieWriteConfig.newBuilder().withPath(self._table.base_path)
        return builder.withProps(jvm.map(options)).build()

    def take(self) -> None:
        """Takes the lock. Raises `TableLockedError` when another holds it, and `LockUnavailableError`."""
        nothing = self._table.jvm.nothing()
        with translated("taking the table's lock", expected=TableLockedError, by=self._failure):
            self._manager.beginStateChange(nothing, nothing)

    def reach(self) -> None:
        """Reads the lock's state if loading the provider has not done so. Raises `LockUnavailableError`, or
        `StorageRefusedError` if the storage refused that."""
        if self.kind == lock_providers.IN_STORAGE:
            with translated("reading the table's lock", by=self._out_of_reach):
                if not storage_answers(self.instance):
                    # The provider gives no reason, so this looks for one.
                    require_writable(self._table.jvm, f"{self._table.base_path}/.hoodie/.locks")
                    raise LockUnavailableError(f"The lock below {self._table.base_path} cannot be read.")

    def release(self) -> None:
        with translated("releasing the table's lock"):
            self._manager.endStateChange(self._table.jvm.nothing())

    def close(self) -> None:
        """Frees the provider's connection.

        The filesystem provider has none; closing it would delete the lock file of any holder.
        """
        if lock_providers.is_in_a_file(self.kind):
            return
        with translated("closing the lock provider"):
            if self.kind == lock_providers.HIVE:
                # If the provider cannot unlock, its `close` leaves the heartbeats running. Once the metastore is back,
                # these would hold the lock until this worker ends.
                field_of(self.instance, "executor").shutdown()
            self._manager.close()

    def _storage(self) -> Any:
        """Returns a storage that provides the Hadoop options for the provider, which uses nothing else of it."""
        if self.kind != lock_providers.HIVE:
            return self._table.storage
        jvm = self._table.jvm
        conf = jvm.java.org.apache.hadoop.conf.Configuration(jvm.hadoop_conf)
        # Hive's default is to wait ten minutes for a metastore that accepts the connection but does not answer.
        conf.setIfUnset("hive.metastore.client.socket.timeout", f"{SILENCE_SECONDS}s")
        path = jvm.hudi.storage.StoragePath(self._table.base_path)
        storage_conf = jvm.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(conf)
        return jvm.hudi.storage.HoodieStorageUtils.getStorage(path, storage_conf)

    def _require_server(self) -> None:
        try:
            servers = lock_providers.servers_of(self._lock)
        except ValueError as error:
            raise LockUnusableError(f"{self.kind}: {error}.") from error
        if reason := unreachable(servers, CONNECT_SECONDS):
            raise LockUnavailableError(f"{_simple(self.kind)}: {reason}.")

    def _failure(self, causes: Sequence[tuple[str, str]]) -> JobError:
        """Returns the error for a Java exception and its causes, each as class name and message."""
        if {_simple(name) for name, _ in causes} <= _HELD:
            return TableLockedError(self._detail(causes))
        return self._out_of_reach(causes)

    def _out_of_reach(self, causes: Sequence[tuple[str, str]]) -> JobError:
        names = {_simple(name) for name, _ in causes}
        # The constructor of a provider with a lock file connects to nothing, and only refuses file systems that do not
        # create files atomically.
        is_refused = lock_providers.is_in_a_file(self.kind) and "HoodieLockException" in names
        if names & _NOT_LOADED or is_refused:
            return LockUnusableError(self._detail(causes), hint=self._what_to_load(names))
        if refused := refused_by_storage(_simple(self.kind), causes):
            return refused
        if "InterruptedException" in names:
            return LockUnavailableError(f"{_simple(self.kind)}: it did not answer in time.")
        return LockUnavailableError(self._detail(causes))

    def _detail(self, causes: Sequence[tuple[str, str]]) -> str:
        # For a missing class the message is the name of the class.
        return f"{_simple(self.kind)}: {innermost(causes) or ', '.join(_simple(name) for name, _ in causes)}"

    def _what_to_load(self, names: set[str]) -> str:
        bundle = lock_providers.bundle_of(self._lock, self._table.base_path)
        if self.kind == lock_providers.IN_STORAGE and not bundle:
            return "Hudi's storage-based lock exists on S3, GCS and Azure only. PATCH the table with another `lock`."
        if lock_providers.is_in_a_file(self.kind):
            return "PATCH the table with the `lock` that its writers use, such as ZooKeeper."
        if "IllegalArgumentException" in names:
            return "PATCH the table with all options that this lock provider needs, as its writers have them."
        jar = f"{bundle}:1.2.0" if bundle else f"the jar with {self.kind}"
        return (
            f"Give every worker {jar} (GROUNDSKEEPER_PACKAGES, or the jar in GROUNDSKEEPER_JARS), as its writers have."
        )


@contextmanager
def interrupted_by(checkpoint: Callable[[], None], jvm: Jvm) -> Iterator[None]:
    """Repeatedly interrupts the calling thread's wait in the JVM once `checkpoint` raises. A provider may wait for its
    server or for the holder for minutes, without checking anything. An interrupt ends sleeps and waits at once, but not
    a read from a connection."""
    thread = jvm.java.java.lang.Thread.currentThread()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_LOOK_SECONDS):
            try:
                checkpoint()
            except Exception:  # The next checkpoint raises it again.
                with translated("interrupting a wait for the lock"):
                    thread.interrupt()

    watcher = threading.Thread(target=watch, name="lock watcher", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        # Clears the flag, because otherwise the next wait of this thread would end at once.
        jvm.java.java.lang.Thread.interrupted()


def _simple(name: str) -> str:
    return name.rsplit(".", 1)[-1].rsplit("$", 1)[-1]
