"""Periodic changes that settings ask for: tables below the folders of GROUNDSKEEPER_DISCOVER are registered, and the
catalogs of GROUNDSKEEPER_CATALOGS are synced. The audit trail names the setting in place of a caller."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import Connection

from service.access import audit_store
from service.access.audit_entry import AuditEntry, shown
from service.access.token import Role
from service.api.audit_objects import read
from service.api.dependencies import AppContext, Caller
from service.api.discovery import DiscoverIn, FoundState, discover
from service.db import audit_record
from service.db.engine import writing
from service.events.database import Database
from service.model.errors import GroundskeeperError
from service.observation.lake_access import LakeAccess
from service.registration.catalogs import rounds, store
from service.runtime.settings import Settings
from service.runtime.ticks import Tick

log = logging.getLogger(__name__)

_DISCOVER, _CATALOGS = "GROUNDSKEEPER_DISCOVER", "GROUNDSKEEPER_CATALOGS"
_LOOK_AT_CATALOGS_SECONDS = 5.0


def ticks(context: AppContext, chosen: Settings) -> list[Tick]:
    """Returns the tasks that the settings ask for; none if they name neither folders nor catalogs."""
    found = []
    if chosen.discover:
        wanted = [DiscoverIn.model_validate({**each, "register": True}) for each in chosen.discover]
        run = partial(discover_tables, context.database, context.lake, wanted)
        found.append(Tick("discover", chosen.discover_seconds, run))
    if declare_catalogs(context):
        found.append(Tick("catalogs", _LOOK_AT_CATALOGS_SECONDS, partial(sync_catalogs, context)))
    return found


def discover_tables(database: Database, lake: LakeAccess, wanted: Sequence[DiscoverIn]) -> str:
    """Searches below each root and registers the tables that it finds. If a root cannot be read, the others continue.
    Returns a text about what was done."""
    registered = 0
    for each in wanted:
        # The settings name the root, so it is allowed even if no roots are set.
        roots = lake.permissions.roots if lake.permissions.roots is not None else (each.root,)
        allowed = replace(lake, permissions=replace(lake.permissions, roots=roots))
        try:
            with audit_record.kept_by(_SettingRecorder(database, _DISCOVER, "discoverTables")):
                found = discover(each, database, allowed, Caller(_DISCOVER, Role.ADMIN))
        except GroundskeeperError as error:
            log.warning("Searching for tables below %s failed: %s %s", each.root, error.title, error.detail)
            continue
        registered += sum(table.is_new for table in found.items)
        for table in found.items:
            if table.state is FoundState.REFUSED and table.reason is not None:
                log.warning("%s was not registered: %s %s", table.base_path, table.reason.title, table.reason.detail)
    return f"registered {registered} tables"


def declare_catalogs(context: AppContext) -> bool:
    """Updates the catalogs of the database to those of the settings. Returns whether there are any."""
    with writing(context.database.engine) as connection:
        store.declare(connection, [each.name for each in context.catalogs], context.database.clock())
    return bool(context.catalogs)


def sync_catalogs(context: AppContext) -> str:
    """Syncs the catalogs that are due. If one catalog fails, the others continue. Returns a text about what was
    done."""
    database, changed, failed = context.database, 0, 0
    for each in context.catalogs:
        # A sync that a call has started is running, so this catalog stays due.
        if not rounds.turn.acquire(blocking=False):
            break
        try:
            if not rounds.is_due(database, each):
                continue
            with audit_record.kept_by(_SettingRecorder(database, _CATALOGS, "syncCatalog")):
                report = rounds.run(database, context.lake, each)
            changed += sum(found.is_done for found in report.findings)
        except GroundskeeperError as error:
            failed += 1
            log.warning("The sync of the catalog %s failed: %s %s", each.name, error.title, error.detail)
        finally:
            rounds.turn.release()
    return f"registered or unregistered {changed} tables of catalogs; {failed} catalogs failed"


class _SettingRecorder:
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

    def sibling(self) -> _SettingRecorder:
        return _SettingRecorder(self._database, self._setting, self._operation)

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
