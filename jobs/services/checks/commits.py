"""Compares the files and rows that completed instants name in their metadata with the files and rows that exist."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jobs.errors import JobError
from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from jobs.format.stale_writes import REPAIRS_KEY
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi import base_files
from jobs.hudi.cleans import Cleaned
from jobs.hudi.commit_order import misdated_instants
from jobs.hudi.plans import COMPACTION_ACTIONS, compactions_done, held_by_plans
from jobs.protocol.missing_parts import PARTITION_METADATA
from jobs.protocol.unplanned_logs import may_miss_logs, missed_logs
from jobs.services.checks.finding import Examined, Finding
from jobs.table_errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobs.format.stale_writes import Group
    from jobs.hudi.records import Commit

_REWRITES = frozenset({"CLUSTER", "BUCKET_RESCALE"})
"""Operations that copy exactly the rows of the file groups that they replace."""


@dataclass
class _Slice:
    """The latest slice of a file group according to the active timeline. `base` is the path of its base file, and
    `since` the instant that wrote it; `base` is None if that instant is archived. `rows` is the number of rows in the
    base file; None if its commit does not say it. `logs` maps paths to the instants that wrote them."""

    base: str | None = None
    since: str = ""
    rows: int | None = None
    logs: dict[str, str] = field(default_factory=dict)


def files(examined: Examined) -> Iterator[Finding]:
    """Finds missing files: completed instants name them as part of the latest slices, but the storage does not have
    them.

    Files of replaced file groups and files that a clean has deleted are left out, even if the commit that ended their
    slice is archived. For example, a replacement may begin before a write to its file groups and complete after it;
    then it is archived before that write.
    """
    slices = _slices(examined.commits, examined.table.version)
    for group in {group for commit in examined.commits for group in commit.write.replaced}:
        slices.pop(group, None)
    missing = {
        path: (partition, instant)
        for (partition, _), item in slices.items()
        for path, instant in (*([(item.base, item.since)] if item.base else []), *item.logs.items())
        if path.rpartition("/")[2] not in examined.files.get(partition, set())
    }
    if missing and (withdrawn := _withdrawn_resizes(examined)):
        named = {path: parse_log_file_name(path.rpartition("/")[2]) for path in missing}
        missing = {
            path: written
            for path, written in missing.items()
            if not ((log := named[path]) and log.instant in withdrawn)
        }
    cleaned = Cleaned(examined.table, min(instant for _, instant in missing.values())) if missing else None
    gone = {
        path: f"{path} of {instant}"
        for path, (partition, instant) in missing.items()
        if not (cleaned and cleaned.may_have(path, partition, instant))
    }
    if gone:
        yield Finding(
            "commit-files-gone",
            "Files that completed commits have written are gone",
            gone,
            "Readers miss the rows of these files or fail, whether they use the metadata table or list the storage.",
            "Something deleted these files: a rollback of a commit that had completed, or a runner that executed the "
            "same plan once more. Put them back, or restore a savepoint. Let nothing be cleaned before, because the "
            "files that they replaced may still exist.",
        )


def _withdrawn_resizes(examined: Examined) -> set[str]:
    """Returns the rolled-back instants of a table with consistent hashing, except those that are on the timeline again.
    While the plan of a resize is pending, writers put each row both into the old file groups and into those of the
    plan. The logs of the latter have the plan's instant in their names (`FlinkConsistentBucketUpdateStrategy`). If the
    plan is rolled back, no reader reads these logs, and a repair with `leftovers` removes them."""
    if not examined.table.has_consistent_hashing():
        return set()
    return set(examined.table.rollbacks()) - {item.requested for item in examined.table.instants()}


def hidden(examined: Examined) -> Iterator[Finding]:
    """Finds base files that readers who list the storage do not see, although completed commits of the active timeline
    name them as part of the latest slices. A pending compaction hides the base file of a slice from this view, but not
    from readers. Partitions without metadata have a check of their own (`table_parts.partition_metadata`)."""
    slices = _slices(examined.commits, examined.table.version)
    seen = {item.key for item in examined.listed_slices if item.base_file}
    replaced = {group for commit in examined.commits for group in commit.write.replaced}
    partitions = {
        partition: names
        for partition, names in examined.files.items()
        if any(name.startswith(PARTITION_METADATA) for name in names)
    }
    unseen = {
        group: item
        for group, item in slices.items()
        if item.base
        and group not in seen
        and group not in replaced
        and item.base.rpartition("/")[2] in partitions.get(group[0], ())
    }
    planned = held_by_plans(examined.table, COMPACTION_ACTIONS) if unseen else {}
    found = {
        item.base: f"{item.base} of {item.since}"
        for group, item in unseen.items()
        if item.base and group not in planned
    }
    if found:
        yield Finding(
            "commit-files-hidden",
            "Readers do not see files that completed commits have written",
            found,
            "Queries miss all rows of these files without an error, and so do jobs. The next write of their keys adds"
            " rows beside them.",
            "Somebody changed hoodie.properties, such as `hoodie.table.base.file.format`. Stop the writers, and"
            " restore the earlier properties. Let nothing be cleaned or clustered until then.",
        )


def sized(examined: Examined) -> Iterator[Finding]:
    """Finds files whose size differs from the size in the commit that wrote them, and files of archived commits that
    are cut off. Before table version 8 several commits append to a log, and the first of them may be archived, so a log
    must have at least the bytes that the known commits have appended."""
    differing = {}
    appended: Counter[str] = Counter()
    for commit in examined.commits:
        for path, size in commit.sizes.items():
            partition, _, name = path.rpartition("/")
            listed = examined.entries.get(partition, {}).get(name)
            if listed is None or not size:
                continue
            earlier = appended[path]
            if parse_log_file_name(name):
                appended[path] += size
            if listed.bytes < earlier + size or (listed.bytes > size and parse_base_file_name(name)):
                after = f" after {earlier}" if earlier else ""
                differing[path] = f"{path} has {listed.bytes} bytes, and {commit.write.instant} wrote {size}{after}"
    with suppress(JobError):  # Other checks need both listings, too, and tell the reason.
        differing |= _cut_off(examined)
    if differing:
        yield Finding(
            "file-sizes-differ",
            "Files have other sizes than their commits say",
            differing,
            "Readers fail, or miss rows without an error: Hudi skips the rest of a log whose last block is cut off.",
            "Something truncated these files, or put others into their places. Put the right files back from a backup"
            " or from earlier versions of the objects, or restore a savepoint. Let no job and no service rewrite these"
            " file groups before, because the new files would lack the rows.",
        )


def _cut_off(examined: Examined) -> dict[str, str]:
    """Returns the cut-off files of the latest slices, among the files that no commit of the active timeline names.
    Reads only files of slices that have fewer bytes than the metadata table says. Fewer bytes alone prove nothing,
    because commits of Flink give the sum of all batches of a checkpoint."""
    if not examined.table.is_listed_by_metadata:
        return {}
    known = {item.key: item for item in examined.slices}
    doubtful: set[str] = set()
    for item in examined.listed_slices:
        if (by_metadata := known.get(item.key)) is None:
            continue
        names: list[str] = []
        if item.base_name == by_metadata.base_name and item.base_bytes < by_metadata.base_bytes:
            names.append(item.base_name)
        if item.log_files == by_metadata.log_files and item.log_bytes < by_metadata.log_bytes:
            names += item.log_files
        doubtful.update(f"{item.partition}/{name}".lstrip("/") for name in names)
    for commit in examined.commits if doubtful else ():
        doubtful -= {path for groups in commit.files.values() for paths in groups.values() for path in paths}
    return {path: f"{path} is cut off" for path in sorted(doubtful) if examined.is_cut_off(path)}


def replacements(examined: Examined) -> Iterator[Finding]:
    """Finds clusterings and rescales that wrote another number of rows than the replaced file groups had (`rewrites`),
    and those that lack rows which were written meanwhile."""
    differing = {}
    for commit, replaced in rewrites(examined):
        held = sum(replaced.values())
        wrote = sum(commit.rows.values())
        if wrote != held:
            differing[commit.write.instant] = f"{commit.write.instant} wrote {wrote} rows for {held}"
    if differing:
        yield Finding(
            "replacement-rows-differ",
            "A replacement has other rows than the file groups that it replaced",
            differing,
            "Rows exist twice, or are lost.",
            "Two runners executed one plan, or a write was committed in between. Restore a savepoint; or read the "
            "table as of the commit before, as long as the replaced files exist. Let nothing be cleaned until then.",
        )

    if lacking := _lacking(examined):
        yield Finding(
            "replacement-lacks-writes",
            "A replacement lacks rows that were written to its file groups after it had been planned",
            lacking,
            "Readers see older versions of these rows, or none.",
            "A writer in single-writer mode may have updated file groups of a pending clustering. Write the rows of "
            "the named commits again, from the source or from the replaced files. Let nothing be cleaned until then.",
        )


def _lacking(examined: Examined) -> dict[str, str]:
    """Finds clusterings and rescales of Hudi that replaced file groups to which a commit wrote after their instant."""
    if examined.table.has_consistent_hashing():
        # Writers write such rows to the old and to the new file groups.
        return {}
    misdated = misdated_instants(examined.table, examined.table.clock.frame)
    written: dict[Group, tuple[str, str]] = {}
    found = {}
    for commit in examined.commits:
        write = commit.write
        if write.operation in _REWRITES and write.known is None and REPAIRS_KEY not in commit.extra:
            last = {written[group] for group in write.replaced if group in written}
            if lost := sorted(
                instant for instant, end in last if end > write.instant and write.instant not in misdated
            ):
                found[write.instant] = f"{write.instant} without rows of {', '.join(lost)}"
        if write.brings_rows and write.instant not in misdated:
            end = max(write.instant, write.completed)
            written.update(dict.fromkeys(write.written, (write.instant, end)))
    return found


def rewrites(examined: Examined) -> Iterator[tuple[Commit, dict[str, int]]]:
    """Yields the clusterings and rescales with the paths of the base files that they replaced, and their numbers of
    rows. Skips rewrites of a file group that has logs, or whose number of rows is in no commit of the active
    timeline."""
    for number, commit in enumerate(examined.commits):
        if commit.write.operation not in _REWRITES or not commit.write.replaced or REPAIRS_KEY in commit.extra:
            continue
        # Before table version 8 a write may count as completed after a replacement that has copied its rows.
        known = commit.write.known or ()
        before = [
            each
            for place, each in enumerate(examined.commits)
            if place < number or (place > number and each.write.instant in known)
        ]
        slices = _slices(before, examined.table.version)
        replaced = [slices.get(group, _Slice()) for group in commit.write.replaced]
        rows = {item.base: item.rows for item in replaced if item.base and item.rows is not None and not item.logs}
        if len(rows) == len(replaced):
            yield commit, rows


def compactions(examined: Examined) -> Iterator[Finding]:
    """Finds logs that a completed compaction has left in the slice that it compacted, before table version 8."""
    if not may_miss_logs(examined.table):
        return
    left = {
        name: f"{name}, left by {plan.instant}"
        for plan in compactions_done(examined.table)
        for names in missed_logs(plan.content, examined.commits).values()
        for name in names
    }
    if left:
        yield Finding(
            "compaction-left-logs",
            "A compaction has not read logs that belong to the file slices that it compacted",
            left,
            "No reader sees the rows of these logs any more.",
            "The writers of these logs began while the compaction was planned, and did not know of it. Write their "
            "rows again, or restore a savepoint. Let nothing be cleaned before: the logs are still there.",
        )


def counted(examined: Examined) -> Iterator[Finding]:
    """Finds base files of the latest slices that cannot be read, or whose number of rows differs from the number in
    their commits. Reads footers."""
    expected = {path: rows for commit in examined.commits for path, rows in commit.rows.items()}
    based = {
        f"{item.partition}/{name}".lstrip("/"): item.base_file
        for item in examined.listed_slices
        if item.base_file and (name := item.base_file.rpartition("/")[2]).endswith(".parquet")
    }
    known = {path: full for path, full in based.items() if path in expected}
    try:
        counts = base_files.counts(examined.table, list(known.values()))
    except DamagedFileError:
        damaged = base_files.damaged(examined.table, list(based.values()))
        if not damaged:
            raise
        yield Finding(
            "base-files-damaged",
            "Base files are damaged, or are not what their names say",
            {path: f"{path}: {damaged[full]}" for path, full in based.items() if full in damaged},
            "Readers fail, and so does every job that has to read these files.",
            DamagedFileError.hint,
        )
        known = {path: full for path, full in known.items() if full not in damaged}
        counts = base_files.counts(examined.table, list(known.values()))
    differing = {}
    for path in known:
        stored = counts.get(path.rpartition("/")[2], 0)
        if stored != expected[path]:
            differing[path] = f"{path} has {stored} rows, and its commit says {expected[path]}"
    if differing:
        yield Finding(
            "commit-rows-differ",
            "Base files have other numbers of rows than their commits say",
            differing,
            "Rows are lost or exist more than once.",
            "Something replaced these files by others. Put the right files back, or restore a savepoint.",
        )


def _slices(commits: Sequence[Commit], version: int) -> dict[Group, _Slice]:
    """Returns the latest slices after these commits, which must be in the order of completion."""
    slices: dict[Group, _Slice] = {}
    logs: dict[Group, list[tuple[str, str, Commit]]] = {}
    for commit in commits:
        for partition, groups in commit.files.items():
            for file_id, paths in groups.items():
                item = slices.setdefault((partition, file_id), _Slice())
                for path in paths:
                    name = path.rpartition("/")[2]
                    if base := parse_base_file_name(name):
                        if base.instant >= item.since:
                            item.base, item.since, item.rows = path, base.instant, commit.rows.get(path)
                    elif log := parse_log_file_name(name):
                        logs.setdefault((partition, file_id), []).append((path, log.instant, commit))
    for group, found in logs.items():
        since = slices[group].since
        slices[group].logs = {
            path: commit.write.instant
            for path, named, commit in found
            if (commit.completed > since if version >= WITH_COMPLETION_TIMES else named >= since)
        }
    return slices
