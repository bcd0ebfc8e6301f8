"""The standing problems of the installation, the most serious ones first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.db.page import Cursor, Page, not_a_cursor, page_of
from service.queue import worker_store
from service.scheduling import pause_store
from service.standing import fleet, fleet_store, layout, reading, table_store, timeline, upkeep
from service.standing.facts import Facts
from service.standing.problem import RANKS, Severity, StandingProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from service.standing.facts import TableFacts
    from service.standing.problem import StandingKind

    _OfTable = Callable[[TableFacts, datetime], Iterable[StandingProblem] | StandingProblem | None]
    _OfAll = Callable[[Facts, datetime], Iterable[StandingProblem] | StandingProblem | None]

OF_TABLES: tuple[_OfTable, ...] = (
    reading.unreadable,
    reading.not_polled,
    reading.missed,
    timeline.incidents,
    timeline.dead_writer,
    timeline.stuck_plans,
    timeline.timeline_long,
    upkeep.compaction_behind,
    upkeep.cleaning_behind,
    upkeep.cannot_act,
    upkeep.held_up,
    upkeep.warned,
    layout.too_large,
    layout.skewed,
    layout.small_files,
    fleet.failing_jobs,
    fleet.unsettled_jobs,
    fleet.awaited_locks,
)

OF_THE_REST: tuple[_OfAll, ...] = (fleet.groups_without_worker, fleet.lost_workers, fleet.webhooks, fleet.pause)


@dataclass(frozen=True)
class Wanted:
    """A filter. Empty collections select everything."""

    table_id: str | None = None
    kinds: Collection[StandingKind] = ()
    severities: Collection[Severity] = ()

    def selects(self, problem: StandingProblem) -> bool:
        return (
            (self.table_id is None or problem.table_id == self.table_id)
            and (not self.kinds or problem.kind in self.kinds)
            and (not self.severities or problem.severity in self.severities)
        )


@dataclass(frozen=True)
class Listed:
    """A page of problems, and the number of all that match the filter, by severity."""

    page: Page[StandingProblem]
    counts: Mapping[Severity, int]


def facts(connection: Connection, now: datetime, table_id: str | None = None) -> Facts:
    """Reads everything that problems are computed from: of one table, or of the whole installation."""
    tables = table_store.facts(connection, now, table_id)
    if table_id is not None:
        return Facts(tables)
    workers = worker_store.every(connection)
    return Facts(
        tables=tables,
        backlogs=fleet_store.backlogs(connection, now),
        workers=workers,
        lost=fleet_store.lost(connection, workers, now),
        webhooks=fleet_store.webhooks(connection),
        pause=pause_store.pause_of(connection),
    )


def of(facts: Facts, now: datetime) -> list[StandingProblem]:
    """Returns the problems, the most serious ones first, and of these the oldest."""
    found = [problem for table in facts.tables for find in OF_TABLES for problem in _each(find(table, now))]
    found += [problem for search in OF_THE_REST for problem in _each(search(facts, now))]
    return sorted(found, key=_place)


def page(found: Iterable[StandingProblem], wanted: Wanted, *, limit: int, cursor: str | None = None) -> Listed:
    """`found` are in the order of `of`. A problem that begins or ends between two pages neither repeats nor hides
    others. Raises ParamsInvalidError."""
    selected = [problem for problem in found if wanted.selects(problem)]
    counts = Counter(problem.severity for problem in selected)
    rest = selected
    if cursor:
        after = _after(Cursor.parse(cursor))
        rest = [problem for problem in selected if _place(problem) > after]
    return Listed(
        page_of(rest[: limit + 1], limit, lambda each: (each.since, f"{RANKS[each.severity]}.{each.id}")), counts
    )


def _place(problem: StandingProblem) -> tuple[int, datetime, str]:
    return RANKS[problem.severity], problem.since, problem.id


def _after(cursor: Cursor) -> tuple[int, datetime, str]:
    rank, separator, problem_id = cursor.id.partition(".")
    if not (separator and rank.isdecimal() and rank.isascii() and len(rank) == 1):
        raise not_a_cursor()
    return int(rank), cursor.created_at, problem_id


def _each(found: Iterable[StandingProblem] | StandingProblem | None) -> Iterator[StandingProblem]:
    if found is None:
        return
    if isinstance(found, StandingProblem):
        yield found
    else:
        yield from found
