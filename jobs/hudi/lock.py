"""The table's own lock, the one that its writers take."""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.errors import FileMissingError, LockLostError, TableLockedError
from jobs.format import lock_providers
from jobs.hudi.jvm import translated
from jobs.hudi.lock_proof import SignedFile, Unproved, proof_of
from jobs.hudi.options import MULTI_WRITER, lock_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jobs.hudi.lock_proof import Proof
    from jobs.hudi.table import HudiTable

logger = logging.getLogger(__name__)

MAX_NOTE_BYTES = 64 * 1024


class TableLock:
    """Holds the writers' lock for a few seconds, so that no instant starts or commits during that time.

    A writer of Hudi 1.2 takes the same lock to start a commit and to complete one (`BaseHoodieWriteClient.startCommit`,
    `commitStats`). Locks are not re-entrant: clients used inside must be opened with `UNDER_OUR_LOCK`.
    """

    def __init__(self, table: HudiTable, owner: str) -> None:
        self._table = table
        self._owner = owner
        self._note = {"owner": f"groundskeeper {owner}", "pid": os.getpid(), **_machine()}
        self._proof: Proof = Unproved()

    @contextmanager
    def held(self, checkpoint: Callable[[], None]) -> Iterator[TableLock]:
        """Waits for the lock (`checkpoint` may end the wait by raising), holds it, and releases it."""
        sign = self._signature()
        manager = self._acquire(checkpoint)
        self._proof = SignedFile(self._read, self._note) if self._in_a_file else Unproved()
        try:
            sign()
            if not self._in_a_file:
                self._proof = proof_of(self._table, self._provider_class, manager)
            yield self
        finally:
            # Released only if it is still ours: Hudi's provider would delete any holder's lock file.
            if self._proof.holds():
                with translated("releasing the table's lock"):
                    manager.endStateChange(self._table.jvm.nothing())
            self._close(manager)

    def verify(self) -> None:
        """Raises `LockLostError` unless the lock has been ours all the time since it was taken.

        Call it right before an exclusive action; and right after it, since a worker that was frozen in between resumes
        without the lock.
        """
        if not self._proof.holds():
            raise LockLostError

    def break_stale(self) -> bool:
        """Removes a lock file that a dead worker of ours left when it was killed. Returns whether there was one.

        The file is of an earlier attempt of this owner (whose lease has expired), or of a process of this machine that
        no longer exists. Hudi's filesystem lock never expires; the locks of other providers end with the session that
        took them.
        """
        if not self._in_a_file:
            return False
        note = self._read()
        if not str(note.get("owner")).startswith("groundskeeper "):
            return False
        if note["owner"] != self._note["owner"] and not _has_died(note):
            return False
        logger.warning("removing the lock that %s left when it died", note["owner"])
        with translated("removing our own stale lock"):
            self._storage.deleteFile(self._path)
        return True

    def _acquire(self, checkpoint: Callable[[], None]) -> Any:
        jvm = self._table.jvm
        options = {
            **MULTI_WRITER,
            **lock_options(self._table.declared.lock),
            "hoodie.write.lock.client.num_retries": "5",
            "hoodie.table.name": self._table.name,
        }
        builder = jvm.hudi.config.HoodieWriteConfig.newBuilder().withPath(self._table.base_path)
        config = builder.withProps(jvm.map(options)).build()
        while True:
            checkpoint()
            with translated("taking the table's lock"):
                manager = jvm.hudi.client.transaction.TransactionManager(config, self._table.meta.getStorage())
            try:
                with translated("taking the table's lock", expected=TableLockedError):
                    manager.beginStateChange(jvm.nothing(), jvm.nothing())
            except TableLockedError:
                self._close(manager)
            else:
                return manager

    def _close(self, manager: Any) -> None:
        """Frees the provider's connection.

        The filesystem provider has none, and closing it would delete any holder's lock file.
        """
        if not self._in_a_file:
            with translated("closing the lock provider"):
                manager.close()

    # Hudi's filesystem provider (1.2) leaves its lock file empty. We sign it; Hudi itself only ever logs the content.

    @property
    def _in_a_file(self) -> bool:
        return lock_providers.is_in_a_file(self._table.declared.lock.provider)

    @property
    def _path(self) -> Any:
        folder = lock_providers.folder_of(self._table.declared.lock, self._table.base_path)
        return self._table.jvm.hudi.storage.StoragePath(f"{folder}/lock")

    @property
    def _storage(self) -> Any:
        """The lock's own storage: a table on S3 may have its lock on a local disk."""
        jvm = self._table.jvm
        return jvm.hudi.storage.HoodieStorageUtils.getStorage(self._path, jvm.storage_conf())

    def _signature(self) -> Callable[[], None]:
        """Returns a function that signs the lock file in one call of the JVM.

        A worker that is killed between taking the lock and signing it leaves a lock that is never removed, so that time
        must be short.
        """
        if not self._in_a_file:
            return lambda: None
        with translated("preparing to sign the table's lock"):
            files = self._table.jvm.java.org.apache.hadoop.fs
            path = files.Path(self._path.toString())
            system = path.getFileSystem(self._table.jvm.hadoop_conf)
            write = files.FileUtil.write

        def sign() -> None:
            with translated("signing the table's lock"):
                write(system, path, bytearray(json.dumps(self._note).encode()))

        return sign

    @property
    def _provider_class(self) -> str:
        return lock_providers.class_of(self._table.declared.lock.provider)

    def _read(self) -> dict[str, Any]:
        """Returns the content of the lock file; empty if there is none, since its holder may have just removed it."""
        try:
            with translated("reading the table's lock", expected=FileMissingError):
                stream = self._storage.open(self._path)
                try:
                    content = bytes(stream.readNBytes(MAX_NOTE_BYTES))
                finally:
                    stream.close()
            note = json.loads(content or b"{}")
        except (FileMissingError, ValueError, RecursionError):
            return {}
        return note if isinstance(note, dict) else {}


def for_at_most(seconds: float) -> Callable[[], None]:
    """Returns a checkpoint for `TableLock.held` that gives up with `TableLockedError` after this many seconds."""
    deadline = time.monotonic() + seconds

    def checkpoint() -> None:
        if time.monotonic() > deadline:
            raise TableLockedError(f"waited {seconds:.0f} s")

    return checkpoint


def _machine() -> dict[str, str]:
    """Returns what distinguishes processes with the same id: host, boot, and the container's process namespace."""
    found = {"host": socket.gethostname()}
    with suppress(OSError):
        found["boot"] = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        found["processes"] = str(Path("/proc/self/ns/pid").readlink())
    return found


def _has_died(note: Mapping[str, Any]) -> bool:
    """Returns whether the process that signed no longer exists; false if it did not run on this machine."""
    machine = _machine()
    if "boot" not in machine or any(note.get(key) != value for key, value in machine.items()):
        return False
    try:
        os.kill(int(note["pid"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, KeyError, ValueError):
        return False
    return False
