"""Finds rows that are visible again although the owner has overwritten or deleted their partition."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jobs.format.file_names import parse_base_file_name
from jobs.format.stale_writes import REPAIRS_KEY, SERVICES, stale_writes
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi.commit_order import misdated_instants
from jobs.hudi.records import OVERWRITES
from jobs.services import later_overwrites
from jobs.services.checks.finding import Examined, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobs.format.stale_writes import Group


def back(examined: Examined) -> Iterator[Finding]:
    """Finds repairs and executed clustering plans that brought back rows which an overwrite had removed. Also finds
    visible file groups that are older than an overwrite of their partition, and that it did not replace because they
    were out of use at that time. If a write was in flight when the overwrite began, its rows are correct although the
    overwrite did not replace their file groups. Completion times on the timeline show such writes; without completion
    times the finding mentions the possibility."""
    found = {**_by_repairs(examined), **_by_rewrites(examined), **_by_themselves(examined)}
    if found:
        yield Finding(
            "overwritten-rows-back",
            "Rows that an overwrite or a deletion had removed are there again",
            found,
            "Readers see rows that the owner of the table has removed.",
            "Compare the table with its source, and delete these rows by their keys; a repair can be rolled back as "
            "long as it is the latest commit. Rows of a write that was in flight when the overwrite began are right.",
        )


def _by_repairs(examined: Examined) -> dict[str, str]:
    stale = {each.instant for each in stale_writes(replace(each.write, repaired=()) for each in examined.commits)}
    overwritten: dict[Group, str] = {}
    written: dict[str, frozenset[Group]] = {}
    before_rows: dict[str, set[str]] = {}
    found = {}
    for commit in examined.commits:
        write = commit.write
        if write.operation not in SERVICES:
            overwritten.update(dict.fromkeys(write.replaced, write.instant))
        written[write.instant] = write.written
        repairs = set(filter(None, commit.extra.get(REPAIRS_KEY, "").split(",")))
        repaired = set(write.repaired) - stale
        for instant in repairs | repaired:
            removed = {overwritten[group] for group in written.get(instant, ()) if group in overwritten}
            # An overwrite may come between the commit in which a repair writes rows and its last commit, which removes
            # the misplaced copies. So what was removed is noted at the first of these commits.
            if instant in repairs and write.written and not write.replaced:
                before_rows[instant] = removed
            if instant in repaired and (removed := before_rows.get(instant, removed)):
                found[instant] = f"rows of {instant}, which {max(removed)} had removed, by {write.instant}"
    return {**found, **_by_late_repairs(examined)}


def _by_late_repairs(examined: Examined) -> dict[str, str]:
    """Finds repairs of stale writes whose partitions were overwritten after these writes, as earlier versions of this
    service made them."""
    written = {commit.write.instant: {path for path, _ in commit.write.written} for commit in examined.commits}
    found: dict[tuple[str, str], str] = {}
    for number, commit in enumerate(examined.commits):
        write = commit.write
        if write.operation in OVERWRITES:
            gone = later_overwrites.overwritten_by(commit, {path for _, path in found})
            found = {place: text for place, text in found.items() if place[1] not in gone}
        if not (repairs := set(filter(None, commit.extra.get(REPAIRS_KEY, "").split(",")))) or write.replaced:
            continue
        places = later_overwrites.since(examined.commits[:number], repairs)
        for path in written[write.instant]:
            of_path = {(instant, path) for instant in repairs if path in written.get(instant, ())}
            # The rows of a write that no overwrite followed are right.
            if of_path and of_path <= places.keys():
                first = min(of_path)
                found[first] = f"rows of {first[0]} in '{path}', which {places[first]} had removed, by {write.instant}"
    return {f"{instant} {path}".rstrip(): text for (instant, path), text in found.items()}


def _by_rewrites(examined: Examined) -> dict[str, str]:
    """Finds visible file groups of rewrites (such as an executed clustering plan) whose rows an overwrite has removed.
    Either the rewrite completed after the overwrite had replaced the same file groups, or the overwrite completed later
    and did not know of the rewrite. Hudi (1.2) lets such a commit fail only if its writer has concurrency control."""
    overwritten: dict[Group, str] = {}
    rewritten: dict[Group, str] = {}
    written: dict[str, frozenset[Group]] = {}
    back: dict[Group, tuple[str, str]] = {}
    for commit in examined.commits:
        write = commit.write
        if REPAIRS_KEY in commit.extra:
            continue
        is_service = write.operation in SERVICES
        earlier = overwritten if is_service else rewritten
        for group in write.replaced & earlier.keys():
            pair = (write.instant, earlier[group]) if is_service else (earlier[group], write.instant)
            back.update({each: pair for each in written.get(pair[0], write.written) if each[0] == group[0]})
        for group in write.replaced & back.keys():
            pair = back.pop(group)
            if is_service:
                back.update({each: pair for each in write.written if each[0] == group[0]})
        if is_service:
            rewritten.update(dict.fromkeys(write.replaced, write.instant))
            written[write.instant] = write.written
        else:
            overwritten.update(dict.fromkeys(write.replaced, write.instant))
            # Non-blocking writers give new file groups the ids of earlier ones.
            for group in write.written & overwritten.keys():
                del overwritten[group]
    found = {}
    for item in examined.slices:
        if item.key in back:
            rewrite, overwrite = back[item.key]
            place = f"{item.partition}/{item.file_id}".lstrip("/")
            found[place] = f"{place} of {rewrite}, whose rows {overwrite} had removed"
    return found


def _by_themselves(examined: Examined) -> dict[str, str]:
    order = {commit.write.instant: number for number, commit in enumerate(examined.commits)}
    completed = _known_completions(examined)
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
        was_in_flight = completed.get(base.instant, "") > overwrite
        if is_before and item.key not in replaced and not was_in_flight:
            place = f"{item.partition}/{item.file_id}".lstrip("/")
            doubt = "" if base.instant in completed else ", or was in flight when that began"
            found[place] = f"{place} of {base.instant}, which is before {overwrite}{doubt}"
    return found


def _known_completions(examined: Examined) -> dict[str, str]:
    """Returns the completion times by instant, if they can be compared with instants."""
    if examined.table.version < WITH_COMPLETION_TIMES:
        return {}
    misdated = misdated_instants(examined.table, examined.table.clock.frame)
    completed = {commit.write.instant: commit.completed for commit in examined.commits}
    return {instant: time for instant, time in completed.items() if instant not in misdated}
