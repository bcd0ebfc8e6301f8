"""After file groups were replaced: finds writes that keep to what was before, and stops those that are in flight.

A Spark writer of Hudi 1.2 reads the hashing config *before* it starts its commit (`HoodieSparkSqlWriter.writeInternal`
opens the client first, then calls `startCommit`). One that read it before our commit and starts after it would put
rows into buckets by the old number, and nothing in Hudi would notice: it was not in flight, so neither the guard under
the lock nor conflict detection sees it. A prepared statement of Spark SQL carries the file ids that it read before. So
for a while after the commit every write that starts is looked at (see `Switch`); a stale one is rolled back before it
can commit. What has committed all the same is answered, to be repaired; and what comes later the service finds, which
compares every commit with what was replaced.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jobs.errors import CancelledError
from jobs.format.stale_writes import KNOWN_KEY
from jobs.hudi.lock import for_at_most
from jobs.hudi.table import REPLACE
from jobs.protocol.switch import Verdict
from jobs.protocol.writers import INGESTION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.hudi.lock import TableLock
    from jobs.hudi.table import Commit, HudiTable, Instant
    from jobs.job_context import JobContext
    from jobs.protocol.switch import Switch
    from jobs.protocol.writers import Writers

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.05
# How long the lock is held (so that the write cannot commit) until the write tells where it goes.
HOLD_SECONDS = 10.0
LOCK_SECONDS = 60.0
WATCHED = INGESTION | {REPLACE}


@dataclass(frozen=True)
class Before:
    """The timeline at the commit, read under the lock before it.

    `known` are the instants that were there. Of them `in_flight` were not completed: nobody stands in their way, since
    Hudi finds their conflict; but one that completes all the same is judged.
    """

    known: frozenset[str] = frozenset()
    in_flight: frozenset[str] = frozenset()

    def to_metadata(self) -> dict[str, str]:
        """For the commit itself: an attempt that takes over must not take what slipped in for known."""
        return {KNOWN_KEY: ",".join(sorted(self.known - self.in_flight))}

    @classmethod
    def of_commit(cls, instant: str, commits: Sequence[Commit], on_timeline: Sequence[Instant]) -> Before:
        """Of a replacement that another attempt committed: what was not completed then is judged if it completes."""
        told = next((each.write.known for each in commits if each.write.instant == instant), None)
        earlier = {each.requested for each in on_timeline if each.requested < instant} | {instant}
        # By an earlier version of ours, whose commits do not tell: then all that is older counts as known.
        completed = earlier if told is None else told | {instant}
        return cls(frozenset(completed | earlier), frozenset(earlier - completed))


@dataclass
class Found:
    """Instants that committed after the switch: `stale` for sure; or `doubtful`, which only their rows tell."""

    stale: list[str] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)

    @property
    def instants(self) -> list[str]:
        return self.stale + self.doubtful


class StaleWriterWatch:
    """Watches one table for writes that have not heard of `switch`."""

    def __init__(
        self, table: HudiTable, lock: TableLock, writers: Writers, context: JobContext, switch: Switch, before: Before
    ) -> None:
        self._table = table
        self._lock = lock
        self._writers = writers
        self._context = context
        self._switch = switch
        self._before = before
        self._judged: set[str] = set(before.known - before.in_flight)
        self._waited_for: set[str] = set()
        self._found = Found()

    def run(self, seconds: float) -> Found:
        """Watches for so long, and fences those that are stale; longer while one has yet to tell where it goes.

        Ends before that when the job is cancelled; a lease that is lost and a timeout raise, and the next attempt goes
        on watching.
        """
        with suppress(CancelledError):  # too late: it is committed
            self._context.step("watching writers that start")
            deadline = time.monotonic() + seconds
            while self._round() or time.monotonic() < deadline:
                self._writers.sweep()
                self._context.checkpoint()
                time.sleep(POLL_SECONDS)
        self._writers.sweep(announced_before=True)
        return self._found

    def committed(self) -> Found:
        """What has committed since, without waiting for anything and without a hand on what is in flight."""
        for item in self._unjudged():
            if item.state == "COMPLETED":
                self._judge_committed(item.requested)
        return self._found

    def _round(self) -> bool:
        """Judges what can be judged now; whether there is a write that has yet to tell where it goes."""
        is_open = False
        for item in self._unjudged():
            if item.state == "COMPLETED":
                self._judge_committed(item.requested)
            elif item.requested not in self._before.in_flight:
                is_open |= self._judge_in_flight(item)
        return is_open

    def _unjudged(self) -> list[Instant]:
        return [
            item for item in self._table.instants() if item.requested not in self._judged and item.action in WATCHED
        ]

    def _judge_committed(self, instant: str) -> None:
        self._judged.add(instant)
        touched = self._table.touched(instant)
        if touched is None or touched.tells_nothing:
            return
        match self._switch.verdict(touched):
            case Verdict.STALE:
                logger.warning("%s has committed to what was replaced", instant)
                self._found.stale.append(instant)
            case Verdict.OPEN:
                self._found.doubtful.append(instant)
            case Verdict.FRESH:
                pass

    def _judge_in_flight(self, item: Instant) -> bool:
        """Whether the write has not told yet where it goes, and its writer is alive."""
        if self._has_yet_to_tell(item) and item.requested not in self._waited_for:
            # The lock keeps it from committing meanwhile. Once: it may need the lock itself to go on.
            self._waited_for.add(item.requested)
            with self._lock.held(for_at_most(LOCK_SECONDS)):
                waited_until = time.monotonic() + HOLD_SECONDS
                while self._has_yet_to_tell(item) and time.monotonic() < waited_until:
                    time.sleep(POLL_SECONDS)
        if self._has_yet_to_tell(item):
            return not self._writers.is_dead(item)
        touched = self._table.touched(item.requested)
        if touched is None:
            self._judged.add(item.requested)
            return False
        match self._switch.verdict(touched):
            case Verdict.FRESH:
                self._judged.add(item.requested)
            case Verdict.STALE:
                self._stop(item)
            case Verdict.OPEN:
                pass  # It is judged again when it has committed.
        return False

    def _stop(self, item: Instant) -> None:
        with self._context.undoing(), self._lock.held(for_at_most(LOCK_SECONDS)):
            state = self._table.state_of(item.requested)
            if state is not None and state != "COMPLETED":
                self._judged.add(item.requested)
                self._writers.fence(item.requested)

    def _has_yet_to_tell(self, item: Instant) -> bool:
        return self._table.state_of(item.requested) == "REQUESTED"
