"""Prints what the model has explored: `python -m tests.model` from the repository's root."""

from __future__ import annotations

from tests.model import scenarios
from tests.model.mutants import HOLES, MUTANTS
from tests.model.rules import GOOD
from tests.model.search import search


def main() -> None:
    """The scenarios with their counts of states, then the story of each mutant and each hole."""
    states = seconds = 0.0
    for scenario in scenarios.ALL:
        found = search(GOOD, scenario)
        states, seconds = states + found.states, seconds + found.seconds
        print(found, flush=True)
    print(f"All: {states:.0f} states in {seconds:.1f} s of CPU")
    for kind, mutants in (("Mutant", MUTANTS), ("Hole", HOLES)):
        for name, mutant in mutants.items():
            print(f"\n{kind}: {name}\n{search(mutant.protocol, mutant.scenario, mutant.invariant)}", flush=True)


if __name__ == "__main__":
    main()
