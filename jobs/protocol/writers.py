"""Writers that are active while file groups are replaced: which ones block the commit, how they are handled, and when
the next write is expected."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import pairwise

from jobs.errors import JobError, WritersActiveError, refuse
from jobs.format.instants import wall_clock
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import Checkpoint, TableLock
from jobs.hudi.records import INGESTION, Buckets, Instant
from jobs.hudi.table import HudiTable
from jobs.job_params import OnActiveWriters
from jobs.protocol import abandoned, pending_rollbacks

logger = logging.getLogger(__name__)

# A write that was rolled back this long ago and has no live heartbeat has ended.
ENDED_AFTER = timedelta(days=1)
# The next write is predicted from the gaps between writes in this period.
RECENT = timedelta(minutes=10)
GAPS = 5
NEVER = float("inf")
_POLL_SECONDS = 0.1
# Rolled-back instants of live writers, each with the files that its markers had announced until then.
Fenced = dict[str, set[str]]


class Writers:
    """Decides about the writes in flight on one table; `policy` says what may happen to them. `retry_conflicts`: the
    owner declares that writers retry by themselves when Hudi finds a conflict
    (`hoodie.write.num.retries.on.conflict.failures`). `HoodieSparkSqlWriter` of Hudi 1.2 then reads the number of
    buckets again and writes the batch from the beginning, so the batch does not fail.
    """

    def __init__(
        self,
        table: HudiTable,
        lock: TableLock,
        client: WriteClient,
        policy: OnActiveWriters = OnActiveWriters.WAIT,
        *,
        retry_conflicts: bool = False,
        fenced: Fenced | None = None,
    ) -> None:
        self.fenced: Fenced = dict(fenced or {})
        self._table = table
        self._lock = lock
        self._client = client
        self._policy = policy
        self._retry_conflicts = retry_conflicts

    def in_flight(self, own: str, checkpoint: Checkpoint) -> list[Instant]:
        """Rolls back the instants of dead writers, as every writer does (LAZY), and returns the other pending
        instants."""
        roll_back_dead(self._table, self._lock, self._client, checkpoint)
        return self._table.pending(without=own)

    def is_dead(self, item: Instant) -> bool:
        return self._client.is_dead(item.requested)

    def blocking(self, in_flight: Sequence[Instant], written: Buckets) -> list[Instant]:
        """Returns the writes during which a replacement that writes to these buckets must not be committed. Raises
        RefusedError if one of them is a rollback that nobody finishes."""
        found = [item for item in in_flight if not self._may_be_fenced(item) and not self.will_retry(item, written)]
        refuse(pending_rollbacks.refusals(self._table, self._client, found))
        return found

    def will_retry(self, item: Instant, written: Buckets) -> bool:
        """Returns whether a write that commits after the replacement is certain to conflict and to be retried. A write
        conflicts if it is past its `preWrite` (inflight: Hudi has recorded the pending instants by then) and writes to
        a bucket that the replacement writes to (`BucketIndexConcurrentFileWritesConflictResolutionStrategy`). A write
        that only creates partitions or buckets, or only writes to buckets that a contraction removes, would commit in
        the old layout."""
        if not self._retry_conflicts or item.state != "INFLIGHT" or item.action not in INGESTION:
            return False
        touched = self._table.touched(item.requested)
        if touched is None:
            return False
        return any(buckets & written.get(partition, set()) for partition, buckets in touched.buckets().items())

    def fence_all(self, in_flight: Sequence[Instant], written: Buckets) -> None:
        """Rolls back the writes that would commit in the old layout; the lock must be held."""
        for item in in_flight:
            if self._may_be_fenced(item) and not self.will_retry(item, written):
                self.fence(item.requested)

    def fence(self, instant: str) -> None:
        """Rolls back a live writer's instant, so that its commit fails. The lock must be held."""
        logger.warning("rolling back %s: its writer would write to the old file groups", instant)
        # The markers are read before the rollback removes them, because in an object store a file appears only when it
        # is complete.
        announced: set[str] = set()
        with _retried_later(instant):
            announced = self._client.late_files.marked_files(instant)
        # Hudi's rollback deletes files first. Without the lock the write could commit meanwhile.
        self._client.rollback(instant, self._lock.verify)
        with _retried_later(instant):
            self._client.late_files.keep_announced(instant, announced)
        self.fenced[instant] = announced

    def remove_late_files(self, *, announced_before: bool = False) -> None:
        """Removes files that fenced writers have written since; without a metadata table readers would see them later.
        `announced_before` includes the files announced before the fence. Each announced file has to be checked, so they
        are included only once, at the end."""
        for instant, announced in self.fenced.items():
            with _retried_later(instant):
                late = self._client.late_files.marked_files(instant)
                self._client.late_files.remove(instant, late if announced_before else late - announced)

    def _may_be_fenced(self, item: Instant) -> bool:
        return self._policy is OnActiveWriters.FENCE and item.action in INGESTION


def remove_all_late_files(table: HudiTable, client: WriteClient) -> int:
    """Removes files that any instant wrote after it was rolled back; returns their number.

    The markers stay while the writer may be active, because announced files may still appear. If there is no metadata
    table, all files are checked, because readers list files and take the files of an archived instant for committed
    ones.
    """
    removed = remove_listed_late_files(client) if "files" not in table.metadata_partitions else 0
    for instant, rollback in client.late_files.rolled_back_but_writing().items():
        with _retried_later(instant):
            removed += client.late_files.remove(instant, client.late_files.marked_files(instant))
            is_alive = client.has_heartbeat(instant) and not client.is_dead(instant)
            if not is_alive and table.now() - wall_clock(rollback) > ENDED_AFTER:
                client.tidy_up(instant)
    return removed


def remove_listed_late_files(client: WriteClient) -> int:
    """Removes the files of all instants that were rolled back, with or without markers; returns their number. Lists
    every partition."""
    removed = 0
    for instant, files in client.late_files.files_of(client.late_files.rolled_back()).items():
        with _retried_later(instant):
            removed += client.late_files.remove(instant, files)
    return removed


@contextmanager
def _retried_later(instant: str) -> Iterator[None]:
    """Logs and ignores errors of the removal of late files: an active writer may cause them, and the next cleaning
    tries again."""
    try:
        yield
    except JobError as error:
        logger.warning(
            "the late files of %s could not be removed and are left for the next time: %s", instant, error.detail
        )


def roll_back_dead(table: HudiTable, lock: TableLock, client: WriteClient, checkpoint: Checkpoint) -> list[str]:
    """Rolls back the instants of dead writers; returns these instants.

    The check is repeated with the lock held: a writer completes its instant under the lock and then removes its
    heartbeat, so a writer that is just committing may look dead without the lock.
    """
    if not dead_writes(table, client):
        return []
    with lock.held(checkpoint):
        dead = dead_writes(table, client)
        for instant in dead:
            logger.warning("rolling back %s: its writer is dead or has abandoned it", instant)
            client.rollback(instant, lock.verify)
    return dead


@contextmanager
def alone(
    table: HudiTable,
    lock: TableLock,
    client: WriteClient,
    wait_seconds: float,
    checkpoint: Checkpoint,
    *,
    blocking: Callable[[], Sequence[Instant]] | None = None,
) -> Iterator[None]:
    """Holds the lock at a moment without a write in flight, after dead ones were rolled back. Waits without the lock,
    which the writers need to end. `blocking` returns the instants to wait for, by default the writes in flight. Raises
    WritersActiveError if there was no such moment."""
    deadline = time.monotonic() + wait_seconds
    blocking = blocking or table.pending_writes
    while True:
        roll_back_dead(table, lock, client, checkpoint)
        if not (writing := blocking()):
            with lock.held(checkpoint):
                if not (writing := blocking()):
                    yield
                    return
        if time.monotonic() >= deadline:
            names = ", ".join(map(str, writing))
            raise WritersActiveError(f"After {wait_seconds:.0f} s: still in flight: {names}.")
        checkpoint()
        time.sleep(_POLL_SECONDS)


def dead_writes(table: HudiTable, client: WriteClient) -> list[str]:
    """Returns the pending instants of ingestion whose writers are certainly dead, or have certainly abandoned them;
    and replacecommits that were requested long ago (`abandoned`).

    An expired heartbeat is certain. A missing heartbeat is evidence only if the owner declares that writers retry
    conflicts: then they are in the mode (OCC, LAZY) in which the heartbeat exists before the instant
    (`BaseHoodieWriteClient.startCommit`), and an instant that they abandon after a conflict has none. A writer in
    single-writer mode sends none and may be alive. Instants of Flink never count as dead: between its checkpoint and
    its commit, an instant holds acknowledged rows, which a restarted job commits.
    """
    if table.may_have_flink:
        return []
    pending = [item.requested for item in table.pending_writes()]
    dead = [instant for instant in pending if client.is_dead(instant)]
    if table.declared.writers_retry_conflicts:
        dead += [instant for instant in pending if instant not in dead and not client.has_heartbeat(instant)]
    dead += [instant for instant in abandoned.requests(table) if instant not in dead]
    # An instant that has completed meanwhile has no heartbeat either, so completed ones are removed.
    still_pending = {item.requested for item in table.pending()} if dead else set()
    return [instant for instant in dead if instant in still_pending]


def quiet_seconds(writes: Sequence[tuple[datetime, datetime]], now: datetime) -> float:
    """Returns the seconds since the last write completed, `NEVER` if there was none."""
    return max((now - max(end for _, end in writes)).total_seconds(), 0.0) if writes else NEVER


def seconds_until_next_write(writes: Sequence[tuple[datetime, datetime]], now: datetime) -> float:
    """Returns the seconds until the next write may start, `NEVER` if none is expected. `writes` are start and
    completion of completed writes, in any order; none may be in flight at `now`. Until the shortest of the recent gaps
    has passed, the result is the rest of that gap. After twice the longest gap the writer counts as stopped. In between
    the result is zero, because a write may start at any moment."""
    recent = sorted(write for write in writes if now - write[1] <= RECENT)
    gaps = [(after[0] - before[1]).total_seconds() for before, after in pairwise(recent)][-GAPS:]
    if not gaps:
        return NEVER
    quiet_for = quiet_seconds(recent, now)
    if quiet_for < min(gaps):
        return min(gaps) - quiet_for
    return NEVER if quiet_for > 2 * max(*gaps, 0.5) else 0.0
