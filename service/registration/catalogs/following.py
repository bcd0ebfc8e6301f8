"""Adapts the registered tables to a catalog, according to the catalog's rules. Never touches the data of a table."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from jobs.storage.location import is_below
from service.catalog import table_secrets, table_store
from service.catalog.registration import Registration
from service.db import audit_record
from service.db.engine import reading, writing
from service.events.database import Database
from service.lake.location import canonical
from service.model.errors import GroundskeeperError
from service.model.storage_errors import ReaderCrashedError, ReadTimedOutError
from service.model.table_errors import TableAlreadyRegisteredError
from service.observation.lake_access import LakeAccess
from service.policies import store as policy_store
from service.registration import discovery, registry
from service.registration.catalogs import store
from service.registration.catalogs.catalog import Catalog
from service.registration.catalogs.comparison import Action, Compared, Finding, FindingKind, KnownTable, State, compare
from service.registration.catalogs.errors import CatalogError, CatalogUnavailableError
from service.registration.catalogs.listing import Listed, Listing, named, read
from service.registration.registry import Declarations

log = logging.getLogger(__name__)

# Clients wait a minute for an answer, so a sync must end before that.
SECONDS = 45.0
_AT_ONCE = 500


@dataclass(frozen=True)
class Report:
    """What a sync has found and done. `entries` counts the catalog's tables of all kinds, `tables` those of Hudi.
    `is_complete` is False if a limit of number or time ended the sync; the next sync then continues."""

    entries: int
    tables: int
    in_step: int
    findings: tuple[Finding, ...]
    is_complete: bool


def sync(database: Database, lake: LakeAccess, catalog: Catalog, *, dry_run: bool) -> Report:
    """Compares the catalog with the registered tables, and does what the catalog's rules say. A dry run only reports
    what would be done. If one table fails, the others continue. Raises the errors of catalogs."""
    end, allowed_roots = time.monotonic() + SECONDS, _roots(lake, catalog)
    listing = _listing(lake, catalog)
    with reading(database.engine) as connection:
        known = store.tables(connection, catalog.name)
        paths = {each.base_path for each in listing.tables} | {each.base_path for each in known.values()}
        registered = {
            path: table_id
            for some in _chunks(paths)
            for path, table_id in table_store.find_all(connection, some).items()
        }
        state = State(
            known,
            registered,
            database.clock(),
            elsewhere=store.listed_elsewhere(connection, catalog.name),
            with_policy=policy_store.tables_with_own(connection),
        )
    compared = compare(catalog, listing, state)
    turn = _Turn(database, lake, catalog, allowed_roots=allowed_roots, dry_run=dry_run)
    listed = {each.name: each for each in listing.tables}
    findings, is_complete = [], listing.is_complete
    for each in compared.findings:
        if time.monotonic() > end:
            is_complete = False
            findings.append(each)
        else:
            findings.append(turn.settled(each, listed.get(each.name)))
    if not dry_run:
        _remember(database, catalog, listing, compared, state=state, turn=turn)
    return Report(listing.entries, len(listing.tables), len(compared.in_step), tuple(findings), is_complete)


def _roots(lake: LakeAccess, catalog: Catalog) -> tuple[str, ...]:
    """Returns the roots below which tables of the catalog may lie: those of the settings, or else those in the
    catalog's declaration. Being listed in the catalog does not make a location allowed."""
    allowed = lake.permissions.roots
    if allowed is None or not catalog.roots:
        return catalog.roots if allowed is None else allowed
    canonical_roots = [canonical(each) for each in allowed]
    return tuple(each for each in catalog.roots if is_below(canonical(each), canonical_roots))


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Returns, for each kind, the number of findings that are not settled."""
    return dict(Counter(each.kind.value for each in findings if not each.is_done))


def _listing(lake: LakeAccess, catalog: Catalog) -> Listing:
    try:
        return lake.readers.run(read, catalog.source)
    except (ReadTimedOutError, ReaderCrashedError) as error:
        raise CatalogUnavailableError(f"{catalog.shown_address}: {error.detail}") from error
    except CatalogError as error:
        raise named(error, catalog.shown_address) from error


def _chunks(paths: Iterable[str]) -> Iterable[list[str]]:
    ordered = sorted(paths)
    return (ordered[first : first + _AT_ONCE] for first in range(0, len(ordered), _AT_ONCE))


class _Turn:
    """The changes of one sync. `registered` are the tables that it has registered, by name. `ended` are the names whose
    tables it has unregistered."""

    def __init__(
        self,
        database: Database,
        lake: LakeAccess,
        catalog: Catalog,
        *,
        allowed_roots: tuple[str, ...] | None,
        dry_run: bool,
    ) -> None:
        self._database, self._lake, self._catalog = database, lake, catalog
        self._roots, self._dry_run = allowed_roots, dry_run
        self.registered: dict[str, KnownTable] = {}
        self.ended: set[str] = set()

    def settled(self, each: Finding, listed: Listed | None) -> Finding:
        """Performs the action of a finding, and returns the finding with the outcome."""
        try:
            if each.kind is FindingKind.NEW and listed:
                return self._new(each, listed)
            if each.kind is FindingKind.MOVED and listed:
                return self._moved(each, listed)
            if each.action is Action.UNREGISTER and each.table_id and not self._dry_run:
                self._unregister(each.name, each.table_id)
                return replace(each, is_done=True)
        except GroundskeeperError as error:
            is_of_table = each.kind is FindingKind.NEW
            kind = FindingKind.REFUSED if is_of_table else each.kind
            return replace(each, kind=kind, action=Action.NONE, because=error.title, reason=error.problem())
        except Exception:
            # An unexpected error with one table must not keep the others from being registered.
            log.exception("The table %s of the catalog %s cannot be synced", each.name, self._catalog.name)
            problem = GroundskeeperError().problem()
            return replace(each, action=Action.NONE, because=problem.title, reason=problem)
        return each

    def _new(self, each: Finding, listed: Listed) -> Finding:
        if each.action is not Action.REGISTER or self._dry_run:
            self._check(listed)
            return each
        declared = replace(self._catalog.declared, owner=each.owner, tags=each.tags or {})
        self._register(each.name, listed, declared)
        return replace(each, is_done=True, table_id=self.registered[each.name].table_id)

    def _moved(self, each: Finding, listed: Listed) -> Finding:
        assert each.table_id
        self._check(listed)
        if each.action is not Action.FOLLOW or self._dry_run:
            return each
        with reading(self._database.engine) as connection:
            old = table_store.get(connection, each.table_id)
        # The new location is registered first. If that is refused, or jobs of the old registration are active, the old
        # registration stays.
        self._register(each.name, listed, self._as_declared(old), is_new=False)
        self._unregister(each.name, each.table_id)
        return replace(each, is_done=True, table_id=self.registered[each.name].table_id)

    def _check(self, listed: Listed) -> None:
        self._lake.readers.run(
            discovery.summary_of,
            listed.base_path,
            storage_options=self._lake.storage_options,
            allowed_roots=self._roots,
        )

    def _register(self, name: str, listed: Listed, declared: Declarations, *, is_new: bool = True) -> None:
        try:
            with audit_record.separate():
                table = registry.register(
                    self._database, self._lake, listed.base_path, declared, allowed_roots=self._roots
                )
        except TableAlreadyRegisteredError as error:
            table_id = str(error.extensions["table_id"])
            self.registered[name] = KnownTable(name, listed.base_path, table_id, is_ours=False)
            return
        self._lake.poll_requests.ask(table.id)
        self.registered[name] = KnownTable(name, table.base_path, table.id, is_ours=True)
        if is_new:
            # The table is stored at once. If this process ends before the sync does, the next sync knows that a sync
            # has registered it.
            with writing(self._database.engine) as connection:
                store.keep(connection, self._catalog.name, [self.registered[name]])

    def _unregister(self, name: str, table_id: str) -> None:
        with audit_record.separate():
            audit_record.exists("table", table_id)
            registry.unregister(self._database.engine, table_id)
        self.ended.add(name)

    def _as_declared(self, table: Registration) -> Declarations:
        cipher = self._database.cipher
        return replace(
            self._catalog.declared,
            name=table.name,
            index=table.index,
            lock=replace(table.lock, options=table_secrets.opened(cipher, table.lock.options)),
            writers=table.writers,
            readers=table.readers,
            hudi_options=table_secrets.opened(cipher, table.hudi_options),
            owner=table.owner,
            tags=table.tags,
        )


def _remember(
    database: Database, catalog: Catalog, listing: Listing, compared: Compared, *, state: State, turn: _Turn
) -> None:
    """Stores which tables the catalog lists, and since when it lacks others."""
    now, wants = state.now, catalog.source.wants
    rows: dict[str, KnownTable] = {}
    # A table that a sync has registered counts as such under another name too.
    ours = {row.table_id for row in state.known.values() if row.is_ours}
    for name, (listed, table_id) in compared.in_step.items():
        rows[name] = KnownTable(name, listed.base_path, table_id, table_id in ours)
    gone = set(turn.ended)
    for each in compared.findings:
        before = state.known.get(each.name)
        if each.kind is FindingKind.DROPPED and before and each.name not in turn.ended:
            rows[each.name] = replace(before, missing_since=before.missing_since or now)
        if each.kind is FindingKind.MOVED and before and before.missing_since:
            rows[each.name] = replace(before, missing_since=None)
    for name, row in turn.registered.items():
        before = state.known.get(name)
        # If a table has moved, and its old registration stays for now, it remains known at the old location.
        if name in turn.ended or before is None or before.base_path not in state.registered:
            rows[name] = replace(row, is_ours=row.is_ours or row.table_id in ours)
            gone.discard(name)
    changed = [row for name, row in rows.items() if state.known.get(name) != row]
    # Names that the catalog no longer has are forgotten, unless their table is still registered. Names that the
    # patterns no longer select are forgotten too.
    names = {each.name for each in listing.tables}
    listed_paths = {each.base_path for each in listing.tables}
    gone |= {
        name
        for name, row in state.known.items()
        if not wants(name)
        or (
            name not in names
            and listing.lacks(name)
            and (row.base_path in listed_paths or row.base_path not in state.registered)
        )
    }
    if changed or gone:
        with writing(database.engine) as connection:
            store.forget(connection, catalog.name, gone)
            store.keep(connection, catalog.name, changed)
