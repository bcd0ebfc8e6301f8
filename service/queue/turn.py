"""The order of leases, as `lease_store` has it in SQL: here for those who look ahead.

Whoever changes one changes the other; `test_forecast` compares both.
"""

from __future__ import annotations

from dataclasses import dataclass

NEVER = float("-inf")


@dataclass(slots=True)
class Candidate:
    """A queued job. All times are seconds from one moment, which is 0: `due` is when it may be leased at the earliest.

    Of the jobs of a table that are `mutating` workers hold one at a time.
    """

    id: str
    table_id: str
    priority: int
    created: float
    due: float
    mutating: bool
    seconds: float


def turn(job: Candidate, last_lease: float) -> tuple[float, ...]:
    """Returns what orders the jobs that are due: the least goes first, among equal ones the least id. `last_lease` is
    when a job of its table was leased last, NEVER before the first."""
    return (-job.priority, last_lease, job.created)
