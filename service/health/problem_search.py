"""Reads facts from the database and finds problems in them.

A search of all tables reads a digest of the facts of each table. The problems of a table are computed again only if its
digest has changed, or if they depend on the time that has passed. So a search of many tables costs little, and finds
the same as a search that computes everything.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection, Engine

from service.catalog.table_statistics import TableBacklog
from service.db.engine import may_find, reading
from service.health import fleet_store, problems, table_store
from service.health.late_services import CURRENT
from service.health.problem import HealthProblem, ProblemKind
from service.health.problem_changes import NotComputed
from service.health.problem_facts import Facts, TableFacts
from service.health.problems import Found, Part
from service.health.table_store import RareFacts, Version
from service.health.validity import TrackedTime
from service.model.calls import calls
from service.model.errors import DatabaseUnavailableError
from service.policies import pause_store
from service.policies import store as policy_store
from service.policies.policy import PatternPolicy
from service.queue import worker_store
from service.registration.catalogs import store as catalog_store

log = logging.getLogger(__name__)

_COMPARED_AT_ONCE = 500
_COMPUTED_AT_ONCE = 50
# After each portion of this many tables, the search pauses for a multiple of the time that the portion took, so that
# other threads get the processor.
_WITHOUT_REST = 200
_REST = 1.0
_MOST_REST_SECONDS = 0.1
# Before each table the search waits at most this long for calls that are being answered.
_GIVEN_WAY_SECONDS = 0.005

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class SearchedTable:
    """The result of a search for one table."""

    digest: int  # The digest of the table's facts at that time.
    valid_until: datetime
    base_path: str
    part: Part
    backlog: TableBacklog | None


@dataclass(frozen=True)
class Search:
    """The result of a search."""

    found: Found
    tables: Mapping[str, SearchedTable]  # The tables that could be read, by id.


def of_table(engine: Engine, now: datetime, table_id: str) -> Found:
    """Returns the problems of one table. If they cannot be read or computed, they are missing. Raises
    DatabaseUnavailableError."""
    tables, unread = _facts(engine, now, [table_id], None)
    found = problems.found_in(Facts(tables), now)
    return Found(found.problems, NotComputed(unread, found.not_computed.kinds_of_tables))


@dataclass
class _State:
    """What one search keeps for the next one."""

    as_of: datetime
    tables: dict[str, SearchedTable] = field(default_factory=dict)
    rare: RareFacts | None = None
    patterns: Sequence[PatternPolicy] = ()
    of_tables: list[HealthProblem] = field(default_factory=list)  # Sorted.


class ProblemSearch:
    """Searches the whole installation again and again. One search runs at a time."""

    def __init__(self) -> None:
        self._last: _State | None = None

    def run(self, engine: Engine, now: datetime) -> Search:
        """Finds all present problems. If something cannot be read or computed, only its own problems are missing.
        Raises DatabaseUnavailableError."""
        last = self._last
        if last is None or now < last.as_of:
            last = _State(now)
        round_ = _Round(engine, now, last)
        state = round_.run()
        self._last = state
        rest, failed = _of_the_rest(engine, now)
        found = problems.with_more(state.of_tables, rest.problems)
        of_tables = {(table_id, kind) for table_id, each in state.tables.items() for kind in each.part.failed}
        return Search(Found(found, NotComputed(round_.unread, of_tables, {*rest.failed, *failed})), state.tables)


class _Round:
    """One search of all tables. `unread` are those that could not be read."""

    def __init__(self, engine: Engine, now: datetime, last: _State) -> None:
        self._engine, self._now, self._last = engine, now, last
        self._now_tracked = TrackedTime.of(now)
        self._logged: set[object] = set()
        self._seen = 0
        self._changed: set[str] = set()
        self._tables: dict[str, SearchedTable] = {}
        self.unread: set[str] = set()

    def run(self) -> _State:
        rare, patterns, decided = self._common()
        touched = _touched(self._last.rare, rare)
        new = [each for each in patterns if each not in self._last.patterns]
        changed = [*new, *(each for each in self._last.patterns if each not in patterns)]
        after = ""
        while True:
            began = time.monotonic()
            with reading(self._engine) as connection:
                page = table_store.versions(connection, self._now, decided, after, _COMPARED_AT_ONCE)
            due = []
            for version in page:
                last = self._last.tables.get(version.id)
                if (
                    last is None
                    or last.digest != version.digest
                    or last.valid_until <= self._now
                    or version.id in touched
                    or rare is None
                    or (changed and _matches(version, changed))
                ):
                    due.append(version)
                else:
                    self._tables[version.id] = last
            self._rest(len(page), began)
            for first in range(0, len(due), _COMPUTED_AT_ONCE):
                began, some = time.monotonic(), due[first : first + _COMPUTED_AT_ONCE]
                self._compute(some, rare)
                self._rest(len(some), began)
            if len(page) < _COMPARED_AT_ONCE:
                break
            after = page[-1].id
        return _State(self._now, self._tables, rare, patterns, self._in_order())

    def _common(self) -> tuple[RareFacts | None, Sequence[PatternPolicy], Mapping[str, object]]:
        """Returns the facts that are read for all tables at once. If reading them fails, each table is read alone."""
        try:
            is_any_rare = table_store.is_any_rare(self._engine, self._now)
            with reading(self._engine) as connection:
                return (
                    table_store.rare(connection, self._now) if is_any_rare else table_store.no_rare(),
                    policy_store.every(connection),
                    table_store.decided(connection, self._now),
                )
        except DatabaseUnavailableError:
            raise
        except Exception:
            log.exception("The tables cannot be read together, so they are read one by one")
            return None, (), {}

    def _compute(self, versions: Sequence[Version], rare: RareFacts | None) -> None:
        digests = {version.id: version.digest for version in versions}
        tables, unread = _facts(self._engine, self._now, list(digests), rare)
        self.unread |= unread
        for table in tables:
            calls.give_way(_GIVEN_WAY_SECONDS)
            self._now_tracked.start()
            for decision in table.decisions.values():
                self._now_tracked.ends_at(decision.last_at + CURRENT)
            part = problems.of_table(table, self._now_tracked, self._logged)
            # A failed computation is repeated in the next search.
            until = self._now if part.failed else self._now_tracked.valid_until
            self._tables[table.id] = SearchedTable(digests[table.id], until, table.base_path, part, _backlog(table))
        self._changed.update(digests)

    def _in_order(self) -> list[HealthProblem]:
        gone = self._last.tables.keys() - self._tables.keys()
        if not (gone or self._changed):
            return self._last.of_tables
        other = self._changed | gone
        kept = [each for each in self._last.of_tables if each.about.id not in other]
        new = [
            each for table_id in self._changed & self._tables.keys() for each in self._tables[table_id].part.problems
        ]
        return problems.with_more(kept, new)

    def _rest(self, tables: int, began: float) -> None:
        self._seen += tables
        if self._seen > _WITHOUT_REST:
            time.sleep(min(_REST * (time.monotonic() - began), _MOST_REST_SECONDS))


def _touched(before: RareFacts | None, now: RareFacts | None) -> set[str]:
    """Returns the tables whose rare facts differ."""
    if before is None or now is None:
        return set()
    touched = set()
    for each in fields(now):
        one, other = getattr(before, each.name), getattr(now, each.name)
        touched |= {table_id for table_id in {*one, *other} if one.get(table_id) != other.get(table_id)}
    return touched


def _matches(version: Version, patterns: Iterable[PatternPolicy]) -> bool:
    subject = version.subject
    return any(subject.matches(each.pattern) for each in patterns)


def _facts(
    engine: Engine, now: datetime, table_ids: Sequence[str], rare: RareFacts | None
) -> tuple[list[TableFacts], set[str]]:
    """Returns the facts of these tables, and the ids of those that could not be read. If a single query for all fails,
    each table is read alone."""
    try:
        with reading(engine) as connection:
            return table_store.facts(connection, now, table_ids, rare), set()
    except DatabaseUnavailableError:
        raise
    except Exception:
        log.exception("The facts of these tables cannot be read together: %s", ", ".join(table_ids[:20]))
    if len(table_ids) == 1:
        return [], set(table_ids)
    found: list[TableFacts] = []
    unread: set[str] = set()
    for each in table_ids:
        tables, failed = _facts(engine, now, [each], rare)
        found += tables
        unread |= failed
    return found, unread


def _of_the_rest(engine: Engine, now: datetime) -> tuple[Part, Collection[ProblemKind]]:
    """Returns the problems that are not about a table, and the kinds whose facts could not be read."""
    failed: set[ProblemKind] = set()

    def part(read: Callable[[Connection], _Part], kinds: Iterable[ProblemKind]) -> _Part | None:
        try:
            with reading(engine) as connection:
                return read(connection)
        except DatabaseUnavailableError:
            raise
        except Exception:
            log.exception("The facts for these kinds of problems cannot be read: %s", ", ".join(kinds))
            failed.update(kinds)
            return None

    def of_workers(connection: Connection) -> dict[str, object]:
        workers = worker_store.every(connection)
        lost = fleet_store.lost(connection, workers, now)
        backlogs = fleet_store.backlogs(connection, now) if may_find(engine, fleet_store.ANY_QUEUED) else ()
        return {"backlogs": backlogs, "workers": workers, "lost": lost}

    workers = part(of_workers, (ProblemKind.GROUP_WITHOUT_WORKER, ProblemKind.WORKER_LOST)) or {}
    of_webhooks = (ProblemKind.WEBHOOK_FAILING, ProblemKind.WEBHOOK_DISABLED, ProblemKind.DELIVERIES_GIVEN_UP)
    webhooks = (part(fleet_store.webhooks, of_webhooks) or ()) if may_find(engine, fleet_store.ANY_WEBHOOK) else ()
    pause = part(pause_store.pause_of, (ProblemKind.JOBS_PAUSED,))
    of_catalogs = (ProblemKind.CATALOG_FAILING, ProblemKind.CATALOG_DIFFERS)
    catalogs = tuple((part(catalog_store.every, of_catalogs) or {}).values())
    facts = Facts(webhooks=webhooks, pause=pause, catalogs=catalogs, **workers)  # type: ignore[arg-type]
    return problems.of_the_rest(facts, now), failed


def _backlog(table: TableFacts) -> TableBacklog | None:
    if table.snapshot is None:
        return None
    totals, own = table.snapshot.totals, table.snapshot.metadata_table
    return TableBacklog(
        log_bytes=totals.log_bytes,
        base_bytes=totals.base_bytes,
        commits=table.snapshot.since_compaction.commits,
        last_commit_at=table.snapshot.last_commit_at,
        metadata_commits=own.commits if own else None,
    )
