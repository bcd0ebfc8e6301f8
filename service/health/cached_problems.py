"""The problems and backlogs of the whole installation, as they were a few seconds ago.

A search of ten thousand tables takes a quarter of a second, and pages of the dashboard request problems after each
event. So each process searches once for all callers, who get the previous result until the new one is there. The first
search after a start takes longer, because it computes the problems of all tables. Meanwhile callers get the problems
that the last round of `problem_rounds` has stored. Until these are read, an overview of very many tables shows no
problems.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine

from service.catalog import table_statistics, table_store
from service.db.engine import reading
from service.health import overview, overview_store, problem_store, problems
from service.health.fleet_problems import FleetProblems
from service.health.overview import Listing
from service.health.problem import HealthProblem
from service.health.problem_groups import groups
from service.health.problem_search import ProblemSearch, Search
from service.health.result_cache import AT_ONCE, NEW, NOT_OLD, MostAge, ResultCache
from service.model.clock import Clock


@dataclass(frozen=True)
class _Searched:
    found: problems.Found
    paths: Mapping[str, str]
    known: FleetProblems


def _known(search: Search, now: datetime) -> FleetProblems:
    found = search.found.problems
    return FleetProblems(
        as_of=now,
        problems=found,
        backlogs={table_id: each.backlog for table_id, each in search.tables.items() if each.backlog},
        counts=problems.counts(found),
        of_tables={table_id: each.part.problems for table_id, each in search.tables.items() if each.part.problems},
        groups=groups(found),
    )


class ProblemCache:
    """The result that this process computed last. Safe to use from several threads."""

    def __init__(self) -> None:
        self._search = ProblemSearch()
        self.written: Mapping[str, HealthProblem] = {}
        """The problems that this process has stored last, by id."""
        self._problems = ResultCache(
            "problems",
            self._search_now,
            tables=lambda each: len(each.paths),
            number=_number,
            stored=_of_last_round,
            meanwhile=self._with_backlogs,
        )
        self._backlogs = ResultCache("backlogs", self._without_problems, tables=lambda each: len(each.backlogs))
        self._tables = ResultCache("list of tables", self._listed, tables=lambda each: len(each.tables))

    def known(self, engine: Engine, clock: Clock, accepted: MostAge = AT_ONCE) -> FleetProblems:
        """Returns the last result. If there are so many tables that computing takes long, the result may be minutes
        old, and after a start it may have only the backlogs. Raises DatabaseUnavailableError."""
        return self._problems.get(engine, clock, accepted).known

    def tables(self, engine: Engine, clock: Clock) -> Listing:
        """Returns all tables. If there are very many, the list may be an older, cached one. Raises
        DatabaseUnavailableError."""
        return self._tables.get(engine, clock, NOT_OLD)

    def search(self, engine: Engine, clock: Clock) -> tuple[problems.Found, Mapping[str, str]]:
        """Examines the whole installation now, and caches the result. Returns the result, and the base path of each
        table that could be read, by id. Raises DatabaseUnavailableError."""
        searched = self._problems.get(engine, clock, NEW)
        return searched.found, searched.paths

    def note_written(self, found: Iterable[HealthProblem], ids: Collection[str]) -> None:
        """Records which of the problems this process has stored, and forgets those that have ended."""
        written = {each.id: each if each.id in ids else self.written.get(each.id) for each in found}
        self.written = {key: each for key, each in written.items() if each is not None}

    def prepare(self, engine: Engine) -> bool:
        """Reads the problems that the last round has stored, if there are many tables. Returns whether there are many.
        Raises DatabaseUnavailableError."""
        self._problems.of_before(engine)
        return self._problems.is_of_many(engine)

    def _search_now(self, engine: Engine, now: datetime) -> _Searched:
        search = self._search.run(engine, now)
        paths = {table_id: each.base_path for table_id, each in search.tables.items()}
        known = _known(search, now)
        if (listing := self._tables.last) is not None:
            overview.arrange(listing, known)
        return _Searched(search.found, paths, known)

    def _with_backlogs(self, engine: Engine, clock: Clock) -> _Searched:
        return _Searched(problems.Found(()), {}, self._backlogs.get(engine, clock, NOT_OLD))

    def _without_problems(self, engine: Engine, _now: datetime) -> FleetProblems:
        with reading(engine) as connection:
            return FleetProblems(None, backlogs=table_statistics.backlogs(connection))

    def _listed(self, engine: Engine, _now: datetime) -> Listing:
        with reading(engine) as connection:
            listing = overview_store.tables(connection, overview_store.activity(connection).busy)
        searched = self._problems.last
        known = searched.known if searched is not None else self._backlogs.last
        if known is not None:
            overview.arrange(listing, known)
        return listing


def _number(engine: Engine) -> int:
    with reading(engine) as connection:
        return table_store.number(connection)


def _of_last_round(engine: Engine) -> _Searched | None:
    with reading(engine) as connection:
        as_of, tables = problem_store.last_round(connection), table_statistics.backlogs(connection)
        if as_of is None:
            return None
        found = problem_store.every(connection)
    of_tables = defaultdict(list)
    for each in found:
        if each.table_id is not None:
            of_tables[each.table_id].append(each)
    known = FleetProblems(as_of, found, tables, problems.counts(found), of_tables, groups(found))
    return _Searched(problems.Found(found), dict.fromkeys(tables, ""), known)
