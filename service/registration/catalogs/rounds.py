"""Syncs of catalogs. The outcome is stored: what a sync has found, and since when a catalog fails."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

import msgspec

from service.db.engine import reading, writing
from service.events.database import Database
from service.model.errors import GroundskeeperError
from service.observation.lake_access import LakeAccess
from service.registration.catalogs import store
from service.registration.catalogs.catalog import Catalog
from service.registration.catalogs.errors import CatalogThrottledError
from service.registration.catalogs.following import Report, counts, sync

MOST_FINDINGS = 500
"""At most this many findings are stored. The counts cover all findings."""
_MOST_DOUBLINGS = 4

turn = threading.Lock()
"""A process runs one sync at a time."""


def run(database: Database, lake: LakeAccess, catalog: Catalog) -> Report:
    """Syncs a catalog and stores the outcome. An error of the catalog is stored too, and then raised."""
    try:
        report = sync(database, lake, catalog, dry_run=False)
    except GroundskeeperError as error:
        _failed(database, catalog, error)
        raise
    now = database.clock()
    findings = [each for each in report.findings if not each.is_done]
    kept = {
        "entries": report.entries,
        "tables": report.tables,
        "in_step": report.in_step,
        "is_complete": report.is_complete,
        "counts": counts(findings),
        "findings": msgspec.to_builtins(findings[:MOST_FINDINGS], enc_hook=dict),
    }
    # If a limit of time has ended the sync, the next sync continues at once.
    pause = catalog.every_seconds if report.is_complete or not any(each.is_done for each in report.findings) else 0
    with writing(database.engine) as connection:
        known = store.every(connection).get(catalog.name)
        if known is not None:
            next_at = now + timedelta(seconds=pause)
            since = (known.differs_since or now) if findings else None
            state = store.CatalogState(catalog.name, next_at, synced_at=now, differs_since=since, report=kept)
            store.change(connection, state)
    return report


def is_due(database: Database, catalog: Catalog) -> bool:
    """Returns whether this process has to sync the catalog now. If so, other replicas do not."""
    now = database.clock()
    with writing(database.engine) as connection:
        return store.claim(connection, catalog.name, now, now + timedelta(seconds=catalog.every_seconds))


def _failed(database: Database, catalog: Catalog, error: GroundskeeperError) -> None:
    now = database.clock()
    with writing(database.engine) as connection:
        known = store.every(connection).get(catalog.name)
        if known is None:
            return
        failures = known.failures + 1
        # A catalog that refuses calls because there are too many is asked less and less often.
        doublings = min(failures, _MOST_DOUBLINGS) if isinstance(error, CatalogThrottledError) else 0
        state = replace(
            known,
            next_at=now + timedelta(seconds=catalog.every_seconds * 2**doublings),
            failing_since=known.failing_since or now,
            failures=failures,
            error=error.problem(),
        )
        store.change(connection, state)


def states(database: Database) -> dict[str, store.CatalogState]:
    with reading(database.engine) as connection:
        return store.every(connection)
