"""Registers, changes and unregisters tables. Never touches the data of a table."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Engine

from jobs.contract import BucketIndex, JobKind, Table, TableLock
from jobs.kinds.registry import KINDS
from service.access.secret_cipher import SecretCipher
from service.catalog import decision_times, snapshot_store, table_secrets, table_store, watch_store
from service.catalog.registration import Readers, Registration, Writers
from service.catalog.table_events import table_registered
from service.db import audit_record
from service.db.engine import reading, rewrite, writing
from service.delegation import plan_store
from service.delivery import outbox
from service.events.database import Database
from service.lake.examination import Examination
from service.model.errors import GroundskeeperError
from service.model.table_errors import TableBusyError
from service.observation.lake_access import LakeAccess
from service.queue import breaker_store, job_store

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Declarations:
    """The declarations about a new table. If `name` is None, the name in the table's properties is used. The table's
    keys must not contradict `index`."""

    name: str | None
    index: BucketIndex | None
    lock: TableLock
    writers: Writers
    readers: Readers
    hudi_options: Mapping[str, str]
    owner: str | None
    tags: Mapping[str, str]


def register(
    database: Database,
    lake: LakeAccess,
    location: str,
    declared: Declarations,
    *,
    allowed_roots: tuple[str, ...] | None,
) -> Registration:
    """Registers a table. The table is first examined and checked, for which its storage is read; only then a
    transaction is opened. Raises SecretKeyMissingError, and the errors of `LakeAccess` and `table_store.register`."""
    found = _examined(lake, location, declared, allowed_roots)
    now, lock = database.clock(), declared.lock
    table = Registration(
        id=f"tbl_{secrets.token_hex(8)}",
        base_path=found.base_path,
        name=declared.name or found.name,
        created_at=now,
        updated_at=now,
        index=found.index,
        lock=replace(lock, options=table_secrets.sealed(database.cipher, lock.options)),
        writers=declared.writers,
        readers=declared.readers,
        hudi_options=table_secrets.sealed(database.cipher, declared.hudi_options),
        owner=declared.owner,
        tags=declared.tags,
        profile=found.profile.to_json(),
    )
    with writing(database.engine) as connection:
        table_store.register(connection, table)
        audit_record.about("table", table.id)
        plan_store.adopt(connection, table.id, table.base_path)
        # The marks are stored now, so that no job starts beside a Flink job before the first poll.
        watch_store.mark(connection, table.id, found.marks)
        outbox.publish(connection, [table_registered(table, now)], now=now)
    database.notifier.notify()
    return table


@dataclass(frozen=True)
class Detected:
    """The findings of an examination. `registered_as` is the id of a table that is already registered at this path."""

    examination: Examination
    registered_as: str | None


def detect(
    database: Database,
    lake: LakeAccess,
    location: str,
    declared: Declarations,
    *,
    allowed_roots: tuple[str, ...] | None,
) -> Detected:
    """Examines and checks a table as `register` does, and stores nothing. Raises the errors of `LakeAccess`."""
    found = _examined(lake, location, declared, allowed_roots)
    with reading(database.engine) as connection:
        return Detected(found, table_store.find(connection, found.base_path))


def _examined(
    lake: LakeAccess, location: str, declared: Declarations, allowed_roots: tuple[str, ...] | None
) -> Examination:
    found = lake.examined(location, declared.index, allowed_roots=allowed_roots)
    lake.check(Table(found.base_path, "", lock=declared.lock, hudi_options=declared.hudi_options))
    return found


def change(
    database: Database,
    lake: LakeAccess,
    table_id: str,
    changes: Mapping[str, Any],
    *,
    allowed_roots: tuple[str, ...] | None,
) -> Registration:
    """Changes a registration. `changes` maps fields of Registration to new values. A new `index` is first checked
    against the table's keys. A mask among new options stands for the stored value. Stored options that were forbidden
    later do not prevent other changes. Jobs that were leased before the change keep their work orders."""
    changes = dict(changes)
    with reading(database.engine) as connection:
        stored = table_store.get(connection, table_id)
    if declared := _declared(changes, stored):
        lake.check(Table(stored.base_path, "", **declared))
    if "index" in changes:
        found = lake.examined(stored.base_path, changes["index"], allowed_roots=allowed_roots)
        changes.update(index=found.index, profile=found.profile.to_json())
    with writing(database.engine) as connection:
        table = table_store.get(connection, table_id, for_update=True)
        table = table.evolve(**_sealed(database.cipher, changes, table), updated_at=database.clock())
        table_store.change(connection, table)
        breaker_store.mended(connection, table_id, database.clock())
        if "index" in changes:
            # The numbers of buckets of all partitions may be different now.
            snapshot_store.forget(connection, table_id)
            watch_store.start_over(connection, table_id, table.updated_at)
        # The table may have another name, to which other policies apply.
        decision_times.wake(connection, table_id, table.updated_at)
    return table


def _declared(changes: Mapping[str, Any], stored: Registration) -> dict[str, Any]:
    """Returns the changed members. Stored options are left out, so that only new options are checked."""
    declared: dict[str, Any] = {}
    if lock := changes.get("lock"):
        declared["lock"] = replace(lock, options=table_secrets.without_masks(lock.options, stored.lock.options))
    if "hudi_options" in changes:
        declared["hudi_options"] = table_secrets.without_masks(changes["hudi_options"], stored.hudi_options)
    return declared


def _sealed(cipher: SecretCipher, changes: Mapping[str, Any], stored: Registration) -> dict[str, Any]:
    sealed = dict(changes)
    if lock := changes.get("lock"):
        options = table_secrets.sealed(cipher, lock.options, stored.lock.options)
        sealed["lock"] = replace(lock, options=options)
    if "hudi_options" in changes:
        sealed["hudi_options"] = table_secrets.sealed(cipher, changes["hudi_options"], stored.hudi_options)
    return sealed


def seal_stored(engine: Engine, cipher: SecretCipher) -> None:
    """Encrypts the secrets that an earlier version stored in plain text. Logs a warning if there is no key."""
    with reading(engine) as connection:
        found = [
            table_id
            for table_id, *options in table_store.options(connection)
            if not all(map(table_secrets.is_sealed, options))
        ]
    if not found:
        return
    try:
        for table_id in found:
            with writing(engine) as connection:
                table = table_store.get(connection, table_id, for_update=True)
                as_stored = {"lock": table.lock, "hudi_options": table.hudi_options}
                table_store.change(connection, table.evolve(**_sealed(cipher, as_stored, table)))
        rewrite(engine)
    except GroundskeeperError as error:
        log.warning("Secrets of tables (%s) are not encrypted: %s %s", ", ".join(found), error.title, error.hint)


def detect_after(engine: Engine, lake: LakeAccess, table_id: str, kind: JobKind) -> None:
    """Updates the parts of the profile that polls do not update, after a job of this kind: the columns, if the table
    had no data; the bucket layout, if the job may have replaced file groups; and the warnings, if there were any."""
    with reading(engine) as connection:
        profile = table_store.profile_of(connection, table_id)
    changes_layout = KINDS[kind].stops_flink or KINDS[kind].for_damaged
    if changes_layout or profile.get("warnings") or not profile.get("columns"):
        detect_again(engine, lake, table_id)


def detect_again(engine: Engine, lake: LakeAccess, table_id: str) -> None:
    """Examines the table again and updates its profile. Errors are only logged, because no caller waits for the
    result."""
    try:
        with reading(engine) as connection:
            table = table_store.get(connection, table_id)
        found = lake.examined(table.base_path, table.index, allowed_roots=lake.permissions.roots)
        with writing(engine) as connection:
            table_store.set_profile(connection, table_id, found.profile.to_json())
    except GroundskeeperError as error:
        log.warning("Could not examine table %s again: %s %s", table_id, error.title, error.detail)


def unregister(engine: Engine, table_id: str) -> None:
    """Unregisters a table. Raises TableBusyError while jobs are active."""
    with writing(engine) as connection:
        # The row is locked, so that no job can be submitted between this check and the deletion.
        table = table_store.get(connection, table_id, for_update=True)
        if active := job_store.active(connection, table_id):
            raise TableBusyError(
                f"{table.name} has {len(active)} active job{'s' if len(active) > 1 else ''}: {', '.join(active)}.",
                extensions={"job_ids": active},
            )
        table_store.unregister(connection, table_id)
