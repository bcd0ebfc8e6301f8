"""The summary of one partition: sizes, rows, buckets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Mapping

from service.lake.file_slices import FileSlice, Listed
from service.lake.snapshot import SIZE_BOUNDS, Bucket, PartitionDetail, PartitionState

_MAX_REMEMBERED = 1000
"""The number of replaced file groups of a partition that are remembered after their files are gone. The newest ones are
remembered."""


def describe(
    path: str,
    listed: Listed,
    *,
    base_rows: Mapping[str, int],
    replaced: Mapping[str, str],
    num_buckets: int,
    small_file_bytes: int,
) -> PartitionDetail:
    """Summarizes a partition. `base_rows` maps the names of base files to their numbers of rows, as far as these are
    known. `replaced` maps file ids to the instants that replaced them. `num_buckets` is 0 without an index."""
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
        freed_since=listed.freed_since,
        rows=sum(rows.values()) if len(rows) == len(listed.slices) else None,
        buckets=len(buckets),
        num_buckets=num_buckets,
        largest_bucket=largest.number if largest else None,
        largest_bucket_bytes=largest.bytes if largest else 0,
        base_sizes=_by_size(each.base_bytes for each in listed.slices if each.base_file),
    )
    return PartitionDetail(state, buckets, rows, _remembered(replaced, listed.groups))


def _by_size(sizes: Iterable[int]) -> tuple[int, ...]:
    counts = [0] * (len(SIZE_BOUNDS) + 1)
    for size in sizes:
        counts[bisect_right(SIZE_BOUNDS, size)] += 1
    return tuple(counts)


def _remembered(replaced: Mapping[str, str], with_files: Container[str]) -> dict[str, str]:
    """Returns the replaced file groups to remember: all that still have files, and the newest of those without files. A
    writer may write to such a file group long after a cleaning has deleted its files."""
    newest = sorted(replaced, key=lambda file_id: (replaced[file_id], file_id), reverse=True)[:_MAX_REMEMBERED]
    return {each: replaced[each] for each in sorted({*newest, *(e for e in replaced if e in with_files)})}


def _buckets(slices: Iterable[FileSlice], rows: Mapping[str, int]) -> tuple[Bucket, ...]:
    """Returns one entry per bucket. If a bucket has two file groups, which happens when writers have no common lock,
    its entry is their sum."""
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
