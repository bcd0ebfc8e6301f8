"""Hudi's partition TTL (`PartitionTTLStrategy`, 1.2.0): which partitions have expired, and their deletion.

Hudi's `managePartitionTTL` does both at once, but leaves its requested instant behind when nothing has expired, counts
a deletion that a pending table service prevents as done, and splits selected partitions at commas in their names. So
this module calls the strategy alone, and gives the exact partitions to `deletePartitions`.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobs.format.stale_writes import Group
from jobs.hudi.client_part import ClientPart
from jobs.hudi.jvm import translated
from jobs.job_params import TtlStrategy

OPERATION = "DELETE_PARTITION"

_PACKAGE = "org.apache.hudi.table.action.ttl.strategy"
_CLASSES = {
    TtlStrategy.KEEP_BY_TIME: "KeepByTimeStrategy",
    TtlStrategy.KEEP_BY_CREATION_TIME: "KeepByCreationTimeStrategy",
}
# `KeepByTimeStrategy` multiplies the days to milliseconds in 32 bits: 25 to 49 days become a negative number, so that
# nothing expires, and 50 days become seven hours.
_MOST_DAYS = 24


def keeping(strategy: TtlStrategy, days: int) -> dict[str, str]:
    """Returns the options of a client whose strategy finds all partitions that are older than `days`. If `days` is more
    than 24, it also finds younger ones."""
    return {
        "hoodie.partition.ttl.strategy.class": f"{_PACKAGE}.{_CLASSES[strategy]}",
        "hoodie.partition.ttl.management.strategy.type": strategy.value,
        "hoodie.partition.ttl.strategy.days.retain": str(min(days, _MOST_DAYS)),
        "hoodie.partition.ttl.strategy.partition.selected": "",
        # A smaller limit would choose arbitrary partitions.
        "hoodie.partition.ttl.strategy.max.delete.partitions": str(2**31 - 1),
    }


class PartitionTtl(ClientPart):
    """Partition TTL through a client with the options above."""

    def expired(self, now: str) -> list[str]:
        """Returns the partitions that have expired at the instant `now` according to the strategy."""
        with translated("looking for expired partitions"):
            meta, context = self._table.meta, self._jvm.engine_context
            meta.reloadActiveTimeline()
            table = self._jvm.hudi.table.HoodieSparkTable.create(self._config, context, meta)
            strategies = self._jvm.hudi.table.action.ttl.strategy.HoodiePartitionTTLStrategyFactory
            strategy = strategies.createStrategy(table, self._config.getProps(), now)
            return [str(partition) for partition in strategy.getExpiredPartitionPaths()]

    def created(self, partition: str) -> str:
        """Returns the instant of the commit that created the partition's folder; empty if unknown."""
        with translated(f"reading the metadata of partition '{partition}'"):
            folder = self._jvm.hudi.storage.StoragePath(f"{self._table.base_path}/{partition}")
            stored = self._jvm.hudi.common.model.HoodiePartitionMetadata(self._table.storage, folder)
            found = stored.readPartitionCreatedCommitTime()
            return str(found.get()) if found.isPresent() else ""

    def delete(self, partitions: Sequence[str], instant: str) -> set[Group]:
        """Turns the requested replacecommit `instant` into an inflight one that deletes these partitions. Returns the
        file groups that it must replace. The lock must be held.

        Fails when a table service is pending on one of them.
        """
        with translated("deleting partitions"):
            paths = self._jvm.java.java.util.ArrayList()
            for partition in partitions:
                paths.add(partition)
            result = self._client.deletePartitions(paths, instant)
            replaced = self._jvm.read(result.getPartitionToReplaceFileIds())
        return {(partition, file_id) for partition, ids in replaced.items() for file_id in ids}
