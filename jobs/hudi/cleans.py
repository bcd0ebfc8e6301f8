"""Files that completed cleans have deleted, according to their `HoodieCleanMetadata` (Hudi 1.2)."""

from __future__ import annotations

import json

from jobs.errors import FileMissingError
from jobs.hudi.jvm import reread, translated
from jobs.hudi.table import HudiTable


class Cleaned:
    """The files of the instant `since` and of later ones that cleans have deleted."""

    def __init__(self, table: HudiTable, since: str) -> None:
        self._files, self._partitions = _deleted(table)
        self._archived = _last_archived(table, since) or ""

    def may_have(self, path: str, partition: str, instant: str) -> bool:
        """Returns whether a clean may have deleted this file of `instant`. An archived clean may have deleted any
        file."""
        known = path.rpartition("/")[2] in self._files or partition in self._partitions
        return known or instant < self._archived


@reread
def _deleted(table: HudiTable) -> tuple[set[str], set[str]]:
    """Returns the names of files and the paths of whole partitions that the cleans of the active timeline deleted."""
    files: set[str] = set()
    partitions: set[str] = set()
    with translated("reading the cleans", expected=FileMissingError):
        timeline = table.meta.reloadActiveTimeline()
        for item in table.jvm.items(timeline.getCleanerTimeline().filterCompletedInstants().getInstantsAsStream()):
            read = json.loads(str(timeline.readCleanMetadata(item).toString()))["partitionMetadata"]
            for partition, each in read.items():
                files |= {path.rpartition("/")[2] for path in each["successDeleteFiles"]}
                if each.get("isPartitionDeleted"):
                    partitions.add(partition)
    return files, partitions


def _last_archived(table: HudiTable, since: str) -> str | None:
    """Returns the last archived clean that is later than `since`; None if there is none."""
    with translated("reading the archived timeline"):
        last = table.meta.getArchivedTimeline(since).getCleanerTimeline().lastInstant()
        return str(last.get().requestedTime()) if last.isPresent() else None
