"""The problem of a table's lock that is held for too long. Polls see only locks that are files."""

from __future__ import annotations

from datetime import datetime, timedelta

from service.health.fleet import awaited_locks, breaking_lock
from service.health.next_step import show_lock
from service.health.problem import Definition, HealthProblem, ProblemKind, Severity
from service.health.problem_facts import TableFacts
from service.model.formatting import duration

HELD_LONG = Definition(
    ProblemKind.LOCK_HELD_LONG,
    Severity.WARNING,
    "The table's lock has been held for long",
    "Writers and jobs can neither begin nor commit. A writer that died may have left the lock, which then is never "
    "released.",
    "Find out whether its holder is alive.",
)

HELD_AFTER = timedelta(minutes=15)
"""A lock that is held for longer is a problem. Writers usually hold it for seconds, or for some minutes when they build
a metadata table."""


def held_long(table: TableFacts, now: datetime) -> HealthProblem | None:
    """Returns the problem. Returns None while jobs wait for the lock, because another kind of problem shows these
    jobs."""
    lock = table.snapshot.lock if table.snapshot else None
    if lock is None or not table.is_readable or now - lock.since < HELD_AFTER or any(awaited_locks(table, now)):
        return None
    return HELD_LONG.of(
        table.about,
        lock.since,
        f"The lock has been held for {duration(now - lock.since)} by {lock.holder}.",
        {"holder": lock.holder, "held_seconds": int((now - lock.since).total_seconds())},
        step=show_lock(table.id),
        remedy=breaking_lock(table),
    )
