"""The protocol holds in every scenario, and each of its rules is needed: without it there is a counterexample."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.model import keyed_mutants, mutants, scenarios
from tests.model.rules import GOOD, Protocol, Scenario
from tests.model.table import search

if TYPE_CHECKING:
    from tests.model.search import Mutant

MUTANTS: dict[str, Mutant] = {}
for module in (mutants, keyed_mutants):
    MUTANTS |= {**module.MUTANTS, **module.HOLES}
TAKEN: dict[str, frozenset[str]] = {}


@pytest.mark.parametrize("scenario", scenarios.ALL, ids=lambda scenario: scenario.name)
def test_the_protocol_holds(scenario: Scenario) -> None:
    found = search(GOOD, scenario)
    print(found)
    assert found.violation is None, str(found)
    assert any("expander commits" in sentence for sentence in found.taken), "a scenario in which nothing happens"
    TAKEN[scenario.name] = found.taken


def test_the_scenarios_reach_what_they_are_about() -> None:
    """A search that never gets to a fence proves nothing about fences."""
    if len(TAKEN) < len(scenarios.ALL):
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
