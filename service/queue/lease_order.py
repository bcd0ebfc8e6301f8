"""The order of leases for forecasts. `lease_store` has the same in SQL; `test_forecast` compares both."""

from __future__ import annotations

from dataclasses import dataclass

NEVER = float("-inf")
"""The use of slots of a table that never had one (`service.queue.slot_use`)."""


@dataclass(slots=True)
class Candidate:
    """A queued job. All times are seconds from one moment, which is 0."""

    id: str
    table_id: str
    priority: int
    created: float
    due: float  # When it may be leased at the earliest.
    mutating: bool  # Workers hold only one such job of a table at a time.
    seconds: float
    is_last: bool = False  # Whether it goes after others of its priority, because a policy has started it.


def turn(job: Candidate, used: float) -> tuple[float, ...]:
    """Returns the sort key of due jobs: the least goes first, among equal ones the least id. `used` is how the table
    has used slots (`service.queue.slot_use`)."""
    return (-job.priority, job.is_last, used, job.created)
