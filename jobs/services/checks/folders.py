"""Finds folders of a table that are partitions for readers who list the storage, but not for the metadata table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.protocol.missing_parts import PARTITION_METADATA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobs.hudi.file_listing import ListedFile
    from jobs.hudi.table import HudiTable

_MOST = 1000


def unlisted_folders(
    table: HudiTable, known: Mapping[str, Mapping[str, ListedFile]]
) -> dict[str, dict[str, ListedFile]]:
    """Returns the entries of partitions that are not among the known ones, by path. Lists each folder above a known
    partition, and at most a thousand unknown folders."""
    if not table.is_listed_by_metadata:
        return {}
    above = {""} | {path[:at] for path in known for at, letter in enumerate(path) if letter == "/"}
    found: dict[str, dict[str, ListedFile]] = {}
    waiting = sorted(above)
    unknown = 0
    while waiting:
        listed = {path: entries for path in waiting if (entries := known.get(path))}
        listed |= table.entries_of([path for path in waiting if path not in listed])
        waiting = []
        for path, entries in listed.items():
            if path not in known and any(name.startswith(PARTITION_METADATA) for name in entries):
                found[path] = dict(entries)
            for name, entry in entries.items():
                below = f"{path}/{name}".lstrip("/")
                if entry.is_folder and not name.startswith(".") and below not in known and below not in above:
                    unknown += 1
                    if unknown <= _MOST:
                        waiting.append(below)
    return found
