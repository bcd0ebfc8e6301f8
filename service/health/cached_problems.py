"""The problems and backlogs of the whole installation, as they were a few seconds ago.

Computing them takes half a second for a thousand tables, and a page requests them after each event. So each process
computes them once for all callers. Until the result is there it returns the previous one, or what the last round of
`problem_rounds` has found, so that the first caller does not wait either.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.db.engine import reading
from service.health import overview_store
from service.health.known_problems import Known, TableBacklog
from service.health.problem_search import look
from service.health.result_cache import ResultCache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Engine

    from service.catalog.snapshot_store import KnownSnapshots
    from service.health.overview import Listing
    from service.health.problem_facts import TableFacts
    from service.health.problems import Found
    from service.model.clock import Clock


@dataclass(frozen=True)
class _Look:
    found: Found
    paths: Mapping[str, str]
    known: Known


def _known(found: Found, tables: Sequence[TableFacts], now: datetime) -> Known:
    of_tables = defaultdict(list)
    for each in found.problems:
        if each.table_id is not None:
            of_tables[each.table_id].append(each)
    return Known(
        as_of=now,
        problems=found.problems,
        backlogs={table.id: backlog for table in tables if (backlog := _backlog(table))},
        counts=Counter(each.severity for each in found.problems),
        of_tables=of_tables,
    )


class ProblemCache:
    """The result that this process computed last. Safe to use from several threads."""

    def __init__(self) -> None:
        self._snapshots: KnownSnapshots = {}
        self._looks = ResultCache("problems", self._look, tables=lambda each: len(each.paths))
        self._tables = ResultCache("list of tables", _listed, tables=lambda each: len(each.tables))

    def known(self, engine: Engine, clock: Clock) -> Known:
        """Returns the latest result, which is at most some seconds old. Raises DatabaseUnavailableError."""
        return self._looks.latest(engine, clock).known

    def now(self, engine: Engine, clock: Clock) -> Known:
        """Returns the current state; the cached one if there are so many tables that computing it takes long. Raises
        DatabaseUnavailableError."""
        return self._looks.now(engine, clock).known

    def tables(self, engine: Engine, clock: Clock) -> Listing:
        """Returns all tables: the current ones, or the cached ones if there are very many. Raises
        DatabaseUnavailableError."""
        return self._tables.now(engine, clock)

    def look(self, engine: Engine, clock: Clock) -> tuple[Found, Mapping[str, str]]:
        """Examines the whole installation now, and caches the result. Also returns the base paths of the tables that
        could be read, by id. Raises DatabaseUnavailableError."""
        look = self._looks.anew(engine, clock)
        return look.found, look.paths

    def _look(self, engine: Engine, now: datetime) -> _Look:
        found, tables = look(engine, now, snapshots=self._snapshots)
        return _Look(found, {table.id: table.base_path for table in tables}, _known(found, tables, now))


def _listed(engine: Engine, _now: datetime) -> Listing:
    with reading(engine) as connection:
        return overview_store.tables(connection, overview_store.activity(connection).busy)


def _backlog(table: TableFacts) -> TableBacklog | None:
    if table.snapshot is None:
        return None
    totals = table.snapshot.totals
    return TableBacklog(
        log_bytes=totals.log_bytes,
        base_bytes=totals.base_bytes,
        commits=table.snapshot.since_compaction.commits,
        last_commit_at=table.snapshot.last_commit_at,
    )
