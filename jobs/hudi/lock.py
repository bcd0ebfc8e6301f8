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
    """Holds the writers' lock for a few seconds, so that nothing starts or commits meanwhile.

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
            # Released only if it is still ours: Hudi's provider would delete whoever's lock file is there.
            if self._proof.holds():
                with translated("releasing the table's lock"):
                    manager.endStateChange(self._table.jvm.nothing())
            self._close(manager)

    def verify(self) -> None:
        """Raises `LockLostError` when the lock has not been ours all the time since it was taken.

        Call it right before what must not be shared; and right after it, since whoever is frozen in between wakes up
        without the lock and goes on.
        """
        if not self._proof.holds():
            raise LockLostError

    def break_stale(self) -> bool:
        """Removes a lock file that a dead worker of ours left when it was killed. True if there was one.

        That is one of an earlier attempt of this owner (whose lease has run out), or of a process of this machine that
        is no more. Hudi's filesystem lock never expires; the locks of other providers end with the session that took
        them.
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
        """Frees the provider's connection; the filesystem provider has none, and would delete anybody's lock file."""
        if not self._in_a_file:
            with translated("closing the lock provider"):
                manager.close()

    # The lock file of Hudi's filesystem provider is empty (in 1.2); we sign it, which Hudi itself only ever logs.

    @property
    def _in_a_file(self) -> bool:
        return self._table.declared.lock.provider == "filesystem"

    @property
    def _path(self) -> Any:
        folder = self._table.declared.lock.options.get("hoodie.write.lock.filesystem.path")
        java_path = self._table.jvm.hudi.storage.StoragePath
        return java_path(f"{folder}/lock") if folder else java_path(f"{self._table.base_path}/.hoodie/lock")

    @property
    def _storage(self) -> Any:
        """The lock's own: a table on S3 may have its lock on a disk."""
        jvm = self._table.jvm
        return jvm.hudi.storage.HoodieStorageUtils.getStorage(self._path, jvm.storage_conf())

    def _signature(self) -> Callable[[], None]:
        """Signs in one call of the JVM: whoever is killed between taking the lock and signing it leaves it for good."""
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
        """What the lock file says; nothing if there is none, which its holder may have removed this very moment."""
        try:
            with translated("reading the table's lock", expected=FileMissingError):
                stream = self._storage.open(self._path)
                try:
                    content = bytes(stream.readNBytes(MAX_NOTE_BYTES))
                finally:
                    stream.close()
            note = json.loads(content or b"{}")
        except (FileMissingError, ValueError):
            return {}
        return note if isinstance(note, dict) else {}


def for_at_most(seconds: float) -> Callable[[], None]:
    """A checkpoint for `TableLock.held` that gives up with `TableLockedError` after so many seconds."""
    deadline = time.monotonic() + seconds

    def checkpoint() -> None:
        if time.monotonic() > deadline:
            raise TableLockedError(f"waited {seconds:.0f} s")

    return checkpoint


def _machine() -> dict[str, str]:
    """What tells processes of the same number apart: host, boot, and the container's process ids."""
    found = {"host": socket.gethostname()}
    with suppress(OSError):
        found["boot"] = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        found["processes"] = str(Path("/proc/self/ns/pid").readlink())
    return found


def _has_died(note: Mapping[str, Any]) -> bool:
    """Whether the process that signed is of this machine, where we can see that it is no more."""
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
