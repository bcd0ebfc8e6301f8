"""Compares the buckets of consistent hashing with the file groups of a table.

A deletion or an overwrite of a partition replaces its file groups, but not its hashing metadata (Hudi 1.2.0, #7634).
Writers go on with the file ids in the metadata, and no reader sees their rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.format.consistent_hashing import DamagedMetadataError
from jobs.hudi import hashing_metadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.format.stale_writes import Group
    from jobs.hudi.records import Commit
    from jobs.hudi.table import HudiTable


def out_of_use(table: HudiTable, commits: Sequence[Commit]) -> dict[str, dict[str, str]]:
    """Returns the buckets in force whose file groups were replaced: by partition, their file ids and the replacing
    instants. Partitions are left out if their metadata are in doubt or cannot be read."""
    if not table.has_consistent_hashing():
        return {}
    replaced = {group: commit.write.instant for commit in commits for group in commit.write.replaced}
    found = {}
    for partition in sorted({partition for partition, _ in replaced}):
        ids = _ids(table, partition) or ()
        if gone := {each: by for each in ids if (by := replaced.get((partition, each)))}:
            found[partition] = gone
    return found


def groups_without_range(table: HudiTable) -> set[Group]:
    """Returns the visible file groups that are no buckets of their partitions. Partitions are left out if their
    metadata are in doubt or cannot be read."""
    known = {partition: _ids(table, partition) for partition in {item.partition for item in table.file_slices()}}
    return {
        item.key
        for item in table.file_slices()
        if (ids := known[item.partition]) is not None and item.file_id not in ids
    }


def _ids(table: HudiTable, partition: str) -> Sequence[str] | None:
    """Returns the file ids of a partition's buckets; None if it is in doubt which metadata Hudi follows."""
    versions = hashing_metadata.versions(table, partition)
    if versions.in_force is None or versions.uncommitted:
        return None
    try:
        return hashing_metadata.read(table, partition, versions.in_force).file_ids
    except DamagedMetadataError:
        return None
