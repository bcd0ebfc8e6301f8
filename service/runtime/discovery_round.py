"""Registers the tables below the folders of GROUNDSKEEPER_DISCOVER periodically."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from service.access.token import Role
from service.api.dependencies import AppContext, Caller
from service.api.discovery import DiscoverIn, FoundState, discover
from service.db import audit_record
from service.events.database import Database
from service.model.errors import GroundskeeperError
from service.observation.lake_access import LakeAccess
from service.runtime.setting_recorder import SettingRecorder
from service.runtime.settings import Settings
from service.runtime.ticks import Tick

log = logging.getLogger(__name__)

SETTING = "GROUNDSKEEPER_DISCOVER"


def ticks(context: AppContext, chosen: Settings) -> list[Tick]:
    """Returns the task that searches, if the settings name folders."""
    if not chosen.discover:
        return []
    wanted = [DiscoverIn.model_validate({**each, "register": True}) for each in chosen.discover]
    return [Tick("discover", chosen.discover_seconds, partial(run_once, context.database, context.lake, wanted))]


def run_once(database: Database, lake: LakeAccess, wanted: Sequence[DiscoverIn]) -> str:
    """Searches below each root and registers the tables that it finds. If a root cannot be read, the others continue.
    Returns a text about what was done."""
    registered = 0
    for each in wanted:
        # The settings name the root, so it is allowed even if no roots are set.
        roots = lake.permissions.roots if lake.permissions.roots is not None else (each.root,)
        allowed = replace(lake, permissions=replace(lake.permissions, roots=roots))
        accompanying = audit_record.current.set(SettingRecorder(database, SETTING, "discoverTables"))
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
