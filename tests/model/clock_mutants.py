"""Scenarios of clocks, and mutants: each mutant is a protocol without one rule, with the scenario in which the
protocol fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.model.clock_rules import GOOD, HOURS, ClockProtocol, ClockScenario, Service
from tests.model.clocks import search
from tests.model.search import Mutant

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPACTION, CLUSTERING = Service.COMPACTION, Service.CLUSTERING
BEHIND = ClockScenario("compaction, writers hours behind us", COMPACTION, (-HOURS, -HOURS))
AHEAD = ClockScenario("compaction, writers hours ahead of us", COMPACTION, (HOURS, HOURS))
CLUSTERING_BEHIND = replace(BEHIND, name="clustering, writers hours behind us", service=CLUSTERING)
CLUSTERING_AHEAD = replace(AHEAD, name="clustering, writers hours ahead of us", service=CLUSTERING)
STEPPING = ClockScenario("compaction, a writer's clock steps", COMPACTION, (0,), batches=2, steps=(HOURS, -HOURS))
CLUSTERING_STEPPING = replace(STEPPING, name="clustering, a writer's clock steps", service=CLUSTERING)
TWO_STEPPING = replace(
    STEPPING,
    name="compaction, one of two writers' clocks steps",
    writers=(0, 0),
    batches=1,
    metadata_compactions=0,
)
DISAGREEING = ClockScenario("compaction, writers in two zones", COMPACTION, (0, -HOURS))
CLUSTERING_DISAGREEING = replace(DISAGREEING, name="clustering, writers in two zones", service=CLUSTERING)
GIVEN = ClockScenario("a runner's compaction plan", COMPACTION, (0, 0), runner=0)
GIVEN_AHEAD = replace(GIVEN, name="a compaction plan of a runner hours ahead", runner=HOURS)
GIVEN_BEHIND = replace(GIVEN, name="a compaction plan of a runner hours behind", runner=-HOURS)
ALL = tuple(value for value in dict(globals()).values() if isinstance(value, ClockScenario))
# Scenarios that `--exhaustive` adds.
LARGE = (
    replace(TWO_STEPPING, name=f"{TWO_STEPPING.name}, with a metadata table", metadata_compactions=1),
    replace(TWO_STEPPING, name="clustering, one of two writers' clocks steps", service=CLUSTERING, batches=2),
    replace(STEPPING, name="compaction, a writer's clock steps in four batches", batches=4),
    replace(GIVEN, name="a runner's compaction plan, a writer's clock steps", steps=(HOURS, -HOURS)),
)


def _without(protocol: ClockProtocol, scenario: ClockScenario, decisive: tuple[str, ...], ends_with: str) -> Mutant:
    return Mutant(lambda: search(protocol, scenario), decisive, ends_with)


ASCENDS = "although all clocks are as they were measured"
OWN_CLOCK = replace(GOOD, requested_in_frame=False, completed_in_frame=False)
MUTANTS: Mapping[str, Mutant] = {
    "our instants are of our own clock, and nobody watches": _without(
        replace(OWN_CLOCK, watches=False), BEHIND, ("completes instant", "job commits"), "read with the value 0"
    ),
    "our instants are of our own clock, in a clustering": _without(
        replace(OWN_CLOCK, watches=False), CLUSTERING_BEHIND, ("job commits", "completes instant"), "with the value 0"
    ),
    "our instants are of our own clock, with a watch that sees it": _without(
        OWN_CLOCK, CLUSTERING_BEHIND, ("job commits", "completes instant"), ASCENDS
    ),
    "our instants are of our own clock, behind that of the writers": _without(
        replace(OWN_CLOCK, after_all=False), AHEAD, ("compacts the metadata table", "job commits"), "is in no listing"
    ),
    "only the completion lies in the frame": _without(
        replace(GOOD, requested_in_frame=False), BEHIND, ("completes instant", "job commits"), "read with the value 0"
    ),
    "only the request lies in the frame": _without(
        replace(GOOD, completed_in_frame=False), BEHIND, ("job commits",), ASCENDS
    ),
    "our instants lie in the frame, and before what has completed": _without(
        replace(GOOD, after_all=False),
        STEPPING,
        ("steps by", "compacts the metadata table", "job commits"),
        "is in no listing",
    ),
    "our instants lie after what has completed, and out of the frame": _without(
        replace(GOOD, stays_in_frame=False),
        replace(STEPPING, metadata_compactions=0),
        ("steps by -50", "completes instant", "job plans", "completes instant", "job commits"),
        "read with the value 1; acknowledged was 3",
    ),
    "writers disagree, and nobody watches": _without(
        replace(GOOD, refuses_disagreement=False, watches=False),
        DISAGREEING,
        ("completes instant", "job commits", "completes instant"),
        "read with the value 1; acknowledged was 2",
    ),
    "clocks are not measured again under the lock": _without(
        replace(GOOD, verifies=False),
        replace(STEPPING, metadata_compactions=0),
        ("steps by -50", "job plans", "completes instant", "job commits"),
        "read with the value 0",
    ),
    "nobody watches for clocks that step": _without(
        replace(GOOD, watches=False),
        CLUSTERING_STEPPING,
        ("steps by -50", "job commits", "completes instant"),
        "read with the value",
    ),
    "a plan of another frame is executed": _without(
        replace(GOOD, refuses_foreign_plans=False),
        GIVEN_AHEAD,
        ("takes the plan", "completes instant", "job commits"),
        "read with the value 0",
    ),
}
