"""Prints what the model has explored: `python -m tests.model` from the repository's root."""

from __future__ import annotations

from tests.model import keyed_mutants, mutants, scenarios
from tests.model.rules import GOOD
from tests.model.table import search


def main() -> None:
    """The scenarios with their counts of states, then the story of each mutant and each hole."""
    states = seconds = 0.0
    for scenario in scenarios.ALL:
        found = search(GOOD, scenario)
        states, seconds = states + found.states, seconds + found.seconds
        print(found, flush=True)
    print(f"All: {states:.0f} states in {seconds:.1f} s of CPU")
    of_all = [("Mutant", module.MUTANTS) for module in (mutants, keyed_mutants)]
    of_all += [("Hole", module.HOLES) for module in (mutants, keyed_mutants)]
    for kind, found in of_all:
        for name, mutant in found.items():
            print(f"\n{kind}: {name}\n{mutant.search()}", flush=True)


if __name__ == "__main__":
    main()
