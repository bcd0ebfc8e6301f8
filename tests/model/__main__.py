"""Prints what the model has explored: `python -m tests.model` from the repository's root."""

from __future__ import annotations

from tests.model.catalogue import HOLDS, HOLES, MUTANTS


def main() -> None:
    """Prints the scenarios with their numbers of states, then the counterexample of each mutant (a protocol without one
    rule) and of each hole (a behaviour of a writer that breaks every protocol)."""
    states = seconds = 0.0
    for search in HOLDS.values():
        found = search()
        states, seconds = states + found.states, seconds + found.seconds
        print(found, flush=True)
    print(f"All: {states:.0f} states in {seconds:.1f} s of CPU")
    for kind, mutants in (("Mutant", MUTANTS), ("Hole", HOLES)):
        for name, mutant in mutants.items():
            print(f"\n{kind}: {name}\n{mutant.search()}", flush=True)


if __name__ == "__main__":
    main()
