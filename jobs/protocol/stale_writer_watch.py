"""Finds writes that still follow the old state after file groups were replaced, and rolls back the ones in flight.

A Spark writer of Hudi 1.2 reads the hashing config *before* it starts its commit (`HoodieSparkSqlWriter.writeInternal`
opens the client first, then calls `startCommit`). A writer that reads it before our commit and starts its commit
afterwards would put rows into buckets by the old number. Hudi would not notice, because the write was not in flight
during our commit, so neither the check under the lock nor conflict detection sees it. A prepared statement of Spark SQL
also uses the file ids that it has read before. So for some time after the commit every starting write is checked (see
`Switch`), and a stale one is rolled back before it can commit. Stale writes that have committed nevertheless are
returned for repair. The service finds later ones by comparing every commit with the replaced file groups.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from jobs.errors import CancelledError
from jobs.format.stale_writes import KNOWN_KEY
from jobs.hudi.history import past_since
from jobs.hudi.lock import TableLock, for_at_most
from jobs.hudi.records import INGESTION, REPLACE, Commit, Instant, Touched
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.protocol.file_group_change import Switch, Verdict
from jobs.protocol.writers import Writers

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.05
# Longest time to hold the lock, so that a write cannot commit, while waiting for the write's targets.
HOLD_SECONDS = 10.0
LOCK_SECONDS = 60.0
# Longest watch, as a multiple of the seconds that were asked for, if stale writes keep coming.
_LONGEST = 6
WATCHED = INGESTION | {REPLACE}


@dataclass(frozen=True)
class KnownInstants:
    """The timeline at the commit, read under the lock before the commit.

    `known` are the instants that existed, and `in_flight` those among them that had not completed. A write that was in
    flight is not stopped, because Hudi detects its conflict; if it completes nevertheless, it is judged.
    """

    known: frozenset[str] = frozenset()
    in_flight: frozenset[str] = frozenset()

    def to_metadata(self, *, without: Collection[str] = ()) -> dict[str, str]:
        """Returns metadata for the commit. The next attempt reads from it which instants came after the commit.
        The replacement left out the rows of the instants `without`, so these instants count as stale."""
        return {KNOWN_KEY: ",".join(sorted(self.known - self.in_flight - {*without}))}

    @classmethod
    def of_commit(cls, instant: str, commits: Sequence[Commit], on_timeline: Sequence[Instant]) -> KnownInstants:
        """Returns the instants that were known to a replacement which another attempt has committed. Instants that had
        not completed then are judged when they complete."""
        recorded = next((each.write.known for each in commits if each.write.instant == instant), None)
        earlier = {each.requested for each in on_timeline if each.requested < instant} | {instant}
        # Commits of earlier versions of this program have no such metadata. For such a commit all older instants count
        # as known.
        completed = earlier if recorded is None else recorded | {instant}
        return cls(frozenset(completed | earlier), frozenset(earlier - completed))


@dataclass
class Found:
    """Instants that committed after the switch."""

    stale: list[str] = field(default_factory=list)  # Stale for certain.
    doubtful: list[str] = field(default_factory=list)  # Only their rows show whether they are stale.

    @property
    def instants(self) -> list[str]:
        return self.stale + self.doubtful


class StaleWriterWatch:
    """Watches one table for writes that do not know of `switch`."""

    def __init__(
        self,
        table: HudiTable,
        lock: TableLock,
        writers: Writers,
        context: JobContext,
        switch: Switch,
        *,
        before: KnownInstants,
    ) -> None:
        self._table = table
        self._lock = lock
        self._writers = writers
        self._context = context
        self._switch = switch
        self._before = before
        self._judged: set[str] = set(before.known - before.in_flight)
        self._waited_for: set[str] = set()
        self._first = ""  # The first write on the timeline when the history was read.
        self._found = Found()

    def run(self, seconds: float) -> Found:
        """Watches for `seconds` and rolls back stale writes; continues while the targets of a write are unknown, and
        begins anew after each stale write, for at most `_LONGEST` times as long. The watch begins anew because a
        stream repeats its batch with the old state, until the stream fails and is started again.

        Returns earlier if the job is cancelled. Raises if the lease is lost or the job times out; then the next attempt
        resumes the watch."""
        with suppress(CancelledError):  # The replacement is committed, so it is too late to cancel.
            self._context.step("watching writers that start")
            began = last_stale = time.monotonic()
            number = self._stale_writes
            while True:
                is_open = self._round()
                now = time.monotonic()
                if self._stale_writes > number:
                    last_stale, number = now, self._stale_writes
                if not is_open and now >= min(last_stale, began + (_LONGEST - 1) * seconds) + seconds:
                    break
                self._writers.remove_late_files()
                self._context.checkpoint()
                time.sleep(POLL_SECONDS)
        self._writers.remove_late_files(announced_before=True)
        return self._found

    @property
    def _stale_writes(self) -> int:
        """How many stale writes were rolled back, or have committed."""
        return len(self._writers.fenced) + len(self._found.stale)

    def committed(self) -> Found:
        """Returns the writes that have committed since, without waiting and without stopping writes in flight."""
        self._judge_archived()
        for item in self._unjudged():
            if item.state == "COMPLETED":
                self._judge_committed(item.requested)
        return self._found

    def _round(self) -> bool:
        """Judges the writes that can be judged now; returns whether the targets of a live write are still unknown."""
        is_open = False
        self._judge_archived()
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

    def _judge_archived(self) -> None:
        """Judges the writes that writers have archived since. The oldest writes are archived first, so there are none
        as long as a write from before the switch is still on the timeline."""
        newest = max(self._before.known, default="")
        first = min((item.requested for item in self._table.instants() if item.action in WATCHED), default="")
        if first <= newest or first == self._first:
            return
        self._first = first
        for commit in past_since(self._table, [newest]).commits:
            instant = commit.write.instant
            if instant not in self._judged and (instant > newest or instant in self._before.in_flight):
                groups: dict[str, dict[str, int]] = {}
                for path, file_id in commit.write.written:
                    # Only the inserted rows are known here, so few writes are proved stale by their number of rows.
                    groups.setdefault(path, {})[file_id] = commit.inserted.get((path, file_id), 0)
                self._judge(instant, Touched(groups, {}))

    def _judge_committed(self, instant: str) -> None:
        touched = self._table.touched(instant)
        if touched is None and self._table.was_archived(instant):
            self._judge_archived()
        else:
            self._judge(instant, touched)

    def _judge(self, instant: str, touched: Touched | None) -> None:
        self._judged.add(instant)
        if touched is None or touched.is_empty:
            return
        match self._switch.verdict(touched):
            case Verdict.STALE:
                logger.warning("%s has committed to replaced file groups", instant)
                self._found.stale.append(instant)
            case Verdict.OPEN:
                self._found.doubtful.append(instant)
            case Verdict.FRESH:
                pass

    def _judge_in_flight(self, item: Instant) -> bool:
        """Judges a write in flight; returns whether its targets are still unknown and its writer is alive."""
        if self._is_requested(item) and item.requested not in self._waited_for:
            # The lock prevents the write from committing meanwhile. The lock is held only once, because the writer may
            # need it to continue.
            self._waited_for.add(item.requested)
            with self._lock.held(for_at_most(LOCK_SECONDS)):
                waited_until = time.monotonic() + HOLD_SECONDS
                while self._is_requested(item) and time.monotonic() < waited_until:
                    time.sleep(POLL_SECONDS)
        if self._is_requested(item):
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
                pass  # The write is judged again when it has committed.
        return False

    def _stop(self, item: Instant) -> None:
        with self._context.undoing(), self._lock.held(for_at_most(LOCK_SECONDS)):
            state = self._table.state_of(item.requested)
            if state is not None and state != "COMPLETED":
                self._judged.add(item.requested)
                self._writers.fence(item.requested)

    def _is_requested(self, item: Instant) -> bool:
        """Returns whether the instant is still requested; such an instant does not name its file groups yet."""
        return self._table.state_of(item.requested) == "REQUESTED"
