"""A data file of a pending instant, announced by the marker with which Hudi finds it (`DirectWriteMarkers`, 1.2.0).

A task may be suspended with its executor or its machine. Meanwhile Spark may give the task's work to another executor
and the instant may complete, or another attempt may roll the instant back. Both remove the markers, and nobody looks
for files of the instant again. Readers that list the storage would find the rows of a late file a second time: at once
if the instant has completed, and otherwise when its rollback is archived. So a file is completed only while the instant
is pending.
"""

from __future__ import annotations

import re
import time

from jobs.errors import CommitLostError
from jobs.format.markers import MARKER
from jobs.storage.paths import Output, Storage

# Since table version 8, and before: `TimelineLayout` of Hudi 1.2.0.
_TIMELINES = ".hoodie/timeline", ".hoodie"
_PENDING = re.compile(r"(\.\w+)?\.(requested|inflight)")
# The timeline is not read for a file that is begun within this time of its marker. On a disk a file exists from its
# beginning.
_FRESH_SECONDS = 2.0


class AnnouncedFile:
    """A file for which this class makes a marker; `kind` is the last part of the marker's name."""

    def __init__(self, storage: Storage, instant: str, partition: str, name: str, kind: str) -> None:
        self.name = name
        self._storage, self._instant, self._partition = storage, instant, partition
        self._marker = ".hoodie", ".temp", instant, partition, f"{name}{MARKER}{kind}"
        self._announced = time.time(), time.monotonic()
        storage.create_empty(*self._marker)

    def create(self) -> Output:
        """Opens the file for writing. If the instant is no longer pending, this method and `Output.close` raise
        CommitLostError; the caller then abandons the output."""
        now = time.time(), time.monotonic()
        if any(end - begin > _FRESH_SECONDS for begin, end in zip(self._announced, now, strict=True)):
            self._require_pending()
        return self._storage.create(self._partition, self.name, before_close=self._require_pending)

    def _require_pending(self) -> None:
        if self._storage.exists(*self._marker):
            return
        if not self._is_pending():
            detail = f"{self._instant}: it ended while a task wrote {self.name}, and the task was late"
            raise CommitLostError(detail)
        # Somebody has removed markers, as Hudi's procedure `delete_marker` does, or another attempt has begun the same
        # plan. The commit then removes files that have a marker and that it does not name.
        self._storage.create_empty(*self._marker)
        if not self._is_pending():
            raise CommitLostError(self._instant)

    def _is_pending(self) -> bool:
        """Returns whether the timeline has the instant, and not as completed."""
        ends = {
            name.removeprefix(self._instant)
            for folder in _TIMELINES
            for name in self._storage.names_in(folder)
            if name.startswith(self._instant)
        }
        return bool(ends) and all(_PENDING.fullmatch(end) for end in ends)
