"""The problem that attempts of a kind of job fail on a table, so that further attempts are delayed
(`service.queue.breaker`)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from jobs.contract import TABLE_LOCKED
from service.health.next_step import show_table
from service.health.problem import Definition, HealthProblem, ProblemKind, Severity
from service.health.problem_facts import TableFacts
from service.queue.breaker import BreakerState

HELD_BACK = Definition(
    ProblemKind.JOB_HELD_BACK,
    Severity.WARNING,
    "Attempts fail, and further ones are held back",
    "The table service is not done. Failing work gets at most a tenth of the slots while other tables wait.",
    "Do what the error says.",
)

AFTER = timedelta(seconds=15)
"""A single failure is a problem if the pause after it is at least this long. Most breakers with a shorter pause close
by themselves."""


def held_back(table: TableFacts, now: datetime) -> Iterator[HealthProblem]:
    """Yields one problem for each kind of job that has failed twice in a row, or whose next attempt is delayed after a
    failure. Locks that others hold and refusals of the storage are other kinds of problems."""
    is_locked = table.lock is not None and table.lock.is_in_the_way(now)
    for breaker in table.breakers:
        waits = breaker.state(now) is BreakerState.OPEN and breaker.next_try_at - breaker.failed_at >= AFTER
        error = breaker.error
        is_awaited = is_locked or (error is not None and error.type == TABLE_LOCKED)
        if is_awaited or table.is_refused(error) or not (breaker.failures > 1 or waits):
            continue
        reason = f"{error.title}. {error.detail}".strip() if error else "Nobody knows why."
        yield HELD_BACK.of(
            table.about,
            breaker.since,
            f"{breaker.sentence(now)}: {reason}",
            {
                "job_kind": breaker.kind.value,
                "failures": breaker.failures,
                "slot_seconds": round(breaker.seconds, 1),
                "next_try_at": breaker.next_try_at.isoformat(),
                "error": error.type if error else None,
            },
            step=show_table(table.id),
            part=breaker.kind.value,
            remedy=(error.hint if error else "") or None,
        )
