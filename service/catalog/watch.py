"""How the service watches a registered table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from jobs.contract import Problem
    from service.lake.engine_sighting import Sightings


@dataclass(frozen=True)
class Watch:
    """What the last look at a table left. All but `table_id`, `base_path` and `next_poll_at` is empty before the first.

    `fingerprint` is that of the timeline's file names: as long as it is the same, nothing has happened. `looked_at` is
    when the look began that found it. `active_from` is the oldest instant of the active timeline. `gap_at` is when the
    service last missed instants: they had been archived before it looked, to where it cannot read them. `failures`
    counts looks that failed since the last good one, `error` is the last. `has_late_files`: an incident of that kind
    stands, so that a look has more to do than to read the timeline. `engines` are what was seen of those that write the
    table.
    """

    table_id: str
    base_path: str
    next_poll_at: datetime
    timeline_path: str | None = None
    fingerprint: str | None = None
    looked_at: datetime | None = None
    active_from: str | None = None
    schema_digest: str | None = None
    has_pending: bool = False
    gap_at: datetime | None = None
    failures: int = 0
    error: Problem | None = None
    has_late_files: bool = False
    engines: Sightings = field(default_factory=dict)
