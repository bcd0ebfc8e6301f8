"""What went wrong with a table and has to be put right: a commit whose rows went astray, files that may come back."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from jobs.contract import JobKind, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime


class IncidentKind(StrEnum):
    """`STALE_WRITE`: a commit wrote to file groups that had been replaced, so no reader sees its rows there.
    `OLD_NUMBER`: all that a commit wrote to a partition lies in buckets of the number before an expansion.
    `LATE_FILES`: a writer was fenced that may be alive, and may still write files that count once its rollback has been
    archived.
    """

    STALE_WRITE = "stale-write"
    OLD_NUMBER = "old-number"
    LATE_FILES = "late-files"


class IncidentState(StrEnum):
    """`SUSPECTED`: only the rows can tell, and a repair looks at them. `CLEARED`: there was nothing to repair, or
    somebody closed it."""

    SUSPECTED = "suspected"
    OPEN = "open"
    REPAIRED = "repaired"
    CLEARED = "cleared"


STANDING = (IncidentState.SUSPECTED, IncidentState.OPEN)

ASTRAY = frozenset({IncidentKind.STALE_WRITE, IncidentKind.OLD_NUMBER})
"""The kinds that a repair puts right."""

HELD_BACK = frozenset({JobKind.CLEANING, JobKind.CLUSTERING, JobKind.BUCKET_EXPANSION, JobKind.FINISH_EXPANSION})
"""What must wait while rows are astray: they may be in the very files that it deletes or replaces, and a repair needs
to know where they should go."""


_REPAIR = "Start a repair: it brings the rows to where they belong. Until then nothing is cleaned."
_WORDS = {
    IncidentKind.STALE_WRITE: (
        "A commit wrote to file groups that had been replaced",
        "No reader sees the {rows} that {what} wrote there: new ones are missing, updates and deletes have no effect.",
        _REPAIR,
    ),
    IncidentKind.OLD_NUMBER: (
        "A commit seems to have gone by the number of buckets before an expansion",
        "All {rows} that {what} wrote to a partition went to buckets that there were before. Those that belong to"
        " new ones are found twice, or not at all, once their keys are written again.",
        "Start a repair: it looks at the rows and moves those that are misplaced. Until then nothing is cleaned.",
    ),
    IncidentKind.LATE_FILES: (
        "A write was fenced, and its writer may still be at work",
        "What it writes under {what} must be gone before the timeline is archived past that instant: files that stay"
        " behind would count from then on.",
        "Each cleaning removes such files. The incident closes by itself when there are none and the writer is gone.",
    ),
}
"""Title, what it means, and what to do."""


@dataclass(frozen=True)
class Incident:
    """`instant` did it, by the operation type of `operation`. `details` are figures of its kind, as JSON.

    `because` is why it was closed, as a sentence.
    """

    id: str
    table_id: str
    kind: IncidentKind
    instant: str
    state: IncidentState
    opened_at: datetime
    operation: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    closed_at: datetime | None = None
    because: str | None = None

    @property
    def is_standing(self) -> bool:
        return self.state in STANDING

    def problem(self) -> Problem:
        """What it means for the table's readers, and what to do."""
        what = f"{self.instant} ({self.operation})" if self.operation else self.instant
        number = self.details.get("rows")
        rows = "rows" if number is None else f"{number} row{'' if number == 1 else 's'}"
        title, means, hint = _WORDS[self.kind]
        return Problem(self.kind.value, title, means.format(what=what, rows=rows), hint)

    def closed(self, state: IncidentState, because: str, at: datetime) -> Incident:
        return dataclasses.replace(self, state=state, because=because, closed_at=at)


def astray(incidents: Iterable[Incident]) -> list[Incident]:
    """Those that stand and that a repair puts right."""
    return [each for each in incidents if each.is_standing and each.kind in ASTRAY]
