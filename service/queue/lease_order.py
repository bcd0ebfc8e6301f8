"""The order of leases for forecasts. `lease_store` has the same order in SQL; `test_forecast` compares both."""

from __future__ import annotations

from dataclasses import dataclass

NEVER = float("-inf")
"""The slot use of a table that has never had a slot (`service.queue.slot_use`)."""


@dataclass(slots=True)
class Candidate:
    """A queued job. All times are seconds from one moment, which is 0."""

    id: str
    table_id: str
    priority: int
    created: float
    due: float  # When it may be leased at the earliest.
    mutating: bool  # Whether it writes the table. Workers hold only one such job of a table at a time.
    seconds: float
    worth: float | None = None  # `service.scheduling.worth`; None if unknown.
    starts_by: float = float("inf")  # From this time on the job starts before others, whatever their worth.
    is_last: bool = False  # Whether it starts after other jobs of its priority, because a policy has submitted it.


def turn(job: Candidate, used: float, now: float) -> tuple[float, ...]:
    """Returns the sort key of a due job. The job with the smallest key starts first; if keys are equal, the job with
    the smallest id. `used` is the slot use of the table (`service.queue.slot_use`)."""
    overdue = job.starts_by if job.starts_by <= now else float("inf")
    return (-job.priority, job.is_last, job.worth is not None, overdue, -(job.worth or 0.0), used, job.created)
