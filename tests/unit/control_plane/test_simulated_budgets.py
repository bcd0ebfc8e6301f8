"""Tests budgets that tables share in a simulation."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from jobs.contract import JobKind
from service.policies.policy import Policy
from service.policies.settings import AuditSettings, CleaningSettings, CompactionSettings
from service.scheduling.budgets import SharedBudget
from service.simulation.fleet import Fleet
from service.simulation.simulated_limits import BudgetsPast
from service.simulation.simulator import simulated
from service.simulation.table_past import Write
from tests.unit.control_plane.past_fleet import BEGIN, DAY, MIB, a_past, cost

if TYPE_CHECKING:
    from service.simulation.table_past import TablePast

LEVEL = "pattern tag:team=shop"
KEY = LEVEL, "worker_hours_per_day"
ONE_A_DAY = {"worker_hours_per_day": 0.0002}  # A job takes a second at least.


def a_table(number: int, days: int) -> TablePast:
    """Returns a table with a commit every ten minutes, whose compactions are due after five commits, not at the same
    time as those of other tables."""
    policy = Policy(
        compaction=CompactionSettings(commits=5),
        cleaning=CleaningSettings(enabled=False),
        audit=AuditSettings(enabled=False),
    )
    writes = [Write(BEGIN + 600.0 * each + 120 * number, MIB, 4) for each in range(1, 144 * days)]
    return a_past(number, policy=policy, writes=writes)


def compactions(budgets: BudgetsPast, days: int = 1) -> list[int]:
    """Returns how often each of two tables was compacted."""
    pasts = [a_table(number, days) for number in (1, 2)]
    found = simulated(pasts, Fleet({"default": 1}, budgets=budgets), cost, BEGIN, BEGIN + days * DAY)
    assert {each.kind for each in found.kinds} <= {JobKind.COMPACTION}
    return [found.tables[each.id].jobs for each in pasts]


def budgets_of(settings: dict[str, float], *members: str, spent_yesterday: float = 0.0) -> BudgetsPast:
    shared = SharedBudget(LEVEL, settings, {"tbl_1", "tbl_2"})
    yesterday = datetime.fromtimestamp(BEGIN, UTC) - timedelta(days=1)
    return BudgetsPast([shared], {each: [KEY] for each in members}, {(KEY, yesterday): spent_yesterday})


def test_tables_share_a_budget_until_the_end_of_the_day() -> None:
    free = compactions(BudgetsPast(), days=3)
    assert min(free) > 40
    budgets = budgets_of(ONE_A_DAY | {"carry_over_days": 0}, "tbl_1", "tbl_2")
    assert sum(compactions(budgets)) == 1
    # At midnight both tables are due, and both jobs are queued before one has ended.
    assert sum(compactions(budgets, days=3)) == 1 + 2 * 2


def test_a_table_with_another_budget_counts_but_does_not_wait() -> None:
    waits, other = compactions(budgets_of(ONE_A_DAY | {"carry_over_days": 0}, "tbl_1"))
    assert other == compactions(BudgetsPast())[1]
    assert waits <= 1


def test_budgets_that_were_not_spent_the_day_before_may_be_spent_today() -> None:
    members = "tbl_1", "tbl_2"
    hours = {"worker_hours_per_day": 0.002}
    carried = sum(compactions(budgets_of(hours, *members)))
    nothing_left = sum(compactions(budgets_of(hours, *members, spent_yesterday=1.0)))
    assert 0 < nothing_left < carried < sum(compactions(BudgetsPast()))
    assert sum(compactions(budgets_of(hours | {"carry_over_days": 0}, *members))) == nothing_left


def test_memory_counts_for_a_budget_of_gb_hours() -> None:
    def gb_hours(amount: float) -> BudgetsPast:
        settings = {"gb_hours_per_day": amount, "carry_over_days": 0}
        shared = SharedBudget(LEVEL, settings, {"tbl_1", "tbl_2"})
        return BudgetsPast([shared], {each: [(LEVEL, "gb_hours_per_day")] for each in shared.tables})

    # A job has two GiB.
    hours = budgets_of({"worker_hours_per_day": 0.01, "carry_over_days": 0}, "tbl_1", "tbl_2")
    assert compactions(gb_hours(0.02)) == compactions(hours)
    assert sum(compactions(gb_hours(0.01))) < sum(compactions(hours))


def test_a_spent_budget_ends_at_midnight_even_if_nobody_commits() -> None:
    budgets = budgets_of(ONE_A_DAY | {"carry_over_days": 0}, "tbl_1", "tbl_2")
    pasts = [a_table(number, 1) for number in (1, 2)]
    pasts = [replace(each, writes=[write for write in each.writes if write.at < BEGIN + DAY / 2]) for each in pasts]
    found = simulated(pasts, Fleet({"default": 1}, budgets=budgets), cost, BEGIN, BEGIN + 2 * DAY)
    assert sum(each.jobs for each in found.kinds) == 1 + 2
