"""The fleet of a simulation: what its tables share, and what their jobs are expected to cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jobs.kinds.results import Work
from service.policies.freeze import Freeze
from service.queue.cost import Cost
from service.queue.lease_order import Candidate, turn
from service.scheduling.admission import Limits
from service.simulation.simulated_limits import BudgetsPast

Order = Callable[[Candidate, float, float], tuple[float, ...]]
"""Computes the sort key of a job that waits for a slot, from the slot use of its table and the time since the beginning
of the simulation."""


@dataclass(frozen=True)
class Fleet:
    """The slots, limits and costs that tables share. A worker group that is not among `slots` has one slot.
    `worker_hours_by_group` are the budgets of worker groups for a day; `levels` are as for `SimulatedShares`."""

    slots: Mapping[str, int] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    worker_hours_by_group: Mapping[str, float] = field(default_factory=dict)
    freezes: Sequence[Freeze] = ()
    poll_seconds: float = 60.0
    order: Order = turn
    budgets: BudgetsPast = field(default_factory=BudgetsPast)
    levels: Mapping[str, str] = field(default_factory=dict)


class Expected(Protocol):
    """Returns the expected cost of a job."""

    def __call__(self, table_id: str, kind: str, work: Work, *, dry_run: bool) -> Cost: ...
