"""The problems of the installation, the most serious ones first."""

from __future__ import annotations

import logging
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import TypeVar

from service.db.page import Cursor, Page, not_a_cursor, page_of
from service.health import (
    backlog,
    catalogs,
    clocks,
    file_sizes,
    fleet,
    held_back,
    late_services,
    locks,
    metadata_table,
    objectives,
    other_runners,
    polling,
    timeline,
)
from service.health.problem import RANKS, HealthProblem, ProblemKind, Severity
from service.health.problem_changes import NotComputed
from service.health.problem_facts import Facts, TableFacts

log = logging.getLogger(__name__)

_PLACE = attrgetter("place")
# Up to this share of all problems, inserting new ones one by one is faster than sorting all.
_FEW_AMONG = 20

_OfTable = Callable[[TableFacts, datetime], Iterable[HealthProblem] | HealthProblem | None]
_OfAll = Callable[[Facts, datetime], Iterable[HealthProblem] | HealthProblem | None]

OF_TABLES: Mapping[_OfTable, Collection[ProblemKind]] = {
    polling.unreadable: {ProblemKind.TABLE_UNREADABLE},
    polling.not_polled: {ProblemKind.TABLE_NOT_POLLED},
    polling.not_writable: {ProblemKind.TABLE_NOT_WRITABLE},
    polling.vanished: {ProblemKind.COMMITS_VANISHED},
    polling.missed: {ProblemKind.COMMITS_MISSED},
    timeline.incidents: {ProblemKind.INCIDENT_STANDING},
    timeline.dead_writer: {ProblemKind.DEAD_WRITER},
    timeline.stuck_plans: {ProblemKind.PLAN_STUCK},
    clocks.disagree: {ProblemKind.CLOCKS_DISAGREE},
    other_runners.other_runners: {ProblemKind.OTHER_RUNNER},
    timeline.timeline_long: {ProblemKind.TIMELINE_LONG},
    metadata_table.behind: {ProblemKind.METADATA_TABLE_BEHIND},
    metadata_table.incomplete: {ProblemKind.METADATA_TABLE_INCOMPLETE},
    late_services.compaction_behind: {ProblemKind.COMPACTION_BEHIND},
    backlog.growing: {ProblemKind.COMPACTION_BACKLOG_GROWING},
    late_services.cleaning_behind: {ProblemKind.CLEANING_BEHIND},
    objectives.missed: {ProblemKind.OBJECTIVE_MISSED},
    late_services.cannot_act: {ProblemKind.POLICY_CANNOT_ACT},
    late_services.held_up: {ProblemKind.JOBS_HELD_UP},
    late_services.warned: {ProblemKind.POLICY_WARNING},
    file_sizes.too_large: {ProblemKind.BUCKET_TOO_LARGE},
    file_sizes.skewed: {ProblemKind.BUCKETS_SKEWED},
    file_sizes.small_files: {ProblemKind.SMALL_FILES},
    fleet.failing_jobs: {ProblemKind.JOB_FAILING},
    held_back.held_back: {ProblemKind.JOB_HELD_BACK},
    fleet.unsettled_jobs: {ProblemKind.JOB_UNSETTLED},
    fleet.awaited_locks: {ProblemKind.LOCK_AWAITED},
    locks.held_long: {ProblemKind.LOCK_HELD_LONG},
}
"""Functions that find problems of one table, each with the kinds that it finds."""

OF_THE_REST: Mapping[_OfAll, Collection[ProblemKind]] = {
    fleet.groups_without_worker: {ProblemKind.GROUP_WITHOUT_WORKER},
    fleet.lost_workers: {ProblemKind.WORKER_LOST},
    fleet.webhooks: {
        ProblemKind.WEBHOOK_FAILING,
        ProblemKind.WEBHOOK_DISABLED,
        ProblemKind.DELIVERIES_GIVEN_UP,
    },
    fleet.pause: {ProblemKind.JOBS_PAUSED},
    catalogs.catalogs: {ProblemKind.CATALOG_FAILING, ProblemKind.CATALOG_DIFFERS},
}


@dataclass(frozen=True)
class Found:
    """The result of a search."""

    problems: Sequence[HealthProblem]  # The most serious first, among equals the oldest.
    not_computed: NotComputed = field(default_factory=NotComputed)


@dataclass(frozen=True)
class Wanted:
    """A filter. Empty collections select everything."""

    table_id: str | None = None
    kinds: Collection[ProblemKind] = ()
    severities: Collection[Severity] = ()
    since: datetime | None = None  # The problem began at this time or later.
    until: datetime | None = None  # The problem began before this time.
    tables: Collection[str] | None = None  # The problem is about one of these tables; None selects everything.

    @property
    def is_everything(self) -> bool:
        names = self.table_id or self.kinds or self.severities or self.since or self.until
        return not names and self.tables is None

    def selects(self, problem: HealthProblem) -> bool:
        return (
            (self.table_id is None or problem.table_id == self.table_id)
            and (self.tables is None or problem.table_id in self.tables)
            and (not self.kinds or problem.kind in self.kinds)
            and (not self.severities or problem.severity in self.severities)
            and (self.since is None or problem.since >= self.since)
            and (self.until is None or problem.since < self.until)
        )


@dataclass(frozen=True)
class Listed:
    """A page of problems, and the number of all that match the filter, by severity."""

    page: Page[HealthProblem]
    counts: Mapping[Severity, int]


@dataclass(frozen=True)
class Part:
    """The problems of one table, or all problems that are not about a table."""

    problems: Sequence[HealthProblem]  # Sorted like those of `Found`.
    failed: Collection[ProblemKind] = ()  # Kinds that could not be computed.


def of_table(table: TableFacts, now: datetime, logged: set[object]) -> Part:
    """Returns the problems of a table. If a function fails, its error is logged only once, and noted in `logged`,
    because the function may fail for thousands of tables."""
    return _part(OF_TABLES, lambda find: find(table, now), table.id, logged)


def of_the_rest(facts: Facts, now: datetime) -> Part:
    """Returns the problems that are not about a table."""
    return _part(OF_THE_REST, lambda find: find(facts, now), "the installation", set())


def found_in(facts: Facts, now: datetime) -> Found:
    """Returns all problems. If a function fails for an object, only the problems that it finds for this object are
    missing."""
    logged: set[object] = set()
    of_tables = [(table.id, of_table(table, now, logged)) for table in facts.tables]
    rest = of_the_rest(facts, now)
    found = [*(each for _, part in of_tables for each in part.problems), *rest.problems]
    failed = {(table_id, kind) for table_id, part in of_tables for kind in part.failed}
    return Found(in_order(found), NotComputed(kinds_of_tables=failed, kinds=rest.failed))


def in_order(found: Iterable[HealthProblem]) -> list[HealthProblem]:
    return sorted(found, key=_PLACE)


def with_more(ordered: Sequence[HealthProblem], more: Sequence[HealthProblem]) -> list[HealthProblem]:
    """Returns `ordered`, which is sorted, with `more` inserted in the right places. Sorting many thousands of problems
    again would take some hundredths of a second, in which no other thread runs."""
    if len(more) * _FEW_AMONG > len(ordered):
        return in_order([*ordered, *more])
    found = list(ordered)
    for each in more:
        insort(found, each, key=_PLACE)
    return found


_Find = TypeVar("_Find", _OfTable, _OfAll)


def _part(
    every: Mapping[_Find, Collection[ProblemKind]],
    found_by: Callable[[_Find], Iterable[HealthProblem] | HealthProblem | None],
    about: str,
    logged: set[object],
) -> Part:
    found: list[HealthProblem] = []
    failed: set[ProblemKind] = set()
    for find, kinds in every.items():
        try:
            each = found_by(find)
            if each is not None:
                found += [each] if isinstance(each, HealthProblem) else each
        except Exception:
            if find not in logged:
                log.exception("Problems of %s cannot be computed", about)
                logged.add(find)
            failed.update(kinds)
    return Part(in_order(found), failed)


def page(found: Sequence[HealthProblem], wanted: Wanted, *, limit: int, cursor: str | None = None) -> Listed:
    """Returns a page of `found`, which are in the order of `found_in`. If a problem begins or ends between two
    requests, no other problem is repeated or skipped. Raises ParamsInvalidError."""
    selected = found if wanted.is_everything else [problem for problem in found if wanted.selects(problem)]
    first = bisect_right(selected, _after(Cursor.parse(cursor)), key=_PLACE) if cursor else 0
    return Listed(
        page_of(
            selected[first : first + limit + 1], limit, lambda each: (each.since, f"{RANKS[each.severity]}.{each.id}")
        ),
        counts(selected),
    )


def counts(found: Sequence[HealthProblem]) -> Mapping[Severity, int]:
    """Counts problems by severity. `found` is in the order of `found_in`, so a binary search finds where each severity
    ends."""
    ends = {
        severity: bisect_right(found, rank, key=lambda each: RANKS[each.severity]) for severity, rank in RANKS.items()
    }
    return Counter(
        {severity: end - begin for (severity, end), begin in zip(ends.items(), (0, *ends.values()), strict=False)}
    )


def _after(cursor: Cursor) -> tuple[int, datetime, str]:
    rank, separator, problem_id = cursor.id.partition(".")
    if not (separator and rank.isdecimal() and rank.isascii() and len(rank) == 1):
        raise not_a_cursor()
    return int(rank), cursor.created_at, problem_id
