"""Reads the budgets for a simulation, and what was spent of them before the simulation begins."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import Connection

from service.policies.precedence import Subject, effective_of_each
from service.queue import attempt_figures
from service.scheduling import budgets
from service.scheduling.budgets import MEMBERS, Key, SharedBudget
from service.simulation.edit import Side
from service.simulation.simulated_limits import BudgetsPast, day_of, days_before

_DAY = timedelta(days=1)


def read(
    connection: Connection,
    side: Side,
    subjects: Mapping[str, Subject],
    begin: datetime,
    worker_hours_by_group: Mapping[str, float],
) -> BudgetsPast:
    """Returns the budgets of the simulated tables, which are those that the edit is about. If a budget is shared with
    tables that are not simulated, it is left out."""
    simulated = side.effective.keys()
    keys = {table_id: list(budgets.keys(each, table_id)) for table_id, each in side.effective.items()}
    wanted = {key for each in keys.values() for key in each}
    every = [*budgets.of_levels(side.patterns, side.own, subjects)]
    if worker_hours_by_group:
        policies = effective_of_each(side.patterns, side.own, subjects)
        groups = {table_id: each.policy.worker_group for table_id, each in policies.items()}
        every += budgets.of_groups(worker_hours_by_group, groups)
    known = [each for each in every if wanted & {*each.keys}]
    shared = [each for each in known if simulated >= {*each.tables}]
    left_out = [
        f"the budget of {each.whose} is not simulated: {len({*each.tables} - simulated)} of them are not part of "
        "this simulation"
        for each in known
        if each not in shared
    ]
    return BudgetsPast(shared, keys, _spent(connection, shared, begin), left_out)


def _spent(connection: Connection, shared: list[SharedBudget], begin: datetime) -> dict[tuple[Key, datetime], float]:
    today = day_of(begin)
    found: dict[tuple[Key, datetime], float] = {}
    for day in (
        (today, *days_before(today, max((each.carry_over_days for each in shared), default=0))) if shared else ()
    ):
        sums = attempt_figures.sums(connection, day, min(day + _DAY, begin), by_kind=False)
        amounts = {each.table_id: dict(zip(attempt_figures.NAMES, each.amounts, strict=True)) for each in sums}
        for budget in shared:
            for key in budget.keys:
                figures = (amounts[each][MEMBERS[key[1]]] for each in budget.tables if each in amounts)
                found[key, day] = sum(figures) / 3600
    return found
