"""The clock of one table. Every instant that Hudi makes for a job by this clock lies in the frame of the table's
writers (`clock_frame`).

The clock knows the frame, and the greatest moment on the timeline, as of the last time that the table's lock was taken.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from jobs.errors import ClocksDisagreeError, JobError
from jobs.format.clock_frame import (
    TOLERANCE,
    ClockFrame,
    Stamped,
    appeared_before,
    frame_of,
    latest_of,
    spoken,
    utc_now,
)
from jobs.format.index_definitions import METADATA_FOLDER
from jobs.format.instants import EPOCH
from jobs.hudi.file_listing import listed
from jobs.hudi.file_times import storage_now
from jobs.hudi.instant_generators import instant_generators
from jobs.hudi.jvm import translated
from jobs.hudi.opened_table import OpenedTable

logger = logging.getLogger(__name__)

_MILLISECOND = timedelta(milliseconds=1)
# Storages stamp their files to the second, and a request takes its time.
_STORAGE_IS_OFF = timedelta(seconds=2)


class TableClock:
    """The clock of a table. Before the first `reload` it is the clock of this process."""

    def __init__(self, table: OpenedTable) -> None:
        self._table = table
        self._generator: Any = None
        self._files: list[Stamped] = []
        # The storage's clock is this much ahead of the machine's.
        self._storage_ahead = timedelta()
        self._begun = utc_now(), time.monotonic()
        self.frame = ClockFrame()

    @contextmanager
    def kept(self, *, writes: bool) -> Iterator[None]:
        """Lets Hudi name this table's instants in the frame of its writers. A job that `writes` may measure more."""
        jvm, paths = self._table.jvm, (self._table.base_path, self._table.path)
        self._begun = utc_now(), time.monotonic()
        with translated("setting the clock of the table"):
            generators = instant_generators(jvm)
            clock, is_only_user = generators.take(jvm, *paths, TOLERANCE // _MILLISECOND)
        try:
            if writes:
                self._storage_ahead = self._measured_storage()
            if writes or is_only_user:
                self._generator = clock
            self.reload()
            yield
        finally:
            self._generator = None
            with translated("resetting the clock"):
                generators.give_back(*paths)

    def reload(self) -> None:
        """Reads the timeline, so that later instants of this clock come after all instants there. Call it when the lock
        was taken."""
        listed = self._table.timeline_files()
        self._files = [Stamped(name, _utc(file.modified_ms)) for name, file in listed.items()]
        self.frame = frame_of(self._files, version=self._table.version, ingestion=self._ingestion)
        if self.frame.offset is None:
            self.frame = replace(self.frame, latest=self._latest_of_both(self.frame.latest))
        if self._generator is not None:
            frame = self.frame
            shift = (frame.slowest or timedelta()) + self._storage_ahead
            latest = (frame.latest - EPOCH) if frame.latest else timedelta()
            given = (each // _MILLISECOND for each in (shift, latest, frame.offset_of_files))
            with translated("setting the clock of the table"):
                self._generator.know(frame.slowest is not None, *given)

    def _latest_of_both(self, latest: datetime | None) -> datetime | None:
        """Returns the greatest moment on the timelines of the table and of its metadata table. The metadata table may
        have been compacted since the last commit, for example by Hudi's upgrader (`UpgradeDowngradeUtils`, 1.2.0). If
        our commit were before that compaction, readers of the metadata table would skip the files that it adds
        there."""
        if latest is None:
            return None
        path = self._table.path.rstrip("/")
        timeline = f"{path}/{METADATA_FOLDER}{self._table.timeline_path.removeprefix(path)}"
        with translated("listing the metadata table's timeline"):
            names = listed(self._table.jvm, self._table.storage, timeline)
        return max(latest, latest_of(names) or latest)

    def verify(self, instant: str | None = None) -> None:
        """Raises `ClocksDisagreeError` unless an instant that is made now is in order for every writer. Also checks the
        files that writers have made since our `instant`, if it is given. The lock must be held.
        """
        frame = self.frame
        if frame.disagreement is not None:
            raise ClocksDisagreeError(
                f"Some writers of this table name their instants {spoken(frame.disagreement.one)} and others "
                f"{spoken(frame.disagreement.other)}, since {frame.disagreement.since:%Y-%m-%d %H:%M} UTC."
            )
        if (behind := frame.behind(utc_now() + self._storage_ahead)) > frame.tolerance:
            raise ClocksDisagreeError(
                f"The clock of the newest write, {spoken(frame.offset or timedelta())} since {frame.since:%H:%M:%S} "
                f"UTC, is {behind.total_seconds():.0f} s behind the last instant on the timeline, {frame.latest}.",
                retriable=True,
            )
        if instant is None:
            return
        late = appeared_before(self._files, instant, ingestion=self._ingestion, tolerance=frame.tolerance)
        if late:
            raise ClocksDisagreeError(
                f"{late[0]} appeared on the timeline after {instant} did, although it says that it was before.",
                retriable=True,
            )

    def storage_ms(self) -> int:
        """Returns the storage's time in milliseconds since 1970, to about two seconds; a job that only reads does not
        measure it, and uses this machine's time. If this machine's clock is set during the job, the earlier time
        counts, so that no live writer looks dead."""
        wall, monotonic = self._begun
        now = min(utc_now(), wall + timedelta(seconds=time.monotonic() - monotonic))
        return (now + self._storage_ahead - EPOCH) // _MILLISECOND

    # -- moments in the frame, for checks of the age of instants

    def now(self) -> datetime:
        """Returns the current time in the frame of the table's instants, never before the last of them."""
        at = utc_now()
        at = at + self._own_offset() if self.frame.offset is None else at + self._storage_ahead + self.frame.offset
        return max(at, self.frame.latest or at)

    def moment(self, milliseconds: int) -> datetime:
        """Converts a file's time to the frame of the table's instants."""
        offset = self._own_offset() if self.frame.offset is None else self.frame.offset
        return _utc(milliseconds) + offset

    def _own_offset(self) -> timedelta:
        is_utc = self._table.properties.get("hoodie.table.timeline.timezone", "LOCAL").upper() == "UTC"
        return timedelta() if is_utc else _local_offset()

    @property
    def _ingestion(self) -> str:
        return "deltacommit" if self._table.is_merge_on_read else "commit"

    def _measured_storage(self) -> timedelta:
        """Returns by how much the storage's clock is ahead of this machine's, measured with a file that is made and
        removed. Returns zero if the difference is within the error of measurement (the time of a request, and rounding
        to seconds), or if it cannot be measured.
        """
        before = utc_now()
        try:
            at = _utc(storage_now(self._table))
        except JobError:
            return timedelta()
        after = utc_now()
        if before - _STORAGE_IS_OFF <= at <= after + _STORAGE_IS_OFF:
            return timedelta()
        ahead = at - after
        logger.warning("the clock of the storage is %.0f s ahead of this machine's", ahead.total_seconds())
        return ahead


def _utc(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).replace(tzinfo=None)


def _local_offset() -> timedelta:
    return datetime.now(UTC).astimezone().utcoffset() or timedelta()
