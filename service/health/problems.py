"""The standing problems of the installation, the most serious ones first."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from service.db.page import Cursor, Page, not_a_cursor, page_of
from service.health import (
    backlog,
    clocks,
    file_sizes,
    fleet,
    held_back,
    late_services,
    locks,
    other_runners,
    polling,
    timeline,
)
from service.health.problem import RANKS, Severity, StandingKind, StandingProblem
from service.health.problem_changes import NotComputed
from service.health.problem_facts import Facts, TableFacts

log = logging.getLogger(__name__)

_OfTable = Callable[[TableFacts, datetime], Iterable[StandingProblem] | StandingProblem | None]
_OfAll = Callable[[Facts, datetime], Iterable[StandingProblem] | StandingProblem | None]

OF_TABLES: Mapping[_OfTable, Collection[StandingKind]] = {
    polling.unreadable: {StandingKind.TABLE_UNREADABLE},
    polling.not_polled: {StandingKind.TABLE_NOT_POLLED},
    polling.not_writable: {StandingKind.TABLE_NOT_WRITABLE},
    polling.vanished: {StandingKind.COMMITS_VANISHED},
    polling.missed: {StandingKind.COMMITS_MISSED},
    timeline.incidents: {StandingKind.INCIDENT_STANDING},
    timeline.dead_writer: {StandingKind.DEAD_WRITER},
    timeline.stuck_plans: {StandingKind.PLAN_STUCK},
    clocks.disagree: {StandingKind.CLOCKS_DISAGREE},
    other_runners.other_runners: {StandingKind.OTHER_RUNNER},
    timeline.timeline_long: {StandingKind.TIMELINE_LONG},
    late_services.compaction_behind: {StandingKind.COMPACTION_BEHIND},
    backlog.growing: {StandingKind.COMPACTION_BACKLOG_GROWING},
    late_services.cleaning_behind: {StandingKind.CLEANING_BEHIND},
    late_services.cannot_act: {StandingKind.POLICY_CANNOT_ACT},
    late_services.held_up: {StandingKind.JOBS_HELD_UP},
    late_services.warned: {StandingKind.POLICY_WARNING},
    file_sizes.too_large: {StandingKind.BUCKET_TOO_LARGE},
    file_sizes.skewed: {StandingKind.BUCKETS_SKEWED},
    file_sizes.small_files: {StandingKind.SMALL_FILES},
    fleet.failing_jobs: {StandingKind.JOB_FAILING},
    held_back.held_back: {StandingKind.JOB_HELD_BACK},
    fleet.unsettled_jobs: {StandingKind.JOB_UNSETTLED},
    fleet.awaited_locks: {StandingKind.LOCK_AWAITED},
    locks.held_long: {StandingKind.LOCK_HELD_LONG},
}
"""Functions that find problems of one table, with the kinds that each finds."""

OF_THE_REST: Mapping[_OfAll, Collection[StandingKind]] = {
    fleet.groups_without_worker: {StandingKind.GROUP_WITHOUT_WORKER},
    fleet.lost_workers: {StandingKind.WORKER_LOST},
    fleet.webhooks: {
        StandingKind.WEBHOOK_FAILING,
        StandingKind.WEBHOOK_DISABLED,
        StandingKind.DELIVERIES_GIVEN_UP,
    },
    fleet.pause: {StandingKind.JOBS_PAUSED},
}


@dataclass(frozen=True)
class Found:
    """What a search has found."""

    problems: Sequence[StandingProblem]  # The most serious first, among equals the oldest.
    not_computed: NotComputed = field(default_factory=NotComputed)


@dataclass(frozen=True)
class Wanted:
    """A filter. Empty collections select everything."""

    table_id: str | None = None
    kinds: Collection[StandingKind] = ()
    severities: Collection[Severity] = ()
    since: datetime | None = None  # The problem began then or later.
    until: datetime | None = None  # The problem began before.

    def selects(self, problem: StandingProblem) -> bool:
        return (
            (self.table_id is None or problem.table_id == self.table_id)
            and (not self.kinds or problem.kind in self.kinds)
            and (not self.severities or problem.severity in self.severities)
            and (self.since is None or problem.since >= self.since)
            and (self.until is None or problem.since < self.until)
        )


@dataclass(frozen=True)
class Listed:
    """A page of problems, and the number of all that match the filter, by severity."""

    page: Page[StandingProblem]
    counts: Mapping[Severity, int]


def found_in(facts: Facts, now: datetime) -> Found:
    """Returns all problems. A computation that fails costs only its own problems, of one table or other object."""
    found: list[StandingProblem] = []
    of_tables: set[tuple[str, StandingKind]] = set()
    at_all: set[StandingKind] = set()
    logged: set[object] = set()

    def failed(find: object, about: str) -> None:
        # Each computation is logged once: it may fail for thousands of tables.
        if find not in logged:
            log.exception("Problems of %s cannot be computed", about)
            logged.add(find)

    for table in facts.tables:
        for find, kinds in OF_TABLES.items():
            try:
                found += _each(find(table, now))
            except Exception:
                failed(find, table.id)
                of_tables.update((table.id, kind) for kind in kinds)
    for search, kinds in OF_THE_REST.items():
        try:
            found += _each(search(facts, now))
        except Exception:
            failed(search, "the installation")
            at_all.update(kinds)
    return Found(sorted(found, key=_place), NotComputed(kinds_of_tables=of_tables, kinds=at_all))


def page(found: Iterable[StandingProblem], wanted: Wanted, *, limit: int, cursor: str | None = None) -> Listed:
    """Returns a page of `found`, which are in the order of `found_in`. A problem that begins or ends between two pages
    neither repeats nor hides others. Raises ParamsInvalidError."""
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


def _each(found: Iterable[StandingProblem] | StandingProblem | None) -> list[StandingProblem]:
    if found is None:
        return []
    return [found] if isinstance(found, StandingProblem) else list(found)
