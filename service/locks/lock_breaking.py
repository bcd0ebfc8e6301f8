"""Shows the lock of a table, and breaks a lock that a dead writer has left. The lock must be a file, and must not end
by itself. `lock_report.refusal` decides whether a lock may be broken. The file is removed only if it has not changed
since it was read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from jobs.contract import TableLock
from jobs.format.lock_providers import class_of, ending_of
from jobs.storage.permissions import Permissions
from service.catalog import table_store
from service.catalog.registration import Registration
from service.catalog.table_secrets import opened
from service.db import audit_record
from service.db.engine import reading, writing
from service.events.database import Database
from service.lake.pending import heartbeats, read_pending
from service.lake.snapshot import Pending
from service.lake.storage import open_storage
from service.lake.table_config import read_table_config
from service.lake.table_lock import LockFile, is_removable, read_lock, remove_lock
from service.lake.timeline import timeline_files, timeline_of
from service.locks.errors import LockChangedError
from service.locks.lock_report import LockReport, Writer, held_by_job, refusal
from service.observation.lake_access import LakeAccess
from service.queue import held_back_store, lock_sighting_store
from service.queue.job import Job

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LockBreaker:
    """Shows and breaks locks. A lock that is younger than `break_after` is not broken."""

    database: Database
    lake: LakeAccess
    break_after: timedelta

    def read(self, table_id: str) -> LockReport:
        """Reads lock, heartbeats and timeline. Raises TableNotFoundError and the errors of `service.lake`."""
        with reading(self.database.engine) as connection:
            table = table_store.get(connection, table_id)
        read = self.lake.readers.run(
            read_stored,
            table.base_path,
            replace(table.lock, options=opened(self.database.cipher, table.lock.options)),
            self.lake.storage_options,
            self.lake.permissions,
            self.database.clock(),
            lock_hosts=self.lake.lock_hosts,
        )
        # The jobs are read after the lock. Thus a job that has signed the lock is among the leased jobs.
        with reading(self.database.engine) as connection:
            jobs = _jobs(connection, table_id)
        own = {instant: job.id for job in jobs for instant in job.instants}
        writers = [Writer(instant, at, own.get(instant)) for instant, at in read.heartbeats.items()]
        return LockReport(
            table_id=table_id,
            provider=class_of(table.lock.provider),
            file=read.file,
            ending=ending_of(table.lock),
            is_removable=read.is_removable,
            writers=sorted(writers, key=lambda each: each.heartbeat_at, reverse=True),
            pending=read.pending,
            jobs=jobs,
        )

    def break_lock(self, table_id: str, *, reason: str, by: str, lock_id: str | None = None) -> LockReport:
        """Removes the lock, and returns its last state. If `lock_id` is given, only a lock with this id is removed.
        Jobs that went back to the queue because of the lock become due at once.

        The audit trail gets its entry before the removal. Raises LockKeptError and the errors of `read`.
        """
        lock = self.read(table_id)
        if error := refusal(lock, self.database.clock(), self.break_after):
            raise error
        seen = lock.file.id
        if seen is None or lock_id not in (None, seen):
            raise LockChangedError(f"The lock {lock_id} does not exist any more.")
        before = _shown(lock)
        with writing(self.database.engine) as connection:
            table = table_store.get(connection, table_id)
            lock = replace(lock, jobs=_jobs(connection, table_id))
            if job := lock.holding_job():
                raise held_by_job(job)
            audit_record.state_object(before, {"state": "being removed", "reason": reason})
        self._remove(table, seen)
        log.warning(
            "%s broke the lock of table %s, held since %s by %s: %r",
            by,
            table_id,
            lock.file.since,
            lock.file.holder,
            reason,
        )
        with writing(self.database.engine) as connection:
            held_back_store.make_locked_out_due(connection, table_id, self.database.clock())
            audit_record.state_object(before, {"state": "removed", "reason": reason})
        self.database.notifier.notify()
        return lock

    def _remove(self, table: Registration, expected: str) -> None:
        if not self.lake.readers.run(
            remove_lock, table.base_path, table.lock, self.lake.storage_options, self.lake.permissions, expected
        ):
            raise LockChangedError("The lock was released or taken again while it was checked.")


def _jobs(connection: Connection, table_id: str) -> list[Job]:
    locks = lock_sighting_store.in_the_way(connection, [table_id])
    return held_back_store.begun_or_locked_out(connection, locks, [table_id])


@dataclass(frozen=True)
class StoredLock:
    """The state in the storage: the lock, the last heartbeat of each writer, and the pending instants."""

    file: LockFile
    is_removable: bool
    heartbeats: Mapping[str, datetime]
    pending: tuple[Pending, ...]


def read_stored(
    base_path: str,
    lock: TableLock,
    storage_options: Mapping[str, str],
    permissions: Permissions,
    now: datetime,
    *,
    lock_hosts: tuple[str, ...],
) -> StoredLock:
    storage = open_storage(base_path, storage_options, permissions.roots)
    file = read_lock(base_path, lock, storage_options, permissions, now, lock_hosts=lock_hosts)
    config = read_table_config(storage)
    beats = {instant: at for instant, at in heartbeats(storage).items() if at and instant.isdecimal()}
    is_file = is_removable(base_path, lock)
    listed = timeline_files(storage, config)
    timeline = timeline_of(each.name for each in listed)
    return StoredLock(file, is_file, beats, read_pending(storage, config.in_frame_of(listed), timeline))


def _shown(lock: LockReport) -> dict[str, Any]:
    """Returns the members of a lock that the audit trail keeps."""
    since = lock.file.since.isoformat() if lock.file.since else None
    return {"state": lock.state.value, "path": lock.file.path, "since": since, "holder": lock.file.holder}
