"""Hashing configs that are valid for Hudi although their replacecommit never completed."""

from __future__ import annotations

from functools import partial

from jobs.hudi import hashing_config
from jobs.hudi.jvm import translated
from jobs.hudi.records import INGESTION, REPLACE
from jobs.hudi.table import HudiTable


def dangling(table: HudiTable) -> list[str]:
    """Returns the instants of configs that are valid for Hudi although their replacecommit never completed. Those whose
    replacecommit may have been in a history that is gone are left out: files and writers follow them."""
    suspects = hashing_config.committed(table)
    if not suspects:
        return []
    completed = {item.requested for item in table.instants() if item.state == "COMPLETED"}
    unknown = [item for item in suspects if item not in completed and not table.was_archived(item)]
    return [item for item in unknown if not _may_be_forgotten(table, item)]


def _may_be_forgotten(table: HudiTable, instant: str) -> bool:
    """Returns whether the table is older than its active timeline, but has no history of the time of this instant:
    somebody has removed the history, or copied the table without it; or a part of it is damaged."""
    items = table.instants()
    saved = {item.requested for item in items if item.action == "savepoint"}
    writes = [item.requested for item in items if item.action in INGESTION or item.action == REPLACE]
    first = min(set(writes) - saved, default="")
    if instant >= first:
        return False
    if any(requested <= instant for requested, _ in table.archived()) and not table.damage_of_history():
        return False
    return any(made < first for made in map(partial(_made_by, table), table.partitions()) if made)


def _made_by(table: HudiTable, partition: str) -> str | None:
    """Returns the instant that made a partition; None if nothing names it."""
    folder = "/".join(filter(None, (table.base_path.rstrip("/"), partition)))
    hudi = table.jvm.hudi
    with translated("reading who made a partition"):
        # The file may be a Parquet file (`hoodie.partition.metafile.use.base.format`).
        metadata = hudi.common.model.HoodiePartitionMetadata(table.storage, hudi.storage.StoragePath(folder))
        found = metadata.readPartitionCreatedCommitTime()
        return str(found.get()) if found.isPresent() else None
