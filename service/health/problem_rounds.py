"""Periodic rounds that update the open problems, and announce which have opened and which are resolved."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from service.db.engine import reading, writing
from service.delivery import outbox
from service.health import problem_store
from service.health.problem_changes import changes
from service.health.problem_events import problem_opened, problem_resolved
from service.health.problem_store import OpenProblem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from sqlalchemy import Connection, Engine

    from service.events.notifier import Notifier
    from service.health.cached_problems import ProblemCache
    from service.health.problem import HealthProblem
    from service.health.problem_changes import Changes
    from service.health.problem_store import Known
    from service.health.problems import Found
    from service.model.clock import Clock

log = logging.getLogger(__name__)

_Part = TypeVar("_Part")


@dataclass(frozen=True)
class Round:
    """Numbers of problems that were found, and announced as opened or resolved. All are zero if another replica has
    just run a round."""

    found: int = 0
    opened: int = 0
    resolved: int = 0

    def __str__(self) -> str:
        return f"{self.found} problems, {self.opened} announced as opened, {self.resolved} as resolved"


def run_once(engine: Engine, notifier: Notifier, clock: Clock, *, every: timedelta, cache: ProblemCache) -> Round:
    """Runs a round, on any replica. `cache` finds the problems and keeps the result. Raises
    DatabaseUnavailableError."""
    began = clock()
    least = every / 2
    with reading(engine) as connection:
        last = problem_store.last_round(connection)
    if last is not None and last > began - least:
        return Round()
    found, paths = cache.look(engine, clock)
    with writing(engine) as connection:
        if not problem_store.claim(connection, began, least):
            return Round()
        known = problem_store.known(connection)
        change = changes(known, found.problems, found.not_computed, began)
        _write(connection, change, known, began, found=found, paths=paths)
    if change.opened or change.resolved:
        notifier.notify()
    return Round(len(found.problems), len(change.opened), len(change.resolved))


def _write(
    connection: Connection,
    change: Changes,
    known: dict[str, Known],
    now: datetime,
    *,
    found: Found,
    paths: Mapping[str, str],
) -> None:
    def stored(problem: HealthProblem) -> OpenProblem:
        before = known.get(problem.id)
        return OpenProblem(problem, before.opened_at if before else now, paths.get(problem.table_id or ""))

    resolved = problem_store.of_ids(connection, change.resolved)
    problem_store.add(connection, map(stored, change.added))
    problem_store.rewrite(connection, map(stored, change.rewritten), now)
    for rounds, ids in change.missed.items():
        problem_store.change(connection, ids, missed=rounds)
    problem_store.change(connection, change.back, missed=0, resolved_at=None)
    problem_store.change(connection, change.ended, resolved_at=now)
    problem_store.change(connection, change.risen, is_announced=False, acknowledged_at=None)
    problem_store.change(connection, [each.id for each in change.opened], is_announced=True)
    problem_store.delete(connection, [*change.dropped, *change.resolved])
    counts = Counter(problem.severity for problem in found.problems)
    events = [problem_resolved(each, counts, now) for each in resolved.values()]
    events += [problem_opened(stored(each), counts, now) for each in change.opened]
    outbox.publish(connection, events, now=now)
