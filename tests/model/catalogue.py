"""All searches of the model by name: scenarios in which the protocol holds, larger scenarios, and mutants that are
refuted."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tests.model import (
    clock_mutants,
    clock_rules,
    clocks,
    keyed_mutants,
    log_mutants,
    log_rules,
    logs,
    mutants,
    plan_mutants,
    plan_rules,
    plan_runners,
    rules,
    scenarios,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.model.search import Found, Mutant

Searches = dict[str, "Callable[[], Found]"]


def _with_good_protocols(
    of_tables: tuple[rules.Scenario, ...],
    of_plans: tuple[plan_rules.PlanScenario, ...],
    of_clocks: tuple[clock_rules.ClockScenario, ...],
    of_logs: tuple[log_rules.LogScenario, ...],
) -> Searches:
    found: Searches = {item.name: partial(table.search, rules.GOOD, item) for item in of_tables}
    found |= {item.name: partial(plan_runners.search, plan_rules.GOOD, item) for item in of_plans}
    found |= {item.name: partial(clocks.search, clock_rules.GOOD, item) for item in of_clocks}
    return found | {item.name: partial(logs.search, log_rules.GOOD, item) for item in of_logs}


HOLDS = _with_good_protocols(scenarios.ALL, plan_mutants.ALL, clock_mutants.ALL, log_mutants.ALL)
HOLDS_IN_LARGER_BOUNDS = _with_good_protocols(
    scenarios.LARGE, plan_mutants.LARGE, clock_mutants.LARGE, log_mutants.LARGE
)
MUTANTS: Mapping[str, Mutant] = {
    **mutants.MUTANTS,
    **keyed_mutants.MUTANTS,
    **plan_mutants.MUTANTS,
    **clock_mutants.MUTANTS,
    **log_mutants.MUTANTS,
}
HOLES: Mapping[str, Mutant] = {**mutants.HOLES, **keyed_mutants.HOLES, **plan_mutants.HOLES, **log_mutants.HOLES}
