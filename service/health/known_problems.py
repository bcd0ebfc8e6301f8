"""The problems and backlogs of the whole installation at one time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from jobs.spec import Spec, Told

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.health.problem import HealthProblem, Severity


@dataclass(frozen=True)
class TableBacklog(Told):
    """What a table's services have not done yet."""

    log_bytes: Annotated[int, Spec("Size of the log files of all partitions", examples=(3328599654,))]
    base_bytes: Annotated[int, Spec("Size of the latest base files of all partitions", examples=(2040109465,))]
    commits: Annotated[int, Spec("Commits since the last compaction", examples=(21,))]
    last_commit_at: datetime | None

    @property
    def log_ratio(self) -> float | None:
        """Log bytes divided by base bytes; None without base files."""
        return round(self.log_bytes / self.base_bytes, 4) if self.base_bytes else None


@dataclass(frozen=True, eq=False)
class Known:
    """The problems and backlogs at one time."""

    as_of: datetime
    problems: Sequence[HealthProblem] = ()  # The most serious first.
    backlogs: Mapping[str, TableBacklog] = field(default_factory=dict)  # Of polled tables, by table id.
    counts: Mapping[Severity, int] = field(default_factory=Counter)
    of_tables: Mapping[str, Sequence[HealthProblem]] = field(default_factory=dict)
