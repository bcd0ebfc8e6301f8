"""Checks of the files on the active timeline, and of data files whose instant is not on it."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from jobs.contract import JobKind
from jobs.errors import JobError
from jobs.format.appearance import appearances, inversions
from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from jobs.hudi.records import COMPLETED_AS
from jobs.kinds.archival import ArchivalParams
from jobs.kinds.results import Cure
from jobs.protocol import overtaken_instants
from jobs.protocol.archival_limits import completed_commits, limits
from jobs.services.checks.finding import Examined, Finding, named

if TYPE_CHECKING:
    from collections.abc import Iterator

# `<requested>_<completed>.<action>` (before table version 8 `<requested>.<action>`), `<requested>.<action>.<state>`.
_FILE = re.compile(r"(?P<requested>\d{14,})(_\d+)?\.(?P<action>[a-z]+)(\.(?P<state>requested|inflight))?")
# The names of completed writes from table version 8 on.
_WRITE = re.compile(r"(?P<requested>\d{14,})_(?P<completed>\d{14,})\.(commit|deltacommit|replacecommit)")
_WITH_REQUEST = frozenset({"commit", "deltacommit", "replacecommit", "clean"})
# Hudi's archiver begins at 30 by default (`hoodie.keep.max.commits`).
_MANY_COMMITS = 60


def files(examined: Examined) -> Iterator[Finding]:
    """Finds instants whose files are unreadable, empty or missing, and instants that were rolled back after they had
    completed."""
    with suppress(JobError):
        # Instants that are read here, and cached, need not be read again by `unreadable_instants`.
        _ = examined.commits
    broken = examined.table.unreadable_instants()
    listed = examined.timeline_files
    states: dict[str, set[str]] = {}
    actions: dict[str, str] = {}
    at_once: dict[str, set[str]] = {}
    completions: Counter[tuple[str, str]] = Counter()
    for name, file in listed.items():
        if (match := _FILE.fullmatch(name)) is None:
            continue
        requested, action, state = match["requested"], match["action"], match["state"]
        if action == "inflight" and state is None:  # of a commit before table version 8
            action, state = "commit", "inflight"
        if state is None and file.bytes == 0:
            broken |= {requested: f"{name} is empty"}
        if action == "savepoint":  # A savepoint has the instant of its commit.
            continue
        states.setdefault(requested, set()).add(state or "completed")
        at_once.setdefault(requested, set()).add(COMPLETED_AS.get(action, action))
        if state is None:
            actions[requested] = action
            completions[requested, action] += 1
    if broken:
        yield Finding(
            "timeline-file-broken",
            "Files of the timeline cannot be read",
            {instant: f"{instant} ({reason})" for instant, reason in broken.items()},
            "Readers and writers fail, or treat the commit as one without files.",
            "Put the file back from a backup or an earlier version of the object. No job can repair this, because the "
            "file is the only record of what the commit wrote. If the disk was full then, the batch has failed: stop "
            "the writers, delete the file, so that the instant is pending again, and roll that back.",
        )
    # Hudi reads only one of several completed files. Before table version 8 there is only the last one, which has
    # overwritten the others.
    if twice := {instant: f"{instant} ({number} times)" for (instant, _), number in completions.items() if number > 1}:
        yield Finding(
            "instant-completed-twice",
            "Instants were completed more than once",
            twice,
            "Each runner has written the rows, so readers see them twice.",
            "Two runners executed one plan: let only one run table services. Restore a savepoint; or, with all writers"
            " stopped, delete the completion and the files of one of them, and build the metadata table anew.",
        )
    if shared := {time: f"{time} ({' and '.join(sorted(each))})" for time, each in at_once.items() if len(each) > 1}:
        yield Finding(
            "instants-share-time",
            "Instants of different actions have the same time",
            shared,
            "The metadata table has one commit for each time, so the later action has undone there what the earlier "
            "one had written: readers that use the metadata table miss new files, or look for deleted ones.",
            "Clients that give instants without a common lock made them. Give all writers and services the same lock, "
            "stop them, and build the metadata table anew. If that is refused, because a clean has deleted files that "
            "are still listed there, make sure that newer files have their rows, and delete `.hoodie/metadata` first. "
            "The finding stays until these instants are archived.",
        )
    headless = {instant for instant, found in states.items() if found == {"inflight"}}
    headless |= {
        instant
        for instant, action in actions.items()
        if action in _WITH_REQUEST and not states[instant] >= {"requested", "inflight"}
    }
    completed = {item.requested: item.completed for item in examined.instants if item.state == "COMPLETED"}
    undone = {
        instant: by
        for instant, by in examined.table.rollbacks().items()
        # A plan may be rolled back and then executed again.
        if instant in completed and (instant in headless or by > completed[instant])
    }
    if undone:
        yield Finding(
            "completed-instant-rolled-back",
            "Instants were rolled back after they had completed",
            {instant: f"{instant} by {by}" for instant, by in undone.items()},
            "The completed instant still counts, but its files are gone, or the metadata table no longer lists them. "
            "Readers skip the files that it replaced as well, so they see none of its rows.",
            "A writer rolled back a replacement that it had seen pending (for example by "
            "`hoodie.clustering.rollback.pending.replacecommit.on.conflict`). Stop cleaning and the writers: the "
            "replaced files still have the rows. If the replacement's own files still exist, a metadata table that is "
            "built anew finds them; else restore a savepoint.",
        )
    if lacking := headless - undone.keys():
        yield Finding(
            "timeline-file-missing",
            "Instants of the timeline lack the file of an earlier state",
            named(lacking),
            "Rolling such an instant back or executing it fails; completed ones can still be read.",
            "Somebody removed files from the timeline. For a write, create an empty file "
            "`<instant>.<action>.requested`; the file of a plan must come from a backup.",
        )


def completion_times(examined: Examined) -> Iterator[Finding]:
    """Finds instants that hide archived commits whose files are in use (`overtaken_instants`)."""
    table = examined.table
    found = overtaken_instants.overtaken(table, thoroughly=True)
    if files := overtaken_instants.hidden_files(table, found):
        stuck = overtaken_instants.left(table, found)
        yield Finding(
            "completion-times-unknown",
            "Instants of the active timeline are older than archived commits",
            {item.requested: f"{item}; {len(files)} files, such as {files[0]}" for item in found.instants},
            "Hudi takes the archived commits after them for pending. Logs of these commits count as the latest of "
            "their file groups, so deleted rows and old values come back to readers, and compactions make that last. "
            "After a commit with a savepoint, the rows of base files and logs vanish.",
            f"{overtaken_instants.advice(stuck)} "
            * bool(stuck)
            + "Hudi's archiver leaves such instants. Each job that writes to the table archives those that are "
            "complete. If a writer wrote or compacted before, compare its rows with their source.",
            None if stuck else Cure(kind=JobKind.ARCHIVAL),
        )


def order(examined: Examined) -> Iterator[Finding]:
    """Finds instants that appeared after another one had completed, although their time is earlier, and commits that
    completed in the same millisecond."""
    listed = examined.timeline_files
    found = inversions(appearances({name: file.modified_ms for name, file in listed.items()}))
    if found:
        yield Finding(
            "instants-out-of-order",
            "Instants have earlier times than those that completed before them",
            {each.instant: str(each) for each in found},
            "Hudi orders by these times: an older row replaces a newer one, and a compaction may miss rows.",
            "The clocks of writers differ, or their time zones, and the table's timeline is in local time. Let all"
            " writers run in one zone with synchronized clocks, and compare the rows with their source.",
        )
    if hidden := dict(_hidden_logs(examined)):
        yield Finding(
            "logs-in-older-slices",
            "Logs count for older file slices than those to which they were written",
            hidden,
            "Readers skip these logs, so they see none of the rows, and a compaction leaves them out.",
            "The completion time of a commit says to which slice its logs belong (table version 8 and later). The clock"
            " was set back during the commit, or another machine with a wrong clock completed it. Stop all writers and "
            "services. If nothing was compacted since, rename the file of the completed commit on the timeline, so "
            "that the time behind the `_` is right; else write its rows again.",
        )
    at: dict[str, list[str]] = {}
    for name in sorted(listed):
        if match := _WRITE.fullmatch(name):
            at.setdefault(match["completed"], []).append(match["requested"])
    if together := {time: f"{' and '.join(each)} at {time}" for time, each in at.items() if len(each) > 1}:
        yield Finding(
            "completion-times-equal",
            "Commits have the same completion time",
            together,
            "An incremental query or a stream that has read one of them before the other completed goes on after this "
            "time, and never reads the other.",
            "Writers without a common lock made them, or a clock that was set back. Give all writers the same lock, and"
            " let consumers read these commits again.",
        )


def _hidden_logs(examined: Examined) -> Iterator[tuple[str, str]]:
    """Yields commits that completed before the base files of slices to which they wrote logs, with one of these
    slices (`HoodieFileGroup.getBaseInstantTime`, 1.2.0). Logs with the instant of their slice, as before table version
    8, belong to that slice."""
    for commit in examined.commits:
        instant, completed = commit.write.instant, commit.completed
        if completed >= instant:
            continue
        for partition, groups in commit.files.items():
            base_files = [found for name in examined.files.get(partition, ()) if (found := parse_base_file_name(name))]
            for file_id, paths in groups.items():
                logs = [parse_log_file_name(path.rpartition("/")[2]) for path in paths]
                bases = [each.instant for each in base_files if each.file_id == file_id and each.instant <= instant]
                if any(log and log.instant == instant for log in logs) and (base := max(bases, default="")) > completed:
                    yield instant, f"{instant} completed at {completed}, before {base} of its slice in '{partition}'"


def lost_commits(examined: Examined) -> Iterator[Finding]:
    """Finds data files whose instants are unknown, although these are later than the first instant of the timeline.

    If logs have the instant of their file slice, its first writer may have been rolled back long ago. So such logs are
    left out if a commit names a log of the same slice.
    """
    found = dict(examined.files_of_unknown_instants)
    if found and examined.table.has_logs_named_by_slice:
        written = {_slice(path) for commit in examined.commits for path in commit.sizes} - {None}
        rest = {instant: [path for path in paths if _slice(path) not in written] for instant, paths in found.items()}
        found = {instant: paths for instant, paths in rest.items() if paths}
    undone = examined.client.late_files.rolled_back() if found else {}
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
            "No reader sees their rows, and nothing removes the files. If such an instant had replaced other files,"
            " readers see the rows of these again.",
            "If the file of a commit was deleted from the timeline, put it back from a backup. If a writer's rollback "
            "left the files, write the batch again, and delete them.",
        )


def _slice(path: str) -> tuple[str, str, str] | None:
    """Returns partition, file id and instant in the name of a log."""
    partition, _, name = path.rpartition("/")
    parsed = parse_log_file_name(name)
    return (partition, parsed.file_id, parsed.instant) if parsed else None


def unknown_files(examined: Examined) -> Iterator[Finding]:
    """Finds data files of instants that were rolled back."""
    found = examined.files_of_unknown_instants
    undone = examined.client.late_files.rolled_back() if found else {}
    late = [file for instant, files in found.items() if instant in undone for file in files]
    if late:
        yield Finding(
            "files-of-rolled-back-write",
            "Files of writes that were rolled back still exist",
            named(late),
            "Readers see their rows once both the write and its rollback are archived. Before table version 8, logs of "
            "a rolled-back base file hide the rows of the previous base file.",
            "The writer of these files went on after its rollback. A repair with `leftovers` removes them.",
            Cure(kind=JobKind.REPAIR, params={"leftovers": True}),
        )


def strays(examined: Examined) -> Iterator[Finding]:
    """Finds data files of completed instants that no commit names, and copies of older ones."""
    if examined.strays:
        yield Finding(
            "files-without-commit",
            "Data files have the instant of a commit that does not name them",
            named(examined.strays),
            "Readers that list the storage see the rows of these files twice, because other files have the same rows. "
            "Readers that use the metadata table do so only if it lists these files.",
            "A task that was tried twice or a second runner of the same plan left these files, or somebody copied "
            "them. Delete them.",
        )


def archival(examined: Examined) -> Iterator[Finding]:
    """Finds a timeline that grows because something prevents its archival (Hudi #9478)."""
    commits = completed_commits(examined.instants)
    if len(commits) <= _MANY_COMMITS:
        return
    first = next(
        (limit for limit in limits(examined.table, examined.client, ArchivalParams()) if limit.instant < commits[-30]),
        None,
    )
    reason = f"{first.reason}. {first.remedy}".strip() if first else "Nothing prevents archiving: no writer archives."
    yield Finding(
        "archival-stuck",
        "The active timeline has grown",
        {"timeline": f"{len(commits)} commits since {commits[0]}"},
        "Readers and writers get slower, because each of them reads the whole timeline.",
        f"This prevents more archiving: {reason}" if first else reason,
        Cure(kind=JobKind.ARCHIVAL),
    )
