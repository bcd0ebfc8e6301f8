"""The order of leases, as `lease_store` has it in SQL: here for those who look ahead.

Whoever changes one changes the other; `test_forecast` compares both.
"""

from __future__ import annotations

from dataclasses import dataclass

NEVER = float("-inf")
"""The state of a table that never had a lease. A table's state is all that its turns depend on: here the time of its
last lease."""


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


def turn(job: Candidate, of_table: float) -> tuple[float, ...]:
    """Returns what orders the jobs that are due: the least goes first, among equal ones the least id. `of_table` is the
    state of its table."""
    return (-job.priority, of_table, job.created)


def leased(_of_table: float, at: float) -> float:
    """Returns the state of a table after the lease of a job at this time."""
    return at


def ended(of_table: float, _seconds: float, _at: float) -> float:
    """Returns the state of a table after the end of a job that had its slot for so long; never less than before."""
    return of_table
