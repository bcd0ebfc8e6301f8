"""The problems and backlogs of the whole installation at one time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from service.catalog.table_statistics import TableBacklog
    from service.health.problem import HealthProblem, Severity


@dataclass(frozen=True, eq=False)
class Known:
    """The problems and backlogs at one time."""

    as_of: datetime
    problems: Sequence[HealthProblem] = ()  # The most serious first.
    backlogs: Mapping[str, TableBacklog] = field(default_factory=dict)  # Of polled tables, by table id.
    counts: Mapping[Severity, int] = field(default_factory=Counter)
    of_tables: Mapping[str, Sequence[HealthProblem]] = field(default_factory=dict)
