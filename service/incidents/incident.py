"""Incidents: faults of a table that must be resolved, such as a commit whose rows are misplaced, or a damage."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from jobs.contract import Problem
from jobs.format.stale_writes import Doubt
from jobs.kinds.registry import KINDS
from jobs.spec import Spec
from service.model.record import Record


class IncidentKind(StrEnum):
    """`STALE_WRITE`: a commit wrote to file groups that had been replaced, so no reader sees its rows there.
    `OLD_NUMBER`: a commit seems to come from a writer with an old number of buckets, or without the bucket index. After
    an expansion, all rows that the commit wrote to a partition lie in the old buckets. After a contraction, some rows
    lie in buckets that were removed. `LATE_FILES`: a fenced writer may be alive, and may still write files. Readers
    would use these files when the rollback of its write has been archived. `DAMAGE`: a diagnosis, an audit or the
    checks after a job have found a damage; `details` describe the damage, and `instant` is the time of the check."""

    STALE_WRITE = "stale-write"
    OLD_NUMBER = "old-number"
    LATE_FILES = "late-files"
    DAMAGE = "damage"


NO_LONGER_FOUND = "no longer finds it"
"""The last words of the reason for which a diagnosis or an audit closes an incident."""


class IncidentState(StrEnum):
    """The state of an incident. `SUSPECTED`: only the rows can prove the incident, and a repair checks the rows.
    `CLEARED`: there was nothing to repair, or a user closed the incident."""

    SUSPECTED = "suspected"
    OPEN = "open"
    REPAIRED = "repaired"
    CLEARED = "cleared"


DOUBT = "doubt"
"""Key in the details of a stale write that is not proved. The value is a `Doubt`. Such a write is repaired only if a
person requests the repair."""

UNRESOLVED = (IncidentState.SUSPECTED, IncidentState.OPEN)

MISPLACING_ROWS = frozenset({IncidentKind.STALE_WRITE, IncidentKind.OLD_NUMBER})
"""The kinds of incidents that a repair resolves."""

HELD_BACK = frozenset(kind for kind, declared in KINDS.items() if declared.waits_for_repair)
"""Jobs that must wait while rows are misplaced."""

_REPAIR = "Start a repair: it moves the rows to where they belong. Until then nothing is cleaned."
_TEXTS = {
    IncidentKind.STALE_WRITE: (
        "A commit wrote to file groups that had been replaced",
        "No reader sees the {rows} that {what} wrote there: new rows are missing, updates and deletes have no effect."
        " A copy-on-write table is an exception: readers see these rows beside the old ones, and with a bucket index"
        " every later write to these buckets fails until the repair.",
        _REPAIR,
    ),
    IncidentKind.OLD_NUMBER: (
        "A commit seems to have used an old number of buckets, or another index",
        "{rows} that {what} wrote to a partition are in the files that were right before the number of buckets changed,"
        " or before the table adopted its bucket index. Some rows belong to other buckets. When their keys are written"
        " again, readers find them twice, or not at all.",
        "Start a repair: it checks the rows and moves those that are misplaced. Until then nothing is cleaned.",
    ),
    IncidentKind.LATE_FILES: (
        "A write was fenced, and its writer may still be running",
        "Files that the writer writes for {what} must be removed before the timeline is archived past that instant:"
        " afterwards readers would use the remaining files.",
        "Each cleaning removes such files. The incident closes by itself when none are left and the writer is gone.",
    ),
}
"""Title, detail and hint."""

_ONLY_IF = (
    "{why} The service does not repair this by itself. If these rows were written after the replacement, start a repair"
    " that names the commit in `instants`; otherwise start a repair that names the commit in `accepted`. Until then"
    " nothing is cleaned."
)
_OF_ITSELF = (
    "This overwrite has replaced the file groups to which it wrote, because its writer gives file groups fixed ids"
    " (non-blocking concurrency control). A `rollback` of it brings back the rows from before, as long as no later"
    " commit exists. If nobody needs them, start a repair that names the commit in `accepted`. Until then nothing is"
    " cleaned."
)
_DOUBTS = {
    Doubt.OVERWRITTEN: "An overwrite or a deletion of partitions replaced the file groups, so the rows may have been"
    " removed on purpose.",
    Doubt.ORDER: "Nothing on the timeline proves that the rows were written after the replacement and not before.",
    Doubt.CLOCKS: "The clocks of the writers disagree, so the times on the timeline do not prove that the rows were"
    " written after the replacement.",
}
"""Reasons why a stale write is not proved."""


@dataclass(frozen=True)
class Incident(Record):
    """A fault that was found on a table."""

    id: Annotated[str, Spec("Id of the incident", examples=("inc_8c1d0e5f2a7b4963",))]
    table_id: Annotated[str, Spec(examples=("tbl_0f3c2a9d5e7b1c44",))]
    kind: Annotated[
        IncidentKind,
        Spec(
            "`stale-write`, `late-files` of a fenced write, or `damage` found by a diagnosis", examples=("stale-write",)
        ),
    ]
    instant: Annotated[
        str,
        Spec(
            "The commit that caused the incident, or the write that was fenced; for a damage, when it was found (UTC)",
            examples=("20260101120000000",),
        ),
    ]
    state: Annotated[
        IncidentState, Spec("`suspected`: only a check of the rows can prove it, as a repair does", examples=("open",))
    ]
    opened_at: datetime
    operation: Annotated[str | None, Spec("Hudi's WriteOperationType of that commit", examples=("UPSERT_PREPPED",))] = (
        None
    )
    details: Annotated[
        Mapping[str, Any],
        Spec("Figures that depend on the kind", examples=({"rows": 173, "file_groups": 1, "partitions": 1},)),
    ] = field(default_factory=dict)
    closed_at: datetime | None = None
    because: Annotated[
        str | None,
        Spec(
            "The reason for closing it, and the user if a user closed it",
            examples=("20260101120030000 brought its rows over",),
        ),
    ] = None

    @property
    def is_unresolved(self) -> bool:
        return self.state in UNRESOLVED

    @property
    def doubt(self) -> Doubt | None:
        found = self.details.get(DOUBT) if self.kind is IncidentKind.STALE_WRITE else None
        return None if found is None else Doubt(found)

    def problem(self) -> Problem:
        """Returns the effect on the table's readers, and what to do."""
        if self.kind is IncidentKind.DAMAGE:
            return self._finding()
        what = f"{self.instant} ({self.operation})" if self.operation else self.instant
        number = self.details.get("rows")
        rows = "rows" if number is None else f"{number} row{'' if number == 1 else 's'}"
        title, detail, hint = _TEXTS[self.kind]
        if self.doubt is not None:
            hint = _OF_ITSELF if self.doubt is Doubt.ITSELF else _ONLY_IF.format(why=_DOUBTS[self.doubt])
        return Problem(self.kind.value, title, detail.format(what=what, rows=rows), hint)

    def _finding(self) -> Problem:
        title, detail, effect, hint = (
            str(self.details.get(name, "")) for name in ("title", "detail", "effect", "hint")
        )
        return Problem(self.kind.value, title, f"{detail}. {effect}", hint)

    def closed(self, state: IncidentState, because: str, at: datetime) -> Incident:
        return dataclasses.replace(self, state=state, because=because, closed_at=at)


def with_misplaced_rows(incidents: Iterable[Incident]) -> list[Incident]:
    """Returns the unresolved incidents that a repair resolves."""
    return [each for each in incidents if each.is_unresolved and each.kind in MISPLACING_ROWS]
