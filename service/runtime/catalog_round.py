"""Syncs the catalogs of GROUNDSKEEPER_CATALOGS periodically."""

from __future__ import annotations

import logging
from functools import partial

from service.api.dependencies import AppContext
from service.db import audit_record
from service.db.engine import writing
from service.model.errors import GroundskeeperError
from service.registration.catalogs import rounds, store
from service.runtime.setting_recorder import SettingRecorder
from service.runtime.ticks import Tick

log = logging.getLogger(__name__)

SETTING = "GROUNDSKEEPER_CATALOGS"
_LOOK_SECONDS = 5.0


def declare(context: AppContext) -> bool:
    """Updates the catalogs of the database to those of the settings. Returns whether there are any."""
    with writing(context.database.engine) as connection:
        store.declare(connection, [each.name for each in context.catalogs], context.database.clock())
    return bool(context.catalogs)


def ticks(context: AppContext) -> list[Tick]:
    return [Tick("catalogs", _LOOK_SECONDS, partial(run_once, context))] if declare(context) else []


def run_once(context: AppContext) -> str:
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
            accompanying = audit_record.current.set(SettingRecorder(database, SETTING, "syncCatalog"))
            try:
                report = rounds.run(database, context.lake, each)
            finally:
                audit_record.current.reset(accompanying)
            changed += sum(found.is_done for found in report.findings)
        except GroundskeeperError as error:
            failed += 1
            log.warning("The sync of the catalog %s failed: %s %s", each.name, error.title, error.detail)
        finally:
            rounds.turn.release()
    return f"registered or unregistered {changed} tables of catalogs; {failed} catalogs failed"
