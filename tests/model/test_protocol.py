"""The protocol holds in every scenario, and each of its rules is needed: without it there is a counterexample."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.model import (
    clock_mutants,
    clock_rules,
    clocks,
    keyed_mutants,
    mutants,
    plan_mutants,
    plan_rules,
    plan_runners,
    scenarios,
)
from tests.model.rules import GOOD, Protocol, Scenario
from tests.model.table import search

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.model.search import Found, Mutant

HOLDS: dict[str, Callable[[], Found]] = {item.name: partial(search, GOOD, item) for item in scenarios.ALL}
HOLDS |= {item.name: partial(plan_runners.search, plan_rules.GOOD, item) for item in plan_mutants.ALL}
HOLDS |= {item.name: partial(clocks.search, clock_rules.GOOD, item) for item in clock_mutants.ALL}
LARGE: dict[str, Callable[[], Found]] = {item.name: partial(search, GOOD, item) for item in scenarios.LARGE}
LARGE |= {item.name: partial(plan_runners.search, plan_rules.GOOD, item) for item in plan_mutants.LARGE}
LARGE |= {item.name: partial(clocks.search, clock_rules.GOOD, item) for item in clock_mutants.LARGE}
MUTANTS: dict[str, Mutant] = {}
for module in (mutants, keyed_mutants, plan_mutants, clock_mutants):
    MUTANTS |= {**module.MUTANTS, **module.HOLES}
TAKEN: dict[str, frozenset[str]] = {}


@pytest.mark.parametrize("name", HOLDS)
def test_the_protocol_holds(name: str) -> None:
    found = HOLDS[name]()
    print(found)
    assert found.violation is None, str(found)
    done = ("expander commits", "completes the plan", "job commits", "job is refused")
    assert any(part in sentence for part in done for sentence in found.taken), "a scenario in which nothing happens"
    TAKEN[name] = found.taken


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", LARGE)
def test_the_protocol_holds_in_larger_bounds(name: str) -> None:
    found = LARGE[name]()
    print(found)
    assert found.violation is None, str(found)


def test_the_scenarios_reach_what_they_are_about() -> None:
    """A search that never gets to a fence proves nothing about fences."""
    if len(TAKEN) < len(HOLDS):
        pytest.skip("the searches have not all been run, or not in this process")
    taken = "\n".join(sentence for found in TAKEN.values() for sentence in found)
    for part in (
        "catches up",
        "and waits, because",
        "expander fences",
        "watch fences",
        "late files",
        "removes the late files",
        "an incident",
        "repairs the incident",
        "with the same prepped records",
        "WITHOUT the lock",
        "does not commit",
        "worker dies",
        "did complete",
        "requested again",
        "clean rolls instant",
        "The frozen expander goes on and commits",
        "cleaner deletes",
        "Archival passes",
        "compaction of instant {} completes",
        "stops Flink with a savepoint",
        "submits Flink anew",
        "with the old number",
        "from an old savepoint",
        "restarts from its checkpoint",
        "and loads the locations from the table",
        "begins the clustering plan",
        "which it has seen pending",
        "Our job is refused, since {} has begun the plan meanwhile",
        "Our job rolls back what {} has begun",
        "and begins the plan anew",
        "The frozen attempt {} goes on",
        "that the plan is not its own any more",
        "since a writer executes plans as well",
        "the writers' clocks differ",
        "the plan's time is not in the writers' frame",
        "what has completed lies after now",
        "are not as they were measured",
        "compacts the metadata table",
    ):
        assert part in taken, part


@pytest.mark.parametrize("name", MUTANTS)
def test_a_protocol_without_one_rule_is_refuted(name: str) -> None:
    mutant = MUTANTS[name]
    found = mutant.search()
    print(f"{name}: {found}")
    assert found.violation is not None, "no counterexample"
    assert mutant.ends_with in found.violation
    place = 0
    for decisive in mutant.decisive:
        places = [number for number, sentence in enumerate(found.story) if decisive in sentence and number >= place]
        assert places, f"not in the story, or not in this order: {decisive}"
        place = places[0]


@pytest.mark.parametrize(
    ("protocol", "scenario"),
    [
        (replace(GOOD, verifies_lock=False), scenarios.LOST_LOCK_NEW_PARTITION),
        (replace(GOOD, guard=False), scenarios.NEW_PARTITION_WAIT),
    ],
)
def test_two_rules_only_spare_incidents(protocol: Protocol, scenario: Scenario) -> None:
    """Rows are kept by judging what was not known before the commit; the guard and the last look at the lock make that
    rare. They are no reason to do without: until a repair the rows of an incident are read wrong."""
    assert search(protocol, scenario).violation is None
