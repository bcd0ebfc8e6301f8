"""Reads a table's lock without Hudi, and can remove it if it is a file. `service.lake.server_lock` reads locks on
servers."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple

from jobs.contract import Table, TableLock
from jobs.format.lock_file import Signature, StorageLock
from jobs.format.lock_providers import file_of, is_in_a_file, seconds_to_expiry
from jobs.spec import Documented, Spec
from jobs.storage.location import is_local
from jobs.storage.permissions import Permissions
from service.lake.location import canonical
from service.lake.server_lock import UnreadableLockError, read_server_lock
from service.lake.storage import Storage, open_storage
from service.model.errors import GroundskeeperError
from service.model.lock_state import LockState
from service.model.storage_errors import PathNotFoundError, StorageError
from service.model.table_errors import OptionNotAllowedError

log = logging.getLogger(__name__)

_MOST_BYTES = 64 * 1024
_NOT_ATOMIC = ("s3a:", "gs:", "abfss:")


@dataclass(frozen=True)
class LockFile(Documented):
    """The lock as its file or its server shows it.

    `since` is None for a lock of the storage-based provider, because its holder keeps rewriting the file. `job_id` is
    set if a worker of Groundskeeper signed the lock. `detail` says why the state is unknown. `is_silent` says that the
    lock's server does not answer. A lock whose `id` stays the same for `expires_after` has ended.
    """

    state: Annotated[
        LockState,
        Spec("`unknown`: the service has no client for this provider. In a dry run of a job a worker reads the lock"),
    ]
    path: Annotated[str | None, Spec("File of the lock", examples=("/data/trips/.hoodie/lock",))] = None
    id: Annotated[
        str | None,
        Spec(
            "Changes when another holder gets the lock, or when the same holder takes it again",
            examples=("5d41402abc4b2a76",),
        ),
    ] = None
    since: Annotated[datetime | None, Spec("Time at which the lock was taken; null if not known")] = None
    holder: Annotated[
        str | None,
        Spec(
            "Who holds it, as far as that is known: Hudi does not sign its filesystem lock, this service does",
            examples=("a writer that Hudi's lock file does not name",),
        ),
    ] = None
    job_id: str | None = None
    ends_at: Annotated[
        datetime | None, Spec("When the lock ends unless its holder renews it; null: never, or not known")
    ] = None
    detail: str = ""
    is_silent: bool = False
    expires_after: timedelta | None = None


@dataclass(frozen=True)
class PolledLock:
    """A lock that was held at a poll. `since` is when it was taken; for a lock of the storage-based provider it is when
    a poll first saw this holder."""

    since: datetime
    holder: str


SEEN_AFTER = timedelta(minutes=1)
"""A poll reports a lock that has been held for this time. Writers normally hold it for some seconds at each commit."""


def read_lock(
    base_path: str,
    lock: TableLock,
    storage_options: Mapping[str, str],
    permissions: Permissions,
    now: datetime,
    *,
    lock_hosts: Collection[str] = (),
) -> LockFile:
    """Reads the lock from its file, or from its server if that is among the `lock_hosts`. `lock` has the options with
    their secrets.

    Raises StorageError, OptionNotAllowedError for a file in a folder where no lock may be, and PathOutsideTableError
    for a link.
    """
    place = file_of(lock, base_path)
    if place is None:
        return _read_on_server(lock, lock_hosts, now)
    storage = _storage(base_path, lock, place[0], storage_options, permissions)
    return _read(storage, place[1], lock, now)


def polled_lock(
    storage: Storage,
    lock: TableLock,
    storage_options: Mapping[str, str],
    permissions: Permissions,
    now: datetime,
    *,
    before: PolledLock | None,
) -> PolledLock | None:
    """Returns the lock if it has been held for a minute. The call is cheap enough for each poll: it costs one request
    if the lock is a file, and none otherwise. If the lock cannot be read, the result is `before`, the result of the
    poll before. `storage` is the table's storage."""
    place = file_of(lock, storage.base_path)
    if place is None or (is_in_a_file(lock.provider) and place[0].startswith(_NOT_ATOMIC)):
        return None
    try:
        if place[0].startswith(f"{storage.base_path}/"):
            name = f"{place[0].removeprefix(f'{storage.base_path}/')}/{place[1]}"
        else:
            storage, name = _storage(storage.base_path, lock, place[0], storage_options, permissions), place[1]
        if is_in_a_file(lock.provider):
            at = storage.modified_at(name)
            if at is None or now - at < SEEN_AFTER:
                return None
        found = _read(storage, name, lock, now)
    except GroundskeeperError as error:
        log.info("The lock of %s cannot be read: %s", storage.base_path, error)
        return before
    if found.state is not LockState.HELD:
        return None
    holder = found.holder or "a holder without a name"
    if found.since is not None:
        return PolledLock(found.since, holder)
    return before if before is not None and before.holder == holder else PolledLock(now, holder)


def remove_lock(
    base_path: str, lock: TableLock, storage_options: Mapping[str, str], permissions: Permissions, expected: str
) -> bool:
    """Removes the file of a filesystem lock if its id is still `expected`. Returns whether the file was removed.

    The file is first moved away, which only one process can do, and then checked. If another writer has taken the lock
    meanwhile, the file is put back, but was missing for a moment. Raises the errors of `read_lock`, and StorageError if
    the service may not write there.
    """
    place = file_of(lock, base_path)
    if place is None or not is_in_a_file(lock.provider):
        raise StorageError("The lock is not a file, so it cannot be removed.")
    storage = _storage(base_path, lock, place[0], storage_options, permissions)
    name = place[1]
    aside = f"{name}.broken-{secrets.token_hex(8)}"
    if not _is(storage, name, expected):
        return False
    try:
        if not _is_moved(storage, name, aside):
            return False
        if not _is(storage, aside, expected):
            _put_back(storage, aside, name)
            return False
        storage.filesystem.delete_file(f"{storage.root}/{aside}")
    except OSError as error:
        raise StorageError(
            f"{storage.base_path}/{name} cannot be removed: {error}",
            hint="Give the service the permission to write there, or remove the file by hand.",
        ) from error
    # Hadoop's checksum of a local file is removed too, because it would not fit the next lock's file.
    with contextlib.suppress(OSError):
        storage.filesystem.delete_file(f"{storage.root}/.{name}.crc")
    return True


def is_removable(base_path: str, lock: TableLock) -> bool:
    """Returns whether the lock is a file on a storage that moves files atomically."""
    place = file_of(lock, base_path)
    return place is not None and is_in_a_file(lock.provider) and not canonical(place[0]).startswith(_NOT_ATOMIC)


def _storage(
    base_path: str, lock: TableLock, folder: str, storage_options: Mapping[str, str], permissions: Permissions
) -> Storage:
    for refusal in permissions.refused_lock_file(Table(base_path, "", lock=lock)):
        raise OptionNotAllowedError(f"{refusal.field}: {refusal.why}.", hint=refusal.hint)
    return open_storage(canonical(folder), storage_options)


def _read(storage: Storage, name: str, lock: TableLock, now: datetime) -> LockFile:
    path = f"{storage.base_path}/{name}"
    if not is_in_a_file(lock.provider):
        return _read_in_storage(storage, name, path, now)
    seen = _read_file(storage, name)
    if seen is not None:
        signature, expiry = Signature.of(seen.content), seconds_to_expiry(lock)
        return LockFile(
            LockState.HELD,
            path,
            seen.id,
            since=seen.modified_at,
            holder=str(signature),
            job_id=signature.job_id,
            ends_at=None if expiry is None else seen.modified_at + timedelta(seconds=expiry),
        )
    if storage.exists(name):
        return LockFile(LockState.UNKNOWN, path, detail=f"{path} is no file, or may not be read.")
    if not storage.exists():
        # The folder may exist only on the machine of the writers.
        return LockFile(LockState.UNKNOWN, path, detail=f"{storage.base_path} does not exist where the service runs.")
    return LockFile(LockState.FREE, path)


def _read_on_server(lock: TableLock, lock_hosts: Collection[str], now: datetime) -> LockFile:
    try:
        found = read_server_lock(lock, lock_hosts, now)
    except UnreadableLockError as error:
        return LockFile(LockState.UNKNOWN, detail=str(error), is_silent=error.is_silent)
    if found.holder is None:
        return LockFile(LockState.FREE)
    return LockFile(
        LockState.HELD, id=found.id, since=found.since, holder=found.holder, expires_after=found.expires_after
    )


def _read_in_storage(storage: Storage, name: str, path: str, now: datetime) -> LockFile:
    try:
        found = StorageLock.of(_content(storage, name))
    except PathNotFoundError:
        return LockFile(LockState.FREE, path)
    except ValueError as error:
        return LockFile(LockState.UNKNOWN, path, detail=f"{path} is not Hudi's: {error}.")
    ends_at = datetime.fromtimestamp(found.valid_until / 1000, UTC)
    if found.is_released or ends_at <= now:
        return LockFile(LockState.FREE, path)
    identity = hashlib.sha256(found.owner.encode()).hexdigest()[:16]
    return LockFile(LockState.HELD, path, identity, holder=found.owner or None, ends_at=ends_at)


class _LockFileContent(NamedTuple):
    """An existing file. `id` distinguishes it from any file that takes its place."""

    id: str
    modified_at: datetime
    content: bytes


def _read_file(storage: Storage, name: str) -> _LockFileContent | None:
    try:
        modified = storage.modified_at(name)
        if modified is None:
            return None
        content = _content(storage, name)
        # The inode is part of the id, because two locks that are taken in quick succession may have the same time.
        number = os.lstat(f"{storage.root}/{name}").st_ino if is_local(storage.base_path) else 0
    except (PathNotFoundError, FileNotFoundError):
        # The folder does not exist yet, or the holder has just released the lock.
        return None
    identity = hashlib.sha256(repr((number, modified.timestamp(), content)).encode()).hexdigest()[:16]
    return _LockFileContent(identity, modified, content)


def _content(storage: Storage, name: str) -> bytes:
    """Returns the beginning of the file, which may be of any length."""
    with storage.open(name) as file:
        return bytes(file.read(_MOST_BYTES))


def _is(storage: Storage, name: str, expected: str) -> bool:
    seen = _read_file(storage, name)
    return seen is not None and seen.id == expected


def _is_moved(storage: Storage, name: str, aside: str) -> bool:
    """Moves the file away; returns False if the file is gone. HDFS gives no reason when it refuses a rename. It also
    refuses a rename that the client repeats because the first answer was lost."""
    try:
        storage.filesystem.move(f"{storage.root}/{name}", f"{storage.root}/{aside}")
    except OSError:
        if _read_file(storage, aside) is not None:
            return True
        if _read_file(storage, name) is None:
            return False
        raise
    return True


def _put_back(storage: Storage, aside: str, name: str) -> None:
    """Puts back a lock that was moved by mistake, unless another holder has taken the lock meanwhile."""
    source, target = f"{storage.root}/{aside}", f"{storage.root}/{name}"
    if not is_local(storage.base_path):
        # A rename in HDFS does not replace an existing file.
        storage.filesystem.move(source, target)
        return
    try:
        os.link(source, target)  # A rename would replace the lock of another holder.
    except FileExistsError as error:
        raise StorageError(
            f"{target} was taken by two other holders while it was being removed, so two may hold the lock now.",
            hint="Look at the writers that commit at this moment. Hudi's conflict check may have missed one of them.",
        ) from error
    finally:
        os.unlink(source)  # noqa: PTH108
