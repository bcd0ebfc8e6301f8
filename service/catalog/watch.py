"""The state that the service keeps to watch a registered table."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from jobs.contract import Problem, TableLock
from jobs.spec import Documented, Spec
from service.lake.engine_sighting import Sightings
from service.lake.table_lock import PolledLock


@dataclass(frozen=True)
class Watch(Documented):
    """The result of the last poll of a table. Before the first poll, each field has its default."""

    table_id: str
    base_path: str
    next_poll_at: Annotated[datetime, Spec("Time of the next poll", examples=("2026-01-01T12:01:00Z",))]
    timeline_path: str | None = None
    fingerprint: str | None = None  # Hash of the timeline's file names. It changes with each change of the timeline.
    looked_at: Annotated[datetime | None, Spec("Time of the last poll that found the timeline changed")] = None
    active_from: str | None = None  # The oldest instant of the active timeline.
    schema_digest: str | None = None
    has_pending: bool = False
    gap_at: Annotated[
        datetime | None, Spec("Time at which instants were last found to be archived before a poll saw them")
    ] = None
    failures: Annotated[int, Spec("Failed polls since the last successful one", examples=(0,))] = 0
    failing_since: datetime | None = None
    error: Problem | None = None  # The last failure.
    has_late_files: bool = (
        False  # Whether an incident about late files is open. Polls then check more than the timeline.
    )
    engines: Sightings = field(default_factory=dict)  # Sightings of the engines that write the table.
    lock: TableLock = field(default_factory=TableLock)  # The declared lock.
    polled_lock: PolledLock | None = None  # The lock as the last poll found it.
