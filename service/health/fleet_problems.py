"""The problems and backlogs of the whole installation at one time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from service.catalog.table_statistics import TableBacklog
from service.health.problem import HealthProblem, Severity
from service.health.problem_groups import ProblemGroup, with_acknowledged


@dataclass(frozen=True, eq=False)
class FleetProblems:
    as_of: datetime | None  # None if this process has not computed the problems yet.
    problems: Sequence[HealthProblem] = ()  # The most serious first.
    backlogs: Mapping[str, TableBacklog] = field(default_factory=dict)  # The backlogs of polled tables, by table id.
    counts: Mapping[Severity, int] = field(default_factory=Counter)
    of_tables: Mapping[str, Sequence[HealthProblem]] = field(default_factory=dict)
    groups: Sequence[ProblemGroup] = ()  # The groups, as if nothing were acknowledged.


# Results are kept, because many overviews show the groups of one search.
@lru_cache(maxsize=2)
def groups_of(known: FleetProblems, acknowledged: frozenset[str]) -> Sequence[ProblemGroup]:
    """Returns the groups with the numbers of their `acknowledged` problems. Groups whose problems are all acknowledged
    come last."""
    return with_acknowledged(known.groups, known.problems, acknowledged) if acknowledged else known.groups
