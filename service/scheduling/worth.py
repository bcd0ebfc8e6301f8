"""The worth of a job: the processor time that readers have paid because the job has not run yet, divided by the time
that the job takes. Jobs that wait for a slot are ordered by their worth."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from service.queue import job_store
from service.queue.job import JobState

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from service.outcome.gain import Gain
    from service.queue.cost import Cost
    from service.queue.job import Job
    from service.scheduling.budgets import Budgets
    from service.scheduling.decision_inputs import DecisionInputs
    from service.scheduling.expected_costs import Costs

LONGEST_WAIT = timedelta(days=1)
"""After this time a job starts before others of its priority, whatever it saves."""


@dataclass(frozen=True)
class Weighed:
    """A job with its worth, and the gain from which the worth is computed."""

    job: Job
    gain: Gain | None = None
    overhead: float = 1.0


@dataclass(frozen=True)
class RoundFacts:
    """Facts that are read once for a round of decisions: the known expected costs of jobs by table and kind, and the
    spent budgets."""

    costs: Costs
    budgets: Budgets


def weighed(connection: Connection, job: Job, inputs: DecisionInputs, cost: Cost | None) -> Weighed:
    """Returns the job with its worth. `cost` is its expected cost, None if unknown."""
    now = inputs.situation.now
    gain = inputs.objective.gain(job.kind, inputs.snapshot)
    # The gain from sorting rows is unknown, so such a job has no worth.
    if gain is None or gain.seconds_per_read <= 0 or job.params.get("sort_by"):
        return Weighed(job)
    worth = inputs.objective.worth(job.kind, inputs.snapshot, now)
    reason = job.reason
    if cost is not None:
        reason = f"{reason}; {gain.text(cost.seconds)}{_place(connection, job, worth)}"
    overhead = inputs.objective.cost_of_reads(inputs.snapshot).of_logs
    return Weighed(job.evolve(worth=worth, starts_by=_starts_by(inputs, now), reason=reason), gain, overhead)


def renew(connection: Connection, inputs: DecisionInputs, facts: RoundFacts) -> None:
    """Computes the worth again of the table's jobs that wait for a slot, because logs grow, and reads may stop.
    `starts_by` stays, so that no job waits longer."""
    for job in inputs.situation.active:
        if job.worth is None or job.state is not JobState.QUEUED:
            continue
        found = weighed(connection, job, inputs, facts.costs.get((job.table_id, job.kind)))
        worth = (found.job.worth or 0.0) if found.gain else 0.0
        if worth != job.worth:
            job_store.renew_worth(connection, job.id, worth)


def _starts_by(inputs: DecisionInputs, now: datetime) -> datetime:
    longest, most = now + LONGEST_WAIT, inputs.objective.settings.log_age_seconds
    if most is None:
        return longest
    return min(longest, max(now, inputs.objective.oldest(inputs.snapshot, now) + timedelta(seconds=most)))


def _place(connection: Connection, job: Job, worth: float) -> str:
    """Returns a clause about the job's place among the waiting jobs; an empty one if no other job waits."""
    better, waiting = job_store.count_weighed(connection, job.worker_group, job.priority, worth)
    return f"; {_ordinal(better + 1)} of {waiting + 1} waiting jobs" if waiting else ""


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"
