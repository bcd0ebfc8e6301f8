"""The latest file slices of one partition, told from a listing of its folder and the active timeline."""

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


_MOST_REMEMBERED = 1000
"""File groups of a partition that were replaced."""


@dataclass(frozen=True)
class Visibility:
    """Which files count, by the instants in their names.

    Hudi's rule (`HoodieTimeline.containsOrBeforeTimelineStarts`, 1.2): those of completed instants, and those older
    than the first completed one that is not only kept by a savepoint, for they have been archived. Pending instants
    never count, however old. `completions` maps requested to completion times, where the timeline tells them.
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
        """Before table version 8 a log is named after its slice, which may be that of a pending compaction."""
        return self.is_committed(instant) or (not self.logs_carry_own_instant and instant in self.compacting)

    def belongs_to(self, log_instant: str, base_instant: str) -> bool:
        """Whether a log is on top of the slice that begins at `base_instant`, or of a later one.

        From table version 8 on the moment counts at which the log's commit completed: what was written while the
        compaction ran is not in its base file. Of archived commits only the requested time is known here.
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


def latest_slices(path: str, files: Iterable[Entry], seen: Visibility, replaced: Container[str]) -> Listed:
    """`files` lie in the partition `path`; `replaced` are the file ids that completed replacecommits put away.

    That a file group was replaced only the metadata of that replacecommit tells. Hudi archives one only when the
    cleaner has removed what it replaced, so those of the active timeline, and what is remembered of them, suffice.
    """
    groups = _committed(files, seen)
    slices: list[FileSlice] = []
    freed: list[Entry] = []
    for file_id, group in groups.items():
        every = [*group.bases, *group.logs]
        if file_id in replaced:
            freed += [entry for _, entry in every]
            continue
        # The name decides between two files of one instant, which differ in the task that wrote them.
        instant, base = max(group.bases, key=lambda each: (each[0], each[1].name), default=("", None))
        logs = [entry for log, entry in group.logs if seen.belongs_to(log, instant)]
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


def _committed(files: Iterable[Entry], seen: Visibility) -> dict[str, _Group]:
    groups: dict[str, _Group] = {}
    for entry in files:
        if entry.is_folder:
            continue
        if (log := parse_log_file_name(entry.name)) is not None:
            if seen.is_log_committed(log.instant):
                groups.setdefault(log.file_id, _Group()).logs.append((log.instant, entry))
        elif (base := parse_base_file_name(entry.name)) is not None and seen.is_committed(base.instant):
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
    """`base_rows` are the rows of base files by name, of as many as are known. `replaced` are file ids with the
    instants that replaced them. `num_buckets` is 0 without an index."""
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
    """Those that still have files, and the newest of the others: a writer may come back to one long after cleaning."""
    newest = sorted(replaced, key=lambda file_id: (replaced[file_id], file_id), reverse=True)[:_MOST_REMEMBERED]
    return {each: replaced[each] for each in sorted({*newest, *(e for e in replaced if e in with_files)})}


def _buckets(slices: Iterable[FileSlice], rows: Mapping[str, int]) -> tuple[Bucket, ...]:
    """Two file groups of one bucket, as writers without a common lock leave them, are one bucket here."""
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
