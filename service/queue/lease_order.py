"""The order of leases, as `lease_store` has it in SQL: here for those who look ahead.

Whoever changes one changes the other; `test_forecast` compares both.
"""

from __future__ import annotations

from dataclasses import dataclass

NEVER = float("-inf")
"""The use of slots of a table that never had one (`service.queue.slot_use`)."""


@dataclass(slots=True)
class Candidate:
    """A queued job. All times are seconds from one moment, which is 0: `due` is when it may be leased at the earliest.

    Workers hold only one `mutating` job of a table at a time. `is_last` is whether the job goes after others of its
    priority, because a policy has started it.
    """

    id: str
    table_id: str
    priority: int
    created: float
    due: float
    mutating: bool
    seconds: float
    is_last: bool = False


def turn(job: Candidate, used: float) -> tuple[float, ...]:
    """Returns what orders the jobs that are due: the least goes first, among equal ones the least id. `used` is
    how its table has used slots (`service.queue.slot_use`)."""
    return (-job.priority, job.is_last, used, job.created)
