"""The table's own lock, the one that its writers take."""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cached_property, partial
from typing import Any, Protocol

from jobs.errors import JobError
from jobs.format import lock_providers
from jobs.format.lock_file import SIGNED_BY, UNSIGNED
from jobs.hudi.flink_lock import FlinkLock
from jobs.hudi.held_lock import AWAY_SECONDS, PAUSE_SECONDS, proved_again, set_aside, why_not
from jobs.hudi.instant_generators import instant_generators
from jobs.hudi.jvm import innermost, refused_by_storage, translated
from jobs.hudi.lock_note import has_died, process
from jobs.hudi.lock_proof import Proof, SignedFile, Unproved, proof_of
from jobs.hudi.lock_provider import Provider, interrupted_by
from jobs.hudi.lock_status import LockStatus, duration, on_server
from jobs.hudi.small_file import read_object
from jobs.hudi.table import HudiTable
from jobs.hudi.write_probe import require_writable
from jobs.lock_errors import LockLostError, LockUnavailableError, LockUnusableError, TableLockedError
from jobs.storage_errors import StorageRefusedError

logger = logging.getLogger(__name__)

RELEASE_SECONDS = 10.0
LEFT_AFTER_SECONDS = 3600.0
# Longest wait for a lock that others hold, unless the table's declaration or the service says otherwise.
WAIT_SECONDS = 120.0
_SAID_AFTER_SECONDS = 2.0


class Checkpoint(Protocol):
    def __call__(self, waits_for: str = "") -> None:
        """Raises if the wait has to end; `waits_for` says what the caller waits for."""


class TableLock:
    """Holds the writers' lock for a few seconds, so that no instant starts or commits during that time.

    A writer of Hudi 1.2 takes the same lock to start a commit and to complete one (`BaseHoodieWriteClient.startCommit`,
    `commitStats`). Locks are not re-entrant: clients used inside must be opened with `UNDER_OUR_LOCK`.
    """

    def __init__(self, table: HudiTable, owner: str) -> None:
        self._table = table
        self._owner = owner
        # The token distinguishes attempts at one job in one worker: a lost attempt may still hold the lock, or work.
        self._note = {"owner": f"{SIGNED_BY}{owner}", "token": uuid.uuid4().hex, **process()}
        self._flink_lock = FlinkLock(table, self._note)
        self._proof: Proof = Unproved()
        self._config: Any = None  # The configuration of providers.
        self._begun = time.monotonic()

    @contextmanager
    def held(self, checkpoint: Checkpoint, user: Any = None) -> Iterator[TableLock]:
        """Waits for the lock (`checkpoint` may end the wait by raising), holds it for a thread of the JVM, by default
        the calling one (`LockUser` of `jobs.hudi.held_locks`), and releases it.

        Raises `TableLockedError` if others hold the lock for longer than the table's `wait_seconds` and longer than the
        job has worked (a new attempt would have to repeat that work). Raises `LockUnavailableError` if the lock's
        server does not answer for that time, or for `AWAY_SECONDS`. Raises `StorageRefusedError` and
        `LockUnusableError` without waiting.
        """
        sign, locks = self._signature(), instant_generators(self._table.jvm).locks
        started = time.monotonic()
        try:
            with set_aside(locks):
                provider = self._acquire(checkpoint)
        finally:
            self._table.lock_wait_seconds += time.monotonic() - started
        self._proof = SignedFile(self._read, self._note) if self._in_a_file else Unproved()
        try:
            sign()
        except JobError:
            # An unsigned file would not count as ours, so it would never be removed.
            with suppress(JobError):
                provider.release()
            self._close(provider)
            raise
        judge = None
        try:
            if not self._in_a_file:
                self._proof = proof_of(self._table, provider.kind, provider.instance)
            self._table.clock.reload()
            with (
                proved_again(locks, lambda: self._is_lost(AWAY_SECONDS), user) as judge,
                self._flink_lock.held(checkpoint),
            ):
                yield self
        finally:
            self._release(provider, judge)

    def verify(self) -> None:
        """Raises `LockLostError` unless the lock has been ours all the time since it was taken.

        Call it right before an exclusive action, and also right after it, because a worker that was frozen in between
        resumes without the lock. If the lock's state cannot be read, tries again for `AWAY_SECONDS`; a state that
        remains unknown counts as lost.
        """
        if why_not := self._is_lost(AWAY_SECONDS):
            raise LockLostError(why_not)

    def is_lost(self) -> bool:
        """Returns whether `verify` would raise. Call it before undoing: a frozen worker may resume with any error."""
        return self._is_lost(AWAY_SECONDS) is not None

    def status(self) -> LockStatus:
        """Returns whether the lock could be taken now, and who holds it. Does not take it."""
        try:
            with self._watched(for_at_most(AWAY_SECONDS)):
                provider = Provider(self._table)
                try:
                    if self._in_a_file:
                        return LockStatus(is_held=self._reach_file(), holder=self.holder())
                    provider.reach()
                    return on_server(self._table.jvm, provider.kind, provider.instance)
                finally:
                    self._close(provider)
        except (LockUnavailableError, LockUnusableError, StorageRefusedError) as error:
            return LockStatus(problems=(error.problem(),))

    def left_behind(self) -> str | None:
        """Returns who left the lock file behind, None if nobody did. A file is left behind if its holder is proved
        dead, or if it is older than `LEFT_AFTER_SECONDS`, which is longer than anybody works under the lock. The locks
        of other providers expire, so the answer is always None."""
        if not self._in_a_file or not self._reach_file():
            return None
        note, age = self._read(), self._age()
        owner = str(note.get("owner") or UNSIGNED)
        if owner.startswith(SIGNED_BY) and has_died(note):
            return f"{owner} of process {note.get('pid')}, which is dead"
        return f"{owner}, {age / 3600:.1f} hours ago" if age is not None and age > LEFT_AFTER_SECONDS else None

    def _age(self) -> float | None:
        """Returns the seconds since the lock file was written; None if it is gone."""
        with suppress(JobError), translated("reading the age of the lock", expected=JobError):
            return time.time() - int(self._storage.getPathInfo(self._path).getModificationTime()) / 1000
        return None

    def break_stale(self) -> bool:
        """Removes a lock file that a dead worker of ours left when it was killed. Returns whether there was one.

        The file is of an earlier attempt of this owner (whose lease has expired), or of a process of this machine that
        no longer exists. Hudi's filesystem lock never expires; the locks of other providers end with the session that
        took them.
        """
        if not self._in_a_file:
            return False
        note = self._read()
        if not str(note.get("owner")).startswith(SIGNED_BY):
            return False
        if note["owner"] != self._note["owner"] and not has_died(note):
            return False
        logger.warning("removing the lock that %s left when it died", note["owner"])
        with translated("removing our own stale lock"):
            self._storage.deleteFile(self._path)
        return True

    def _acquire(self, checkpoint: Checkpoint) -> Provider:
        begun = time.monotonic()
        patience, worked = self._table.declared.lock.wait_seconds or WAIT_SECONDS, begun - self._begun
        most = max(patience, worked)
        keeps = f"; it keeps the work of {duration(worked)}" if worked > patience else ""
        away_since: float | None = None
        waits_for = ""
        if self._in_a_file:
            # If the storage refuses the file, Hudi's provider behaves as if the lock were held. If the disk is full,
            # the provider leaves its file behind, so that the lock is held for ever.
            require_writable(self._table.jvm, self._folder)
        while True:
            checkpoint(waits_for)
            started = time.monotonic()
            try:
                with self._watched(_either(partial(checkpoint, waits_for), for_at_most(AWAY_SECONDS))):
                    provider = self._try()
                self._stop_waiting(provider, checkpoint)
                return provider
            except TableLockedError as error:
                away_since = None
                waited = time.monotonic() - begun
                if waited > most:
                    raise TableLockedError(f"{self.holder() or error.detail}; waited {waited:.0f} s") from error
                if waited > _SAID_AFTER_SECONDS:
                    waits_for = f"the table's lock, {self.holder() or 'which others hold'}{keeps}"
            except LockUnavailableError as error:
                checkpoint()
                now = time.monotonic()
                away_since = away_since or started
                if now - away_since >= min(most, AWAY_SECONDS):
                    raise
                logger.warning("waiting for the lock of %s: %s", self._table.name, error.detail)
                time.sleep(PAUSE_SECONDS)

    def _stop_waiting(self, provider: Provider, checkpoint: Checkpoint) -> None:
        try:
            checkpoint()
        except JobError:
            provider.release()
            self._close(provider)
            raise

    def holder(self) -> str | None:
        """Returns since when the lock is held and by whom, as far as its provider tells: a lock file does."""
        if not self._in_a_file or (age := self._age()) is None:
            return None
        owner = str(self._read().get("owner") or UNSIGNED)
        return f"held for {duration(age)} by {owner[:100]}"

    def _try(self) -> Provider:
        provider = Provider(self._table, self._config)
        self._config = provider.config
        try:
            provider.take()
        except TableLockedError:
            # Some providers do not distinguish a lock that is held from one whose state they cannot read.
            try:
                self._require_file() if self._in_a_file else provider.reach()
            finally:
                self._close(provider)
            raise
        except JobError:
            self._close(provider)
            raise
        return provider

    def _watched(self, checkpoint: Checkpoint) -> AbstractContextManager[None]:
        """Ends waits of the JVM when `checkpoint` raises, for providers whose waits are long and can be ended safely.

        Interrupting the request of any other provider may leave the lock taken without anybody knowing.
        """
        kind = lock_providers.class_of(self._table.declared.lock.provider)
        is_safe = kind in {*lock_providers.ZOOKEEPER, *lock_providers.DYNAMODB}
        return interrupted_by(checkpoint, self._table.jvm) if is_safe else nullcontext()

    def _reach_file(self) -> bool:
        with translated("reading the table's lock", by=_unreadable):
            return bool(self._storage.exists(self._path))

    def _require_file(self) -> None:
        """Raises `LockUnavailableError` if the lock file could not be made although none exists. Looks several times,
        because none exists for a moment when the holder has just released the lock."""
        if not self._reach_file():
            raise LockUnavailableError(f"The lock file {self._path.toString()} cannot be made.")

    def _release(self, provider: Provider, judge: Callable[[str | None], None] | None) -> None:
        """Releases the lock if it is still ours: Hudi's filesystem provider would delete any holder's lock file. A lock
        file stays until it is deleted, so a failure is an error; the locks of other providers end by themselves."""
        with self._watched(for_at_most(RELEASE_SECONDS)):
            try:
                lost = self._is_lost(RELEASE_SECONDS)
                if judge:
                    judge(lost)
                if not lost:
                    provider.release()
            except JobError as error:
                if self._in_a_file:
                    raise
                logger.warning("the lock of %s could not be released: %s", self._table.name, error.detail)
            self._close(provider)

    def _close(self, provider: Provider) -> None:
        with suppress(JobError):
            provider.close()

    def _is_lost(self, seconds: float) -> str | None:
        """Returns why the lock does not count as ours. Tries for this many seconds to find out."""

        def holds() -> bool:
            with self._watched(for_at_most(seconds)):
                return self._proof.holds() and self._flink_lock.holds()

        return why_not(holds, "Another client has it, or had it meanwhile.", seconds)

    # Hudi's filesystem provider (1.2) leaves its lock file empty. We sign it; Hudi itself only ever logs the content.

    @property
    def _in_a_file(self) -> bool:
        return lock_providers.is_in_a_file(self._table.declared.lock.provider)

    @property
    def _folder(self) -> str:
        return lock_providers.folder_of(self._table.declared.lock, self._table.base_path)

    @cached_property
    def _path(self) -> Any:
        return self._table.jvm.hudi.storage.StoragePath(f"{self._folder}/lock")

    @cached_property
    def _storage(self) -> Any:
        """The lock's own storage: a table on S3 may have its lock on a local disk."""
        jvm = self._table.jvm
        return jvm.hudi.storage.HoodieStorageUtils.getStorage(self._path, jvm.storage_conf())

    def _signature(self) -> Callable[[], None]:
        """Returns a function that signs the lock file in one call of the JVM.

        A worker that is killed between taking the lock and signing it leaves a lock that nobody removes, so the time
        between must be short.
        """
        if not self._in_a_file:
            return lambda: None
        with translated("preparing to sign the table's lock"):
            write = partial(self._table.jvm.reads.write, self._storage, f"{self._folder}/lock", json.dumps(self._note))

        def sign() -> None:
            with translated("signing the table's lock"):
                write()

        return sign

    def _read(self) -> dict[str, Any]:
        """Returns the content of the lock file; empty if there is none, since its holder may have just removed it."""
        return read_object(self._table.jvm, self._storage, f"{self._folder}/lock", "the table's lock")


def for_at_most(seconds: float) -> Checkpoint:
    """Returns a checkpoint for `TableLock.held` that gives up with `TableLockedError` after this many seconds."""
    deadline = time.monotonic() + seconds

    def checkpoint(waits_for: str = "") -> None:  # noqa: ARG001
        if time.monotonic() > deadline:
            raise TableLockedError(f"waited {seconds:.0f} s")

    return checkpoint


def _either(*checkpoints: Checkpoint) -> Checkpoint:
    def checkpoint(waits_for: str = "") -> None:
        for each in checkpoints:
            each(waits_for)

    return checkpoint


def _unreadable(causes: Sequence[tuple[str, str]]) -> JobError:
    if refused := refused_by_storage("reading the table's lock", causes):
        return refused
    return LockUnavailableError(f"The lock file: {innermost(causes) or causes[0][0]}")
