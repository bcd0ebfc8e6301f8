"""Periodic rounds that update the stored problems, and announce which have opened and which are resolved."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine

from service.db.engine import may_find, reading, writing
from service.delivery import outbox
from service.events.event import EventType
from service.events.notifier import Notifier
from service.health import acknowledgement_store, problem_store
from service.health.cached_problems import ProblemCache
from service.health.problem import HealthProblem
from service.health.problem_changes import Changes, changes
from service.health.problem_events import problem_event
from service.health.problem_store import OpenProblem, StoredProblem
from service.health.problems import Found
from service.model.clock import Clock

log = logging.getLogger(__name__)

_Part = TypeVar("_Part")

# One transaction writes at most this many rows, so that other writers wait for some milliseconds only.
_AT_ONCE = 100
_EVENTS_AT_ONCE = 20


@dataclass(frozen=True)
class Round:
    """Numbers of problems that were found, announced as opened, and announced as resolved. All are zero if another
    replica has just run a round."""

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
    found, paths = cache.search(engine, clock)
    with writing(engine, quietly=True) as connection:
        if not problem_store.claim(connection, began, least):
            return Round()
    # Reading and comparing the problems of very many tables takes seconds. Others may write meanwhile.
    with reading(engine) as connection:
        known = problem_store.known(connection)
    change = changes(known, found.problems, found.not_computed, began, cache.written)
    for write in _writes(change, known, began, found=found, paths=paths):
        with writing(engine) as connection:
            if not problem_store.is_latest(connection, began):
                log.info("Another replica has begun a round meanwhile, and writes the rest.")
                return Round(len(found.problems))
            write(connection)
    if may_find(engine, acknowledgement_store.ANY):
        with writing(engine, quietly=True) as connection:
            if problem_store.is_latest(connection, began):
                acknowledgement_store.forget_ended(connection, began)
    cache.note_written(found.problems, {*(each.id for each in change.added), *(each.id for each in change.rewritten)})
    if change.opened or change.resolved:
        notifier.notify()
    return Round(len(found.problems), len(change.opened), len(change.resolved))


def _writes(
    change: Changes,
    known: dict[str, StoredProblem],
    now: datetime,
    *,
    found: Found,
    paths: Mapping[str, str],
) -> Iterator[Callable[[Connection], object]]:
    """Yields the writes of a round, each for a separate short transaction. If the round is interrupted between two of
    them, all problems that it has announced are stored, and the next round does the rest."""

    def stored(problem: HealthProblem) -> OpenProblem:
        before = known.get(problem.id)
        return OpenProblem(problem, before.opened_at if before else now, paths.get(problem.table_id or ""))

    counts = Counter(problem.severity for problem in found.problems)

    def announce_opened(connection: Connection, problems: Sequence[HealthProblem]) -> None:
        problem_store.change(connection, [each.id for each in problems], is_announced=True)
        outbox.publish(
            connection,
            [problem_event(EventType.PROBLEM_OPENED, stored(each), counts, now) for each in problems],
            now=now,
        )

    def announce_resolved(connection: Connection, ids: Sequence[str]) -> None:
        resolved = problem_store.of_ids(connection, ids)
        problem_store.delete(connection, ids)
        outbox.publish(
            connection,
            [problem_event(EventType.PROBLEM_RESOLVED, each, counts, now) for each in resolved.values()],
            now=now,
        )

    # Severities that have risen are written first, because the next round compares with the stored severities.
    for risen in _portions(change.risen):
        yield partial(acknowledgement_store.remove, problem_ids=risen)
    yield from _changed(change.risen, is_announced=False)
    for new in _portions(change.added):
        yield partial(problem_store.add, found=list(map(stored, new)))
    for old in _portions(change.rewritten):
        yield partial(problem_store.rewrite, found=list(map(stored, old)), now=now)
    for rounds, ids in change.missed.items():
        yield from _changed(ids, missed=rounds)
    yield from _changed(change.back, missed=0, resolved_at=None)
    yield from _changed(change.ended, resolved_at=now)
    for gone in _portions(change.dropped):
        yield partial(problem_store.delete, ids=gone)
    for over in _portions(change.resolved, _EVENTS_AT_ONCE):
        yield partial(announce_resolved, ids=over)
    for opened in _portions(change.opened, _EVENTS_AT_ONCE):
        yield partial(announce_opened, problems=opened)


def _changed(ids: Sequence[str], **values: Any) -> Iterator[Callable[[Connection], object]]:
    return (partial(problem_store.change, ids=portion, **values) for portion in _portions(ids))


def _portions(whole: Sequence[_Part], size: int = _AT_ONCE) -> Iterator[Sequence[_Part]]:
    return (whole[at : at + size] for at in range(0, len(whole), size))
