"""Rows that an owner's overwrite or deletion of partitions removed, and that are there again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jobs.format.file_names import parse_base_file_name
from jobs.format.stale_writes import SERVICES, stale_writes
from jobs.services.checks.finding import Examined, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobs.format.stale_writes import Group


def back(examined: Examined) -> Iterator[Finding]:
    """Finds repairs that took rows for astray which an overwrite had removed, and file groups in overwritten partitions
    that are older than the overwrite and that it did not replace: then they were out of use."""
    found = {**_by_repairs(examined), **_by_themselves(examined)}
    if found:
        yield Finding(
            "overwritten-rows-back",
            "Rows that an overwrite or a deletion had removed are there again",
            found,
            "Readers see rows that the owner of the table has removed.",
            "Compare the table with its source, and delete these rows by their keys; a repair that nothing has followed"
            " yet can be rolled back.",
        )


def _by_repairs(examined: Examined) -> dict[str, str]:
    stale = {each.instant for each in stale_writes(replace(each.write, repaired=()) for each in examined.commits)}
    overwritten: dict[Group, str] = {}
    written: dict[str, frozenset[Group]] = {}
    found = {}
    for commit in examined.commits:
        write = commit.write
        if write.operation not in SERVICES:
            overwritten.update(dict.fromkeys(write.replaced, write.instant))
        written[write.instant] = write.written
        for instant in set(write.repaired) - stale:
            if removed := {overwritten[group] for group in written.get(instant, ()) if group in overwritten}:
                found[instant] = f"rows of {instant}, which {max(removed)} had removed, by {write.instant}"
    return found


def _by_themselves(examined: Examined) -> dict[str, str]:
    order = {commit.write.instant: number for number, commit in enumerate(examined.commits)}
    overwrites: dict[str, tuple[str, frozenset[Group]]] = {}
    for commit in examined.commits:
        if commit.write.operation not in SERVICES:
            for partition in {partition for partition, _ in commit.write.replaced}:
                overwrites[partition] = (commit.write.instant, commit.write.replaced)
    found = {}
    for item in examined.slices:
        base = parse_base_file_name(item.base_name)
        if base is None or item.partition not in overwrites:
            continue
        overwrite, replaced = overwrites[item.partition]
        is_before = order.get(base.instant, -1) < order[overwrite] and base.instant < overwrite
        if is_before and item.key not in replaced:
            place = f"{item.partition}/{item.file_id}".lstrip("/")
            found[place] = f"{place} of {base.instant}, which is before {overwrite}"
    return found
