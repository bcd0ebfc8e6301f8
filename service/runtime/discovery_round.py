"""Registers the tables below the folders of GROUNDSKEEPER_DISCOVER periodically."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from service.access import audit_store
from service.access.audit_entry import AuditEntry, shown
from service.access.token import Role
from service.api.audit_objects import read
from service.api.dependencies import Caller
from service.api.discovery import DiscoverIn, FoundState, discover
from service.db import audit_record
from service.model.errors import GroundskeeperError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from service.events.database import Database
    from service.observation.lake_access import LakeAccess

log = logging.getLogger(__name__)

SETTING = "GROUNDSKEEPER_DISCOVER"


class _Recorder:
    """Writes the entry of the audit trail for a registration that was not requested by a call."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._object: tuple[str, str] | None = None

    def begun(self, connection: Connection) -> None:
        pass

    def about(self, kind: str, object_id: str) -> None:
        self._object = (kind, object_id)

    exists = about

    def state_object(self, before: Any, after: Any) -> None:
        pass

    def sibling(self) -> _Recorder:
        return _Recorder(self._database)

    def ends(self, connection: Connection) -> None:
        if self._object is None:
            return
        kind, object_id = self._object
        name, after = read(connection, self._database.cipher, kind, object_id)
        entry = AuditEntry(
            at=self._database.clock(),
            who=SETTING,
            method="CLI",
            route=SETTING,
            operation="discoverTables",
            object_type=kind,
            object_id=object_id,
            object_name=name,
            after=shown(after),
        )
        audit_store.add(connection, entry)


def run_once(database: Database, lake: LakeAccess, wanted: Sequence[DiscoverIn]) -> str:
    """Searches below each root and registers the tables that it finds. Returns a sentence about what was done. A root
    that cannot be read does not stop the others."""
    registered = 0
    for each in wanted:
        # The settings name the root, so it is allowed even if no roots are set.
        roots = lake.permissions.roots if lake.permissions.roots is not None else (each.root,)
        allowed = replace(lake, permissions=replace(lake.permissions, roots=roots))
        accompanying = audit_record.current.set(_Recorder(database))
        try:
            found = discover(each, database, allowed, Caller(SETTING, Role.ADMIN))
        except GroundskeeperError as error:
            log.warning("Searching for tables below %s failed: %s %s", each.root, error.title, error.detail)
            continue
        finally:
            audit_record.current.reset(accompanying)
        registered += sum(table.is_new for table in found.items)
        for table in found.items:
            if table.state is FoundState.REFUSED and table.reason is not None:
                log.warning("%s was not registered: %s %s", table.base_path, table.reason.title, table.reason.detail)
    return f"registered {registered} tables"
