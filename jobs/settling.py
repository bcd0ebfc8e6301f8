"""After the number of buckets has changed: keeps writers out that still have the old one in mind.

A Spark writer of Hudi 1.2 reads the hashing config *before* it starts its commit (`HoodieSparkSqlWriter.writeInternal`
opens the client first, then calls `startCommit`). One that read it before our commit and starts after it would put rows
into buckets by the old number, and nothing in Hudi would notice: it was not in flight, so neither the guard under the
lock nor conflict detection sees it. So for a while after the commit every write that starts is looked at. Which file
groups it will write to stands in its inflight instant (the workload profile); one that keeps to the old buckets is
rolled back before it can commit, and its retry is right.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from jobs.errors import CancelledError, StaleWriterError
from jobs.hudi.lock import for_at_most
from jobs.hudi.table import REPLACE
from jobs.writers import INGESTION

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from jobs.hudi.lock import TableLock
    from jobs.hudi.table import Buckets, HudiTable, Instant
    from jobs.report import Report
    from jobs.writers import Writers

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.05
# How long the lock is held (so that the write cannot commit) until the write tells where it goes.
HOLD_SECONDS = 10.0
LOCK_SECONDS = 60.0
WATCHED = INGESTION | {REPLACE}


class Settling:
    """Watches the writes that start after a commit. `is_stale` judges one by the buckets it touches."""

    def __init__(
        self,
        table: HudiTable,
        lock: TableLock,
        writers: Writers,
        report: Report,
        is_stale: Callable[[Buckets], bool],
    ) -> None:
        self._table = table
        self._lock = lock
        self._writers = writers
        self._report = report
        self._is_stale = is_stale

    def run(self, seconds: float, known: Collection[str]) -> None:
        """Watches for so long, and fences those that are stale. `known` were there at the commit and are not judged.

        Ends before that when the job is cancelled; a lease that is lost and a timeout raise, and the next attempt goes
        on watching. Raises `StaleWriterError` if one committed before it could be stopped.
        """
        with suppress(CancelledError):  # too late: it is committed
            self._report.step("watching writers that start")
            self._watch(seconds, known)
        self._writers.sweep(announced_before=True)

    def _watch(self, seconds: float, known: Collection[str]) -> None:
        judged = set(known)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for item in self._table.instants():
                if item.requested not in judged and item.action in WATCHED:
                    judged.add(item.requested)
                    self._judge(item)
            self._writers.sweep()
            self._report.checkpoint()
            time.sleep(POLL_SECONDS)

    def _judge(self, item: Instant) -> None:
        with self._lock.held(for_at_most(LOCK_SECONDS)):
            waited_until = time.monotonic() + HOLD_SECONDS
            while self._undecided(item) and time.monotonic() < waited_until:
                time.sleep(POLL_SECONDS)
        while self._undecided(item):
            self._report.checkpoint()
            if self._writers.is_dead(item):
                return
            time.sleep(POLL_SECONDS)
        buckets = self._table.buckets_touched(item.requested)
        if buckets is None or not self._is_stale(buckets):
            return
        with self._report.undoing(), self._lock.held(for_at_most(LOCK_SECONDS)):
            if self._table.state_of(item.requested) == "COMPLETED":
                raise StaleWriterError(f"instant {item.requested}")
            self._writers.fence(item.requested)

    def _undecided(self, item: Instant) -> bool:
        return self._table.state_of(item.requested) == "REQUESTED"
