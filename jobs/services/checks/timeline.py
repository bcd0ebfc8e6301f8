"""The files of the active timeline, and data files whose instant it does not know."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jobs.contract import JobKind
from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from jobs.protocol.archival_limits import completed_commits, limits
from jobs.services.checks.finding import Cure, Examined, Finding, named

if TYPE_CHECKING:
    from collections.abc import Iterator

# `<requested>_<completed>.<action>` (before table version 8 without the latter), `<requested>.<action>.<state>`.
_FILE = re.compile(r"(?P<requested>\d{14,})(_\d+)?\.(?P<action>[a-z]+)(\.(?P<state>requested|inflight))?")
_WITH_REQUEST = frozenset({"commit", "deltacommit", "replacecommit", "clean"})
# Hudi's archiver begins at 30 by default (`hoodie.keep.max.commits`).
_MANY_COMMITS = 60


def files(examined: Examined) -> Iterator[Finding]:
    """Finds instants whose files cannot be read, are empty or are missing."""
    broken = examined.table.unreadable_instants()
    sizes = examined.table.timeline_files()
    states: dict[str, set[str]] = {}
    actions: dict[str, str] = {}
    for name, size in sizes.items():
        if (match := _FILE.fullmatch(name)) is None:
            continue
        requested, action, state = match["requested"], match["action"], match["state"]
        if action == "inflight" and state is None:  # of a commit before table version 8
            action, state = "commit", "inflight"
        states.setdefault(requested, set()).add(state or "completed")
        if state is None:
            actions[requested] = action
            if size == 0:
                broken |= {requested: f"{name} is empty"}
    if broken:
        yield Finding(
            "timeline-file-broken",
            "Files of the timeline cannot be read",
            {instant: f"{instant} ({reason})" for instant, reason in broken.items()},
            "Readers and writers fail, or take the commit for one without files.",
            "Put the file back from a backup or an earlier version of the object. No job can: the file is the only"
            " record of what the commit wrote.",
        )
    headless = [instant for instant, found in states.items() if found == {"inflight"}]
    headless += [
        instant
        for instant, found in states.items()
        if "completed" in found and "requested" not in found and actions[instant] in _WITH_REQUEST
    ]
    if headless:
        yield Finding(
            "timeline-file-missing",
            "Instants of the timeline lack the file of an earlier state",
            named(headless),
            "A rollback or an execution of them fails; completed ones can still be read.",
            "Somebody removed files from the timeline. Make an empty file `<instant>.<action>.requested` for a write;"
            " that of a plan must come from a backup.",
        )


def unknown_files(examined: Examined) -> Iterator[Finding]:
    """Finds data files of instants that are not on the timeline, though they are later than its start."""
    # Listed first: whatever is in a listing belongs to an instant that began before it.
    listed = examined.files
    instants = examined.table.instants()
    known = {item.requested for item in instants}
    completed = completed_commits(instants)
    if not completed:
        return
    found: dict[str, list[str]] = {}
    for partition, names in listed.items():
        for name in names:
            parsed = parse_base_file_name(name) or parse_log_file_name(name)
            if parsed and parsed.instant not in known and parsed.instant >= completed[0]:
                found.setdefault(parsed.instant, []).append(f"{partition}/{name}" if partition else name)
    undone = examined.client.late_files.rolled_back() if found else {}
    late = [file for instant, files in found.items() if instant in undone for file in files]
    if late:
        yield Finding(
            "files-of-rolled-back-write",
            "Files of writes that were rolled back are there",
            named(late),
            "Their rows count as soon as neither the write nor its rollback is on the timeline; before table version 8"
            " logs on top of a base file that was rolled back hide the rows below.",
            "Their writer went on after its rollback. A repair with `leftovers` removes them.",
            Cure(JobKind.REPAIR, {"leftovers": True}),
        )
    lost = {
        instant: f"{instant} ({len(files)} files)"
        for instant, files in found.items()
        if instant not in undone and not examined.table.was_archived(instant)
    }
    if lost:
        yield Finding(
            "commit-missing",
            "Data files belong to instants that the timeline does not have",
            lost,
            "No reader sees their rows, and nothing removes the files.",
            "Either the file of a commit was deleted: put it back from a backup. Or a writer's rollback left the files:"
            " then write the batch again, and delete them.",
        )


def strays(examined: Examined) -> Iterator[Finding]:
    """Finds data files that no commit names, though their instant is completed."""
    if examined.strays:
        yield Finding(
            "files-without-commit",
            "Data files have the instant of a commit that does not name them",
            named(examined.strays),
            "Whoever lists the storage reads their rows, beside the same rows in other files; who reads by the metadata"
            " table does not.",
            "A task that was tried twice left them, or somebody copied files. Delete them.",
        )


def archival(examined: Examined) -> Iterator[Finding]:
    """Finds a timeline that grows because something keeps Hudi's archiver from it (Hudi #9478)."""
    commits = completed_commits(examined.instants)
    if len(commits) <= _MANY_COMMITS:
        return
    first = next((limit for limit in limits(examined.table, examined.client, {}) if limit.instant < commits[-30]), None)
    reason = f"{first.reason}. {first.remedy}".strip() if first else "Nothing is in the way: no writer archives."
    yield Finding(
        "archival-stuck",
        "The active timeline has grown",
        {"timeline": f"{len(commits)} commits since {commits[0]}"},
        "Each reader and writer reads all of it: they slow down.",
        f"In the way of archiving more: {reason}" if first else reason,
        Cure(JobKind.ARCHIVAL),
    )
