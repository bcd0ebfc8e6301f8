"""Mutants of clustering without a bucket index: protocols without one rule or with a wrong one, each with the scenario
in which it fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.model import scenarios
from tests.model.invariants import of_rows
from tests.model.mutants import without
from tests.model.rules import GOOD, Resubmit, Watch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.model.search import Mutant

MUTANTS: Mapping[str, Mutant] = {
    "clustering by keys beside a write in flight, and no watch": without(
        replace(GOOD, guard=False, watch=Watch.NONE),
        scenarios.KEYED_ALONE,
        ("tags its rows", "nothing is in its way", "acknowledged", "expander commits"),
        "read with the old value",
    ),
    "clustering by keys without a watch": without(
        replace(GOOD, watch=Watch.NONE),
        scenarios.KEYED,
        ("with them their file ids", "expander commits", "starts instant", "acknowledged"),
        "read with the old value",
    ),
    "what has landed since the plan is not looked at again": without(
        replace(GOOD, looks_again=False),
        scenarios.KEYED,
        ("splits the file groups without the lock", "acknowledged", "does not look at what has changed"),
        "read with the old value",
    ),
    "our clustering lies on the timeline as a plan": without(
        replace(GOOD, as_clustering=True),
        scenarios.ROLLING,
        ("starts instant 2", "which it has seen pending"),
        "A writer has taken back instant 1",
    ),
    "a completed clustering is rolled back": without(
        replace(GOOD, as_clustering=True, guard=False),
        scenarios.ROLLING,
        ("starts instant 2", "expander commits", "which it has seen pending"),
        "cannot be read",
        of_rows,
    ),
    "a writer's plan is committed beside a write in flight": without(
        replace(GOOD, guard=False),
        scenarios.GIVEN_PLAN,
        ("begins the clustering plan", "expander commits", "which it has seen pending"),
        "cannot be read",
    ),
    "clustering beside Flink's state, and no watch": without(
        replace(GOOD, hand_over=False, watch=Watch.NONE),
        scenarios.FLINK_STATE_BESIDE_BATCHES,
        ("expander commits", "Flink opens", "Flink commits"),
        "read with the old value",
    ),
    "clustering beside Flink's state, with a watch that catches it": without(
        replace(GOOD, hand_over=False),
        scenarios.FLINK_STATE,
        ("expander commits", "Flink opens", "an incident"),
        "is stale, although everybody did what the protocol asks for",
    ),
    "Flink's state comes back from its savepoint": without(
        replace(GOOD, resubmit=Resubmit.SAVEPOINT),
        scenarios.FLINK_STATE,
        ("stops Flink with a savepoint", "expander commits", "from its savepoint", "an incident"),
        "is stale, although everybody did what the protocol asks for",
    ),
}

HOLES: Mapping[str, Mutant] = {
    "Flink begins without state, and does not load the locations either": without(
        replace(GOOD, resubmit=Resubmit.EMPTY),
        scenarios.FLINK_STATE,
        ("stops Flink with a savepoint", "loads nothing", "Flink commits"),
        "is read 2 times",
    ),
    "a writer has seen a plan before its instant exists": without(
        GOOD,
        scenarios.GIVEN_PLAN_SEEN_EARLY,
        ("begins the clustering plan", "nothing is in its way", "starts instant", "which it has seen pending"),
        "cannot be read",
    ),
}
