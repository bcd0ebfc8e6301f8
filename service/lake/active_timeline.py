"""The current active timeline of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.lake.instant import Instant
from service.lake.pending import read_pending
from service.lake.snapshot import Pending
from service.lake.storage import open_storage
from service.lake.table_config import read_table_config
from service.lake.timeline import read_timeline, timeline_files, timeline_of


@dataclass(frozen=True)
class ActiveTimeline:
    """The instants of an active timeline. `completed` is ordered by completion time if the timeline records it, else by
    requested time.

    `starts_at` is the requested time of the first instant, completed or not; empty without instants.
    """

    starts_at: str
    pending: tuple[Pending, ...]
    completed: tuple[Instant, ...]


@dataclass(frozen=True)
class Completed:
    """The requested times of the completed instants of an active timeline, and `starts_at` as in `ActiveTimeline`."""

    starts_at: str
    instants: frozenset[str]


def read_completed(
    base_path: str, storage_options: Mapping[str, str], allowed_roots: Sequence[str] | None = None
) -> Completed:
    """Returns the completed instants. Reads less than `read_active_timeline`, and raises the same errors."""
    storage = open_storage(base_path, storage_options, allowed_roots)
    timeline = read_timeline(storage, read_table_config(storage))
    return Completed(
        timeline.instants[0].requested_time if timeline.instants else "",
        frozenset(instant.requested_time for instant in timeline.instants if instant.is_completed),
    )


def read_active_timeline(
    base_path: str, storage_options: Mapping[str, str], allowed_roots: Sequence[str] | None = None
) -> ActiveTimeline:
    """Returns the active timeline, read from the table's storage. Raises PathForbiddenError, StorageError and the other
    errors of `service.lake`."""
    storage = open_storage(base_path, storage_options, allowed_roots)
    config = read_table_config(storage)
    files = timeline_files(storage, config)
    timeline = timeline_of(each.name for each in files)
    completed = sorted(
        (instant for instant in timeline.instants if instant.is_completed),
        key=lambda instant: (instant.completion_time or instant.requested_time, instant.requested_time),
    )
    starts_at = timeline.instants[0].requested_time if timeline.instants else ""
    pending = read_pending(storage, config.in_frame_of(files), timeline)
    return ActiveTimeline(starts_at, pending, tuple(completed))
