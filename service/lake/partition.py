"""The latest file slices of one partition, computed from a listing of its folder and the active timeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from service.lake.commit import WRITING_ACTIONS
from service.lake.file_slices import FileSlice
from service.lake.snapshot import Bucket, PartitionDetail, PartitionState
from service.lake.timeline import COMPACTION_ACTIONS

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from service.lake.storage import Entry
    from service.lake.timeline import Timeline


_MAX_REMEMBERED = 1000
"""Number of a partition's newest replaced file groups that are remembered after their files are gone."""


@dataclass(frozen=True)
class Visibility:
    """Decides which files count, by the instants in their names.

    Hudi's rule (`HoodieTimeline.containsOrBeforeTimelineStarts`, 1.2): files of completed instants count, and files
    older than the first completed instant that is not kept only by a savepoint, because their instants have been
    archived. Files of pending instants never count, however old. `completions` maps requested times to completion times
    where the timeline records them.
    """

    completions: dict[str, str | None]
    pending: frozenset[str]
    compacting: frozenset[str]
    starts_at: str | None
    logs_carry_own_instant: bool

    @classmethod
    def of(cls, timeline: Timeline, layout: int) -> Visibility:
        writes = {
            i.requested_time: i.completion_time
            for i in timeline.instants
            if i.is_completed and i.action in WRITING_ACTIONS
        }
        saved = {i.requested_time for i in timeline.instants if i.is_completed and i.action == "savepoint"}
        return cls(
            completions=writes,
            pending=frozenset(i.requested_time for i in timeline.pending()),
            compacting=frozenset(i.requested_time for i in timeline.pending() if i.action in COMPACTION_ACTIONS),
            starts_at=min(set(writes) - saved, default=min(writes, default=None)),
            logs_carry_own_instant=layout >= 2,
        )

    def is_committed(self, instant: str) -> bool:
        if instant in self.completions:
            return True
        return self.starts_at is not None and instant < self.starts_at and instant not in self.pending

    def is_log_committed(self, instant: str) -> bool:
        """Before table version 8 a log file carries the instant of its slice, which may be a pending compaction."""
        return self.is_committed(instant) or (not self.logs_carry_own_instant and instant in self.compacting)

    def belongs_to(self, log_instant: str, base_instant: str) -> bool:
        """Returns whether a log file belongs to the slice that begins at `base_instant`, or to a later one.

        From table version 8 on, the completion time of the log file's commit decides: rows written while the compaction
        ran are not in its base file. For archived commits only the requested time is known here.
        """
        known = self.completions.get(log_instant) if self.logs_carry_own_instant else None
        return (known or log_instant) >= base_instant


@dataclass
class _Group:
    bases: list[tuple[str, Entry]] = field(default_factory=list)
    logs: list[tuple[str, Entry]] = field(default_factory=list)


@dataclass(frozen=True)
class Listed:
    """`freed_*`: committed files that are in no latest slice. `groups` are all file ids that have committed files."""

    slices: tuple[FileSlice, ...] = ()
    freed_files: int = 0
    freed_bytes: int = 0
    groups: frozenset[str] = frozenset()


def latest_slices(path: str, files: Iterable[Entry], visibility: Visibility, replaced: Container[str]) -> Listed:
    """Sorts the files of the partition `path` into latest slices and freed files.

    `replaced` are the file ids that completed replacecommits replaced: only the metadata of a replacecommit records
    them. Hudi archives a replacecommit only after the cleaner has removed the files that it replaced, so the
    replacecommits of the active timeline, and those remembered, suffice.
    """
    groups = _committed(files, visibility)
    slices: list[FileSlice] = []
    freed: list[Entry] = []
    for file_id, group in groups.items():
        every = [*group.bases, *group.logs]
        if file_id in replaced:
            freed += [entry for _, entry in every]
            continue
        # Two files of one instant come from different tasks; the greater name wins.
        instant, base = max(group.bases, key=lambda each: (each[0], each[1].name), default=("", None))
        logs = [entry for log, entry in group.logs if visibility.belongs_to(log, instant)]
        latest = {entry.name for entry in logs} | ({base.name} if base else set())
        freed += [entry for _, entry in every if entry.name not in latest]
        slices.append(
            FileSlice(
                partition_path=path,
                file_id=file_id,
                base_file=base.name if base else None,
                base_bytes=base.size if base else 0,
                logs=tuple(sorted(entry.name for entry in logs)),
                log_bytes=sum(entry.size for entry in logs),
            )
        )
    slices.sort(key=lambda each: each.file_id)
    return Listed(tuple(slices), len(freed), sum(entry.size for entry in freed), frozenset(groups))


def _committed(files: Iterable[Entry], visibility: Visibility) -> dict[str, _Group]:
    groups: dict[str, _Group] = {}
    for entry in files:
        if entry.is_folder:
            continue
        if (log := parse_log_file_name(entry.name)) is not None:
            if visibility.is_log_committed(log.instant):
                groups.setdefault(log.file_id, _Group()).logs.append((log.instant, entry))
        elif (base := parse_base_file_name(entry.name)) is not None and visibility.is_committed(base.instant):
            groups.setdefault(base.file_id, _Group()).bases.append((base.instant, entry))
    return groups


def describe(
    path: str,
    listed: Listed,
    *,
    base_rows: Mapping[str, int],
    replaced: Mapping[str, str],
    num_buckets: int,
    small_file_bytes: int,
) -> PartitionDetail:
    """Summarizes a partition. `base_rows` maps base files, by name, to their rows as far as known. `replaced` maps file
    ids to the instants that replaced them. `num_buckets` is 0 without an index."""
    names = [each.base_file for each in listed.slices if each.base_file is not None]
    rows = {name: base_rows[name] for name in names if name in base_rows}
    small = [each.base_bytes for each in listed.slices if each.base_file and each.base_bytes < small_file_bytes]
    buckets = _buckets(listed.slices, rows) if num_buckets else ()
    largest = max(buckets, key=lambda each: each.bytes, default=None)
    state = PartitionState(
        path=path,
        file_groups=len(listed.slices),
        base_files=len(names),
        base_bytes=sum(each.base_bytes for each in listed.slices),
        log_files=sum(len(each.logs) for each in listed.slices),
        log_bytes=sum(each.log_bytes for each in listed.slices),
        small_files=len(small),
        small_bytes=sum(small),
        freed_files=listed.freed_files,
        freed_bytes=listed.freed_bytes,
        rows=sum(rows.values()) if len(rows) == len(listed.slices) else None,
        buckets=len(buckets),
        num_buckets=num_buckets,
        largest_bucket=largest.number if largest else None,
        largest_bucket_bytes=largest.bytes if largest else 0,
    )
    return PartitionDetail(state, buckets, rows, _remembered(replaced, listed.groups))


def _remembered(replaced: Mapping[str, str], with_files: Container[str]) -> dict[str, str]:
    """Returns the replaced file groups that still have files, and the newest of the others: a writer may come back to
    one long after cleaning."""
    newest = sorted(replaced, key=lambda file_id: (replaced[file_id], file_id), reverse=True)[:_MAX_REMEMBERED]
    return {each: replaced[each] for each in sorted({*newest, *(e for e in replaced if e in with_files)})}


def _buckets(slices: Iterable[FileSlice], rows: Mapping[str, int]) -> tuple[Bucket, ...]:
    """Returns one entry per bucket: the sum of two file groups of one bucket, as writers without a common lock leave
    them."""
    found: dict[int, Bucket] = {}
    for each in slices:
        if each.bucket is None:
            continue
        own = Bucket(each.bucket, each.base_bytes + each.log_bytes, rows.get(each.base_file or ""))
        other = found.get(each.bucket)
        if other is not None:
            both = None if own.rows is None or other.rows is None else own.rows + other.rows
            own = Bucket(own.number, own.bytes + other.bytes, both)
        found[each.bucket] = own
    return tuple(found[number] for number in sorted(found))
