"""The writers at work on a table while its file groups are replaced: who is in the way, and what to do then."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from jobs.contract import OnActiveWriters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jobs.hudi.client import WriteClient
    from jobs.hudi.lock import TableLock
    from jobs.hudi.table import Buckets, HudiTable, Instant

logger = logging.getLogger(__name__)

# Actions of those writes that can be rolled back without losing more than a batch that its writer has yet to finish.
INGESTION = frozenset({"commit", "deltacommit"})


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
        fenced: Sequence[str] = (),
    ) -> None:
        self.fenced = list(fenced)
        self._table = table
        self._lock = lock
        self._client = client
        self._policy = policy
        self._retry_conflicts = retry_conflicts

    def in_flight(self, own: str, checkpoint: Callable[[], None]) -> list[Instant]:
        """Others' pending instants; those of dead writers are rolled back first, as any writer would (LAZY)."""
        pending = self._table.pending(without=own)
        dead = [item for item in pending if item.action in INGESTION and self._client.is_dead(item.requested)]
        if dead:
            with self._lock.held(checkpoint):
                for item in dead:
                    logger.warning("rolling back %s: its writer's heartbeat has expired", item.requested)
                    self._client.rollback(item.requested)
        return [item for item in pending if item not in dead]

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
        touched = self._table.buckets_touched(item.requested) or {}
        return any(buckets & replaced.get(partition, set()) for partition, buckets in touched.items())

    def fence_all(self, in_flight: Sequence[Instant], replaced: Buckets) -> None:
        """Rolls back those that would pass in the old layout; the lock must be held."""
        for item in in_flight:
            if self._may_be_fenced(item) and not self.will_retry(item, replaced):
                self.fence(item.requested)

    def fence(self, instant: str) -> None:
        """Rolls a live writer's instant back; its commit fails then. The lock must be held."""
        logger.warning("rolling back %s: its writer would keep to the old file groups", instant)
        self._client.rollback(instant)
        self.fenced.append(instant)

    def sweep(self) -> None:
        """Removes what fenced writers have written since; without a metadata table it would come back one day."""
        for instant in self.fenced:
            self._client.remove_late_files(instant)

    def _may_be_fenced(self, item: Instant) -> bool:
        return self._policy is OnActiveWriters.FENCE and item.action in INGESTION
