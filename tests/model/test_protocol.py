"""The protocol holds in every scenario, and each of its rules is needed: a protocol without it has a counterexample."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.model import scenarios
from tests.model.catalogue import HOLDS, HOLDS_IN_LARGER_BOUNDS, HOLES, MUTANTS
from tests.model.rules import GOOD, Protocol, Scenario
from tests.model.table import search

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
@pytest.mark.parametrize("name", HOLDS_IN_LARGER_BOUNDS)
def test_the_protocol_holds_in_larger_bounds(name: str) -> None:
    found = HOLDS_IN_LARGER_BOUNDS[name]()
    print(found)
    assert found.violation is None, str(found)


def test_the_scenarios_reach_the_steps_that_they_are_made_for() -> None:
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
        "finds that the plan is in conflict with its batch",
        "which names those of",
    ):
        assert part in taken, part


# A quarter of the time goes to five searches, whose results depend on nothing but this folder.
LONG = (
    "the cleaner takes what is in flight",
    "a compaction launders a stale commit",
    "lock lost",
    "late files kept",
    "the cleaner takes what nobody has judged",
)


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.exhaustive] * (each in LONG)) for each in (*MUTANTS, *HOLES)]
)
def test_a_protocol_without_one_rule_is_refuted(name: str) -> None:
    mutant = {**MUTANTS, **HOLES}[name]
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
        pytest.param(
            replace(GOOD, verifies_lock=False), scenarios.LOST_LOCK_NEW_PARTITION, marks=pytest.mark.exhaustive
        ),
        (replace(GOOD, guard=False), scenarios.NEW_PARTITION_WAIT),
        (replace(GOOD, guard=False), scenarios.KEYED),
        (replace(GOOD, as_clustering=True), replace(scenarios.ROLLING, is_orderly=False)),
    ],
)
def test_some_rules_only_spare_incidents_and_attempts(protocol: Protocol, scenario: Scenario) -> None:
    """Without these rules rows survive too, because unknown commits are judged and repaired. The guard and the last
    check of the lock make such incidents rare, which matters because rows are wrong until the repair. If no write is in
    flight at the commit, a writer that rolls back pending clusterings undoes only attempts."""
    assert search(protocol, scenario).violation is None
