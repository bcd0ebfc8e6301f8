"""Scenarios of logs that a plan misses, and mutants: protocols without one rule, each with the scenario in which it
fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.model.log_rules import GOOD, LogProtocol, LogScenario
from tests.model.logs import search
from tests.model.search import Mutant

if TYPE_CHECKING:
    from collections.abc import Mapping

OLDER = LogScenario("a plan before version 8, writers that begin without the lock", writers=3)
LOCKED = replace(OLDER, name="a plan before version 8, writers that begin with the lock held", begins_locked=True)
STALLED = replace(OLDER, name="a plan before version 8, a writer that looks dead", stalls=1)
ALL = (OLDER, LOCKED)
# Scenarios that `--exhaustive` adds.
LARGE = (replace(OLDER, name=f"{OLDER.name}, five of them", writers=5),)


def _without(protocol: LogProtocol, scenario: LogScenario, *decisive: str) -> Mutant:
    return Mutant(lambda: search(protocol, scenario), decisive, "are in a log that no reader reads")


_MISSED = ("makes the plan's instant", "knows of no plan", "file is there")
MUTANTS: Mapping[str, Mutant] = {
    "a plan is executed beside writers that do not know of it": _without(
        replace(GOOD, waits=False, checks=False),
        OLDER,
        *_MISSED,
        "commits instant",
        "commits the compaction",
    ),
    "a plan does not get the logs that have come since": _without(
        replace(GOOD, adds=False, checks=False), OLDER, *_MISSED, "commits instant", "commits the compaction"
    ),
    "a writer that looked dead commits, and nobody looks for its log": _without(
        replace(GOOD, checks=False), STALLED, *_MISSED, "looks dead", "commits instant", "commits the compaction"
    ),
}

HOLES: Mapping[str, Mutant] = {
    "a writer that looked dead commits after the compaction": _without(
        GOOD, STALLED, *_MISSED, "looks dead", "commits the compaction", "commits instant"
    )
}
