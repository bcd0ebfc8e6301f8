"""Scenarios of runners of plans, and mutants: protocols without one rule, each with the scenario in which it fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.model.plan_rules import GOOD, Check, PlanFaults, PlanProtocol, PlanScenario, Proof
from tests.model.plan_runners import search
from tests.model.plan_state import of_completions, of_files, violation
from tests.model.search import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.model.plan_state import Plan

COMPACTION = PlanScenario("a compaction plan, two runners", has_heartbeat=True, runners=2, faults=PlanFaults(deaths=1))
CLUSTERING = PlanScenario("a clustering plan, two runners", has_heartbeat=False, runners=2, faults=PlanFaults(deaths=1))
COMPACTION_FAULTS = PlanScenario(
    "a compaction plan, two runners, a worker that dies and one that freezes",
    has_heartbeat=True,
    runners=2,
    attempts=3,
    faults=PlanFaults(crashes=1, freezes=1, deaths=1),
)
CLUSTERING_FAULTS = replace(
    COMPACTION_FAULTS,
    name="a clustering plan, two runners, a worker that dies and one that freezes",
    has_heartbeat=False,
)
HIJACKED = PlanScenario("a writer that takes every inflight clustering", has_heartbeat=False, hijacks=True)
ALL = (COMPACTION, CLUSTERING, COMPACTION_FAULTS, CLUSTERING_FAULTS, HIJACKED)
# Scenarios that `--exhaustive` adds.
LARGE = tuple(
    replace(item, name=f"{item.name}, thrice", runners=3, attempts=4, faults=PlanFaults(crashes=3, freezes=1, deaths=2))
    for item in (COMPACTION_FAULTS, CLUSTERING_FAULTS)
)


def _without(
    protocol: PlanProtocol,
    scenario: PlanScenario,
    decisive: tuple[str, ...],
    ends_with: str,
    invariant: Callable[[Plan], str | None] = violation,
) -> Mutant:
    return Mutant(lambda: search(protocol, scenario, invariant), decisive, ends_with)


MUTANTS: Mapping[str, Mutant] = {
    "every pending clustering plan is taken": _without(
        replace(GOOD, proof=Proof.NONE, check=Check.NONE),
        replace(CLUSTERING, runners=1),
        ("Runner 0 begins", "counts as dead", "Our job begins", "Runner 0 completes", "Our job completes"),
        "The plan was completed by runner 0 and by job 1",
        of_completions,
    ),
    "a runner that writes nothing for a moment is taken for dead": _without(
        replace(GOOD, proof=Proof.PAUSE),
        CLUSTERING,
        ("Runner 0 begins", "For a moment", "counts as dead"),
        "which is alive",
    ),
    "a plan is ours before we have begun it": _without(
        replace(GOOD, owns_after_begin=False, taken_is_sticky=False),
        COMPACTION,
        ("Runner 0 begins", "is refused", "in attempt 2", "the plan is its own"),
        "which is alive",
    ),
    "a plan is ours before we have begun it, and the worker dies": _without(
        replace(GOOD, owns_after_begin=False),
        COMPACTION_FAULTS,
        ("records it as its own", "worker dies", "in attempt 2", "the plan is its own"),
        "which is alive",
    ),
    "a stolen compaction is completed by its runner": _without(
        replace(GOOD, owns_after_begin=False, taken_is_sticky=False),
        replace(COMPACTION, runners=1),
        ("Runner 0 begins", "is refused", "in attempt 2", "the plan is its own", "Runner 0 completes"),
        "whose files were removed",
        of_files,
    ),
    "ours is the instant, whoever has begun it anew": _without(
        replace(GOOD, knows_its_begin=False),
        CLUSTERING_FAULTS,
        ("records the plan", "worker dies", "begins the plan anew", "the plan is its own"),
        "which is alive",
    ),
    "an attempt commits that is not the one that has begun": _without(
        replace(GOOD, check=Check.STATE),
        CLUSTERING_FAULTS,
        ("is frozen", "in attempt 2"),
        "The plan was completed by job 1",
    ),
    "nothing is looked at before the commit": _without(
        replace(GOOD, check=Check.NONE),
        CLUSTERING_FAULTS,
        ("is frozen", "completes the plan"),
        "The plan was completed by",
    ),
    "files of an attempt that does not commit stay": _without(
        replace(GOOD, removes_its_files=False),
        CLUSTERING_FAULTS,
        ("is frozen", "goes on and writes files", "does not complete it"),
        "and a listing finds the files of job 1 as well",
    ),
    "plans are executed beside a writer that executes them": _without(
        replace(GOOD, leaves_plans_to_writers=False),
        HIJACKED,
        ("Our job begins", "finds the plan inflight", "Our job completes", "which has completed meanwhile"),
        "cannot be read",
    ),
}

HOLES: Mapping[str, Mutant] = {
    "another runner begins a dead one's plan between the proof and the rollback": _without(
        replace(GOOD, takeover_is_atomic=False),
        CLUSTERING,
        ("dies", "sets about", "begins the plan anew", "Our job rolls back"),
        "which is alive",
    ),
    "a runner is stalled for longer than any proof waits": _without(
        GOOD,
        replace(COMPACTION, name="a compaction plan, a runner that is stalled", faults=PlanFaults(stalls=1)),
        ("looks dead", "counts as dead"),
        "which is alive",
    ),
}
