"""The problems and backlogs of the whole installation at one time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from service.health.problem import HealthProblem, Severity


@dataclass(frozen=True)
class TableBacklog:
    """What a table's services have not done yet. `commits` are those since the last compaction."""

    log_bytes: int
    base_bytes: int
    commits: int
    last_commit_at: datetime | None


@dataclass(frozen=True, eq=False)
class Known:
    """The state `as_of` a time: the problems, the most serious first, and the backlogs of the tables that have been
    polled, by table id."""

    as_of: datetime
    problems: Sequence[HealthProblem] = ()
    backlogs: Mapping[str, TableBacklog] = field(default_factory=dict)
    counts: Mapping[Severity, int] = field(default_factory=Counter)
    of_tables: Mapping[str, Sequence[HealthProblem]] = field(default_factory=dict)
