"""The state that the service keeps to watch a registered table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jobs.contract import TableLock

if TYPE_CHECKING:
    from datetime import datetime

    from jobs.contract import Problem
    from service.lake.engine_sighting import Sightings
    from service.lake.table_lock import SeenLock


@dataclass(frozen=True)
class Watch:
    """The result of the last poll of a table. Before the first, all but `table_id`, `base_path` and `next_poll_at` is
    empty.

    `fingerprint` is computed from the timeline's file names: while it is the same, nothing has happened. `looked_at` is
    when the poll began that found it. `active_from` is the oldest instant of the active timeline. `gap_at` is when the
    service last missed instants: they were archived before a poll saw them, in a format that it cannot read. `failures`
    counts failed polls since the last successful one, the first was at `failing_since`; `error` is the last failure.
    `has_late_files`: an incident of
    that kind stands, so a poll has to do more than read the timeline. `engines` are the sightings of the engines that
    write the table. `lock` is the declared one, `seen_lock` what the last poll found of it.
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
    failing_since: datetime | None = None
    error: Problem | None = None
    has_late_files: bool = False
    engines: Sightings = field(default_factory=dict)
    lock: TableLock = field(default_factory=TableLock)
    seen_lock: SeenLock | None = None
