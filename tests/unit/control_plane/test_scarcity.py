"""Tests the order of jobs in a simulated fleet whose slots are short: what readers pay for logs, compared with the
same order if it knew how often each table is read."""

from __future__ import annotations

import time
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from service.outcome.reads import Reads, ReadSource
from service.outcome.table_objective import TableObjective
from service.policies.policy import Policy
from service.policies.settings import AuditSettings, CleaningSettings
from service.queue.lease_order import turn
from service.simulation.fleet import Fleet
from service.simulation.simulator import simulated
from tests.unit.control_plane.past_fleet import BEGIN, DAY, a_fleet, cost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jobs.kinds.results import Work
    from service.queue.cost import Cost
    from service.queue.lease_order import Candidate
    from service.simulation.fleet import Order
    from service.simulation.outcome import Outcome
    from service.simulation.table_past import TablePast


# Other jobs keep their turn before those that make reads cheaper.
_COMPACTIONS = Policy(cleaning=CleaningSettings(enabled=False), audit=AuditSettings(enabled=False))


def first_come(job: Candidate, used: float, now: float) -> tuple[float, ...]:
    return (-job.priority, job.created)


def read(tables: Sequence[TablePast], seed: int) -> tuple[list[TablePast], list[TablePast]]:
    """Returns the fleet as the service knows it, and as it is: reads are independent of writes, and the service knows
    them up to a factor of about two."""
    rng = Random(seed)
    ranks = rng.sample(range(1, len(tables) + 1), len(tables))
    true, known = [], []
    for each, rank in zip(tables, ranks, strict=True):
        per_day = 5000 / rank
        true.append(replace(each, objective=TableObjective(reads=Reads(per_day, ReadSource.LINEAGE))))
        known.append(
            replace(each, objective=TableObjective(reads=Reads(per_day * 2 ** rng.gauss(0, 1), ReadSource.LINEAGE)))
        )
    return known, true


def paid(found: Outcome, true: Sequence[TablePast]) -> float:
    """Returns the processor seconds that all readers have paid in a day for logs."""
    return sum(found.tables[each.id].logs_seconds * each.objective.reads.per_day for each in true)


def a_scarce_fleet(
    tables: int, days: float, seed: int, slowness: float
) -> tuple[list[TablePast], list[TablePast], Callable[..., Outcome]]:
    """Returns the fleet as the service knows it, as it is, and a function that simulates it with some slots."""

    def slow_cost(table_id: str, kind: str, work: Work, *, dry_run: bool) -> Cost:
        found = cost(table_id, kind, work, dry_run=dry_run)
        return replace(found, seconds=slowness * found.seconds)

    def run(fleet: Sequence[TablePast], slots: int, order: Order = turn) -> Outcome:
        return simulated(fleet, Fleet({"default": slots}, order=order), slow_cost, BEGIN, BEGIN + days * DAY)

    return *read(a_fleet(tables, days, seed=seed, policy=_COMPACTIONS), seed), run


def check(tables: int, days: float, seed: int, share: float, slowness: float) -> Mapping[str, float]:
    known, true, run = a_scarce_fleet(tables, days, seed, slowness)
    needed = run(known, 10_000).seconds / (days * DAY)
    slots = max(1, round(share * needed))
    began = time.process_time()
    ours = run(known, slots)
    seconds = time.process_time() - began
    clairvoyant, blind = run(true, slots), run(known, slots, first_come)
    return {
        "needed": needed,
        "slots": slots,
        "regret": paid(ours, true) / paid(clairvoyant, true) - 1,
        "first come": paid(blind, true) / paid(clairvoyant, true) - 1,
        "longest wait": ours.longest_wait or 0.0,
        "seconds": seconds,
    }


def test_readers_pay_less_than_if_the_first_job_came_first() -> None:
    found = check(40, 0.5, seed=1, share=1.0, slowness=3.0)
    assert found["regret"] < 0.02 < found["first come"]


def test_the_worth_of_a_waiting_job_follows_its_table() -> None:
    # Otherwise jobs that had few logs at first would wait for a day, and the order of submission would be better.
    found = check(30, 1.0, seed=1, share=0.5, slowness=3.0)
    assert found["first come"] > 0
    assert found["longest wait"] < DAY
    # If the time for which readers have paid did not count, this would be 0.34.
    assert found["regret"] < 0.1


@pytest.mark.exhaustive
@pytest.mark.parametrize(("share", "most"), [(0.5, 0.5), (1.0, 0.05), (2.0, 0.01)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_regret_of_the_order_is_bounded(seed: int, share: float, most: float) -> None:
    found = check(40, 0.5, seed, share, slowness=3.0)
    assert found["regret"] < most
    assert found["longest wait"] < DAY
