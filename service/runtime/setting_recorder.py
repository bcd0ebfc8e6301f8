"""Entries of the audit trail for changes that a setting, not a call, has caused."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from service.access import audit_store
from service.access.audit_entry import AuditEntry, shown
from service.api.audit_objects import read
from service.events.database import Database


class SettingRecorder:
    """Writes the entry for an object that a transaction creates or deletes (`service.db.audit_record.Recorder`)."""

    def __init__(self, database: Database, setting: str, operation: str) -> None:
        self._database, self._setting, self._operation = database, setting, operation
        self._object: tuple[str, str] | None = None
        self._before: tuple[str | None, Any] = (None, None)

    def begun(self, connection: Connection) -> None:
        if self._object is not None:
            self._before = read(connection, self._database.cipher, *self._object)

    def about(self, kind: str, object_id: str) -> None:
        self._object = (kind, object_id)

    exists = about

    def state_object(self, before: Any, after: Any) -> None:
        pass

    def sibling(self) -> SettingRecorder:
        return SettingRecorder(self._database, self._setting, self._operation)

    def ends(self, connection: Connection) -> None:
        if self._object is None:
            return
        kind, object_id = self._object
        name, after = read(connection, self._database.cipher, kind, object_id)
        entry = AuditEntry(
            at=self._database.clock(),
            who=self._setting,
            method="CLI",
            route=self._setting,
            operation=self._operation,
            object_type=kind,
            object_id=object_id,
            object_name=name or self._before[0],
            before=shown(self._before[1]),
            after=shown(after),
        )
        audit_store.add(connection, entry)
