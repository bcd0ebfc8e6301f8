"""Compares the problems that a round has found with those that are stored. No function has side effects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from service.health.problem import RANKS, HealthProblem, ProblemKind
from service.health.problem_store import StoredProblem

RESOLVED_AFTER = 2
"""A problem counts as resolved when this many rounds in a row have not found it. A problem that comes and goes then
does not cause two events each time."""

MOST_EVENTS = 100
"""At most this many events of each type are published by one round, the most serious problems first. The others follow
in later rounds, if the problems still exist then."""

MOST_NEW = 5000
"""At most this many problems are added by one round, the most serious first. The next rounds add the others."""

MOST_REWRITTEN = 1000

REWRITTEN_AFTER = timedelta(minutes=5)
"""After this time the text and the figures of an open problem are written again, if they have changed."""

_SEEN_AFTER = timedelta(minutes=30)
"""After this time they are written even if unchanged, so that replicas of other versions see that the problem still
exists."""

_OF_ANOTHER_VERSION = timedelta(hours=1)
"""A problem of a kind that this version does not know is deleted when no replica has written it for this time."""


@dataclass(frozen=True)
class NotComputed:
    """The tables and kinds of problems that a round could not examine."""

    tables: Collection[str] = frozenset()  # The problems of these tables are unknown.
    kinds_of_tables: Collection[tuple[str, ProblemKind]] = frozenset()  # Table id and kind.
    kinds: Collection[ProblemKind] = frozenset()  # The problems of these kinds are unknown on all tables.

    def covers(self, kind: ProblemKind, table_id: str | None) -> bool:
        if kind in self.kinds:
            return True
        return table_id is not None and (table_id in self.tables or (table_id, kind) in self.kinds_of_tables)


@dataclass(frozen=True)
class Changes:
    """The changes that a round writes."""

    added: Sequence[HealthProblem] = ()
    rewritten: Sequence[HealthProblem] = ()
    missed: Mapping[int, list[str]] = field(default_factory=dict)
    back: Sequence[str] = ()
    ended: Sequence[str] = ()
    dropped: Sequence[str] = ()  # Deleted without an event, because they were never announced.
    opened: Sequence[HealthProblem] = ()  # Announced.
    risen: Sequence[str] = ()
    resolved: Sequence[str] = ()  # Announced, then deleted.


def changes(
    known: Mapping[str, StoredProblem],
    found: Iterable[HealthProblem],
    not_computed: NotComputed,
    now: datetime,
    written: Mapping[str, HealthProblem],
) -> Changes:
    """Returns the changes that the round has to write. `found` has the most serious problems first. `written` has the
    problems as this process has last written them, by id."""
    by_id = {problem.id: problem for problem in found}
    added = [problem for each, problem in by_id.items() if each not in known][:MOST_NEW]
    back, risen, old, quiet = [], [], [], []
    for each, stored in known.items():
        problem = by_id.get(each)
        if problem is None:
            continue
        if stored.missed or stored.resolved_at:
            back.append(each)
        is_risen = RANKS[problem.severity] < RANKS[stored.severity]
        if is_risen:
            risen.append(each)
        age = now - stored.seen_at
        is_old = age >= REWRITTEN_AFTER and (age >= _SEEN_AFTER or written.get(each) != problem)
        if problem.severity is not stored.severity or is_old:
            old.append(stored)
        if is_risen or not stored.is_announced:
            quiet.append(problem)
    old.sort(key=lambda stored: (by_id[stored.id].severity is stored.severity, stored.seen_at))
    missed: dict[int, list[str]] = {}
    ended, dropped, over = (
        [],
        [],
        [stored for stored in known.values() if stored.resolved_at and stored.id not in by_id],
    )
    for stored in known.values():
        if stored.id in by_id or stored.resolved_at or not _is_absent(stored, not_computed, now):
            continue
        rounds = stored.missed + 1
        if rounds < RESOLVED_AFTER:
            missed.setdefault(rounds, []).append(stored.id)
        elif stored.is_announced:
            ended.append(stored.id)
            over.append(stored)
        else:
            dropped.append(stored.id)
    over.sort(key=lambda stored: (RANKS[stored.severity], stored.resolved_at or now, stored.id))
    silent = sorted([*added, *quiet], key=lambda each: (RANKS[each.severity], each.since, each.id))
    return Changes(
        added=added,
        rewritten=[
            # `since` may be the time of a snapshot, which changes with each poll. The problem keeps its earliest
            # `since`.
            replace(by_id[stored.id], since=min(stored.since, by_id[stored.id].since))
            for stored in old[:MOST_REWRITTEN]
        ],
        missed=missed,
        back=back,
        ended=ended,
        dropped=dropped,
        opened=silent[:MOST_EVENTS],
        risen=risen,
        resolved=[stored.id for stored in over[:MOST_EVENTS]],
    )


def _is_absent(stored: StoredProblem, not_computed: NotComputed, now: datetime) -> bool:
    try:
        kind = ProblemKind(stored.kind)
    except ValueError:
        # While the problem exists, a replica that knows the problem's kind writes the problem again and again.
        return now - stored.seen_at > _OF_ANOTHER_VERSION
    return not not_computed.covers(kind, stored.table_id)
