"""The writers at work on a table while its file groups are replaced: who is in the way, and what to do then."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from jobs.contract import OnActiveWriters
from jobs.errors import JobError
from jobs.format.instants import wall_clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jobs.hudi.client import WriteClient
    from jobs.hudi.lock import TableLock
    from jobs.hudi.table import Buckets, HudiTable, Instant

logger = logging.getLogger(__name__)

# Actions of those writes that can be rolled back without losing more than a batch that its writer has yet to finish.
INGESTION = frozenset({"commit", "deltacommit"})
# A write that was rolled back so long ago, and has no live heartbeat, has come to its end.
OVER_AFTER = timedelta(days=1)
# Instants that were rolled back under a live writer -> the files that it had announced by then.
Fenced = dict[str, set[str]]


class Writers:
    """`policy` says what may happen to a write in flight.

    `retry_conflicts`: the owner declares that a writer tries again by itself when Hudi finds a conflict
    (`hoodie.write.num.retries.on.conflict.failures`), and then reads the number of buckets anew (`HoodieSparkSqlWriter`
    of Hudi 1.2 writes the batch from the beginning). Its batch does not fail then, wherever it stands.
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

    def in_flight(self, own: str, checkpoint: Callable[[], None]) -> list[Instant]:
        """Others' pending instants; those of dead writers are rolled back first, as any writer would (LAZY)."""
        roll_back_dead(self._table, self._lock, self._client, checkpoint)
        return self._table.pending(without=own)

    def is_dead(self, item: Instant) -> bool:
        return self._client.is_dead(item.requested)

    def in_the_way(self, in_flight: Sequence[Instant], replaced: Buckets) -> list[Instant]:
        """Those beside which the replacement of these buckets cannot be committed."""
        return [item for item in in_flight if not self._may_be_fenced(item) and not self.will_retry(item, replaced)]

    def will_retry(self, item: Instant, replaced: Buckets) -> bool:
        """Whether a write is sure to conflict when it commits after the buckets were replaced, and then tries again.

        Sure is one that is past its `preWrite` (inflight: Hudi remembers by then what was pending) and goes to a bucket
        that is replaced (`BucketIndexConcurrentFileWritesConflictResolutionStrategy`). One that only creates
        partitions or buckets would pass, in the old layout.
        """
        if not self._retry_conflicts or item.state != "INFLIGHT" or item.action not in INGESTION:
            return False
        touched = self._table.touched(item.requested)
        if touched is None:
            return False
        return any(buckets & replaced.get(partition, set()) for partition, buckets in touched.buckets().items())

    def fence_all(self, in_flight: Sequence[Instant], replaced: Buckets) -> None:
        """Rolls back those that would pass in the old layout; the lock must be held."""
        for item in in_flight:
            if self._may_be_fenced(item) and not self.will_retry(item, replaced):
                self.fence(item.requested)

    def fence(self, instant: str) -> None:
        """Rolls a live writer's instant back; its commit fails then. The lock must be held."""
        logger.warning("rolling back %s: its writer would keep to the old file groups", instant)
        # Hudi's rollback deletes the files first: without the lock, of a write that commits meanwhile.
        self._lock.verify()
        # The rollback removes the markers; and in an object store a file appears when it is complete, not when begun.
        announced: set[str] = set()
        with _again_later(instant):
            announced = self._client.marked_files(instant)
        self._client.rollback(instant)
        self.fenced[instant] = announced

    def sweep(self, *, announced_before: bool = False) -> None:
        """Removes what fenced writers have written since; without a metadata table it would come back one day.

        What they had announced before they were fenced takes a look at each file, so it is for once, at the end.
        """
        for instant, announced in self.fenced.items():
            with _again_later(instant):
                late = self._client.marked_files(instant)
                self._client.remove_late_files(instant, late | announced if announced_before else late)

    def _may_be_fenced(self, item: Instant) -> bool:
        return self._policy is OnActiveWriters.FENCE and item.action in INGESTION


def sweep_all(table: HudiTable, client: WriteClient) -> int:
    """Removes what was written by any instant after it was rolled back; returns the number of files.

    The markers stay as long as the writer may be at work: a file that is announced may be yet to come. Without a
    metadata table all files are looked through as well, since readers find files by listing them, and take those of an
    instant that the archive has for committed ones.
    """
    removed = 0
    if "files" not in table.metadata_partitions:
        for instant, files in client.files_of(client.rolled_back()).items():
            with _again_later(instant):
                removed += client.remove_late_files(instant, files)
    for instant, rollback in client.rolled_back_but_writing().items():
        with _again_later(instant):
            removed += client.remove_late_files(instant, client.marked_files(instant))
            is_alive = client.has_heartbeat(instant) and not client.is_dead(instant)
            if not is_alive and table.now() - wall_clock(rollback) > OVER_AFTER:
                client.tidy_up(instant)
    return removed


@contextmanager
def _again_later(instant: str) -> Iterator[None]:
    """Whoever sweeps behind a writer that is at work may stumble over it; there is a next time."""
    try:
        yield
    except JobError as error:
        logger.warning("late files of %s are left for the next time: %s", instant, error.detail)


def roll_back_dead(table: HudiTable, lock: TableLock, client: WriteClient, checkpoint: Callable[[], None]) -> list[str]:
    """Rolls back the instants of dead writers; which those were.

    Who is dead is asked again with the lock in hand: a writer completes its instant under the lock and removes its
    heartbeat right after that, so one that is at this very moment about to commit looks like a dead one before.
    """
    if not dead_writes(table, client):
        return []
    with lock.held(checkpoint):
        dead = dead_writes(table, client)
        for instant in dead:
            logger.warning("rolling back %s: its writer is dead, or gave it up", instant)
            client.rollback(instant)
    return dead


def dead_writes(table: HudiTable, client: WriteClient) -> list[str]:
    """Pending instants of ingestion whose writers are sure to be dead, or to have given them up.

    Sure is a heartbeat that has expired. No heartbeat at all tells something only if the owner declares that writers
    retry conflicts: then they are in the mode (OCC, LAZY) in which there is a heartbeat before there is an instant
    (`BaseHoodieWriteClient.startCommit`), and what they give up for a conflict stays behind without. A writer in
    single-writer mode sends none, and may be alive. Of Flink none is taken for dead: between its checkpoint and its
    commit an instant without a living writer holds acknowledged rows, which the restarted job commits.
    """
    if table.may_have_flink:
        return []
    pending = [item.requested for item in table.pending() if item.action in INGESTION]
    dead = [instant for instant in pending if client.is_dead(instant)]
    if table.declared.writers_retry_conflicts:
        dead += [instant for instant in pending if instant not in dead and not client.has_heartbeat(instant)]
    # One that has completed meanwhile has no heartbeat any more, which looks like an expired one.
    still_pending = {item.requested for item in table.pending()} if dead else set()
    return [instant for instant in dead if instant in still_pending]
