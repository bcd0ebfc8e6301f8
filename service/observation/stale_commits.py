"""Finds new commits with rows that no reader sees, or that writers will not find.

File ids prove a write to a replaced file group (`jobs.format.stale_writes`). A write with an old number of buckets can
only be suspected here. After an expansion, a few rows may all lie in the old buckets by chance, but not many rows.
After a contraction, one row in a removed bucket is enough. If neither number divides the other, few rows prove nothing.
Writers without the bucket index are suspected in a similar way (`service.observation.other_index`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial

from msgspec import UNSET

from jobs.format.file_names import bucket_of
from jobs.format.stale_writes import Group, StaleWrite, hits_by, stale_writes
from service.incidents.details import GroupWrittenTo, IncidentDetails, SuspectedPartition
from service.incidents.finding import Finding, Judged
from service.incidents.incident import IncidentKind, IncidentState
from service.lake.commit import Commit
from service.lake.instant_metadata import InstantMetadata
from service.lake.table_config import TableConfig
from service.observation import other_index
from service.observation.snapshot_refresh import Files, Layout, Rescale
from service.observation.timeline_diff import ObservedInstant

MANY_ROWS = 20
"""If the number of buckets was doubled, the probability that this many rows all lie in the old buckets by chance is one
in a million. If the number changed less, more rows are needed."""

RECENT = timedelta(hours=24)
"""For this time after a change, fewer rows are enough for a suspicion, because writers with the old number are most
likely then."""

_MAX_NAMED = 20
"""The details of an incident list at most this many file groups and partitions; the counts cover all."""


def replacing(new_instants: Iterable[ObservedInstant], files: Files) -> set[str]:
    """Returns the instants of earlier polls that replaced file groups to which the new instants wrote. On a table with
    a bucket index, also returns those that replaced file groups without a bucket."""
    written = {group for seen in new_instants for group in seen.write.written}
    adopted = _adopted(files.replaced_before.items(), files.layout) if written and files.layout.index else ()
    return {*hits_by(written, files.replaced_before).values(), *(instant for _, instant in adopted)}


def judge(
    new_instants: Sequence[ObservedInstant],
    commits: Sequence[Commit],
    files: Files,
    config: TableConfig,
    *,
    replaced_by: Iterable[ObservedInstant] = (),
    misdated: Callable[[], Container[str]] = tuple,
) -> Judged:
    """Finds stale commits. `commits` has one commit for each of `new_instants`, in the same order, that of completion.

    `replaced_by` are the instants that `replacing` has returned, as far as timeline and history have them. `misdated`
    returns the instants whose times do not fit the times of others.
    """
    completed_at = {commit.requested_time: commit.completed_at for commit in commits}
    replaced_by = list(replaced_by)
    earlier = {seen.instant.requested_time: seen.write for seen in replaced_by}
    repairs = {seen.instant.requested_time for seen in replaced_by if seen.metadata.is_repair}
    writes = [seen.write for seen in new_instants]
    stale = stale_writes(writes, files.replaced_before, replacing=earlier)
    if stale:
        stale = stale_writes(writes, files.replaced_before, replacing=earlier, misdated=misdated())
    metadata = {seen.instant.requested_time: seen.metadata for seen in new_instants}
    findings = [_stale(write, metadata[write.instant]) for write in stale]
    known = {(write.instant, path) for write in stale for path, _ in write.groups}
    findings += _misplacing(new_instants, completed_at, files, config, known, repairs=repairs)
    repaired = {instant: seen.instant.requested_time for seen in new_instants for instant in seen.metadata.repaired}
    found = tuple(each for each in findings if each.instant not in repaired and each.instant not in files.undone)
    return Judged(found, repaired, files.undone)


def _stale(write: StaleWrite, metadata: InstantMetadata) -> Finding:
    details = IncidentDetails(
        rows=sum(metadata.written[path][file_id] for path, file_id in write.groups),
        file_groups=len(write.groups),
        partitions=len({path for path, _ in write.groups}),
        groups=tuple(
            GroupWrittenTo(partition=path, file_id=file_id, replaced_by=by)
            for (path, file_id), by in sorted(write.groups.items())[:_MAX_NAMED]
        ),
        doubt=write.doubt or UNSET,
    )
    return Finding(IncidentKind.STALE_WRITE, IncidentState.OPEN, write.instant, write.operation, details.to_json())


def _misplacing(
    new_instants: Sequence[ObservedInstant],
    completed_at: Mapping[str, datetime],
    files: Files,
    config: TableConfig,
    known: Container[tuple[str, str]],
    *,
    repairs: Container[str],
) -> Iterable[Finding]:
    """Yields suspected commits. `known` are instants with the partitions in which they are proved to be stale.
    `repairs` are repairs that only took file groups out of use; they do not count as an adoption of the index."""
    layout = files.layout
    if layout.index is None:
        return
    later = {seen.instant.requested_time for seen in new_instants}
    replaced = {group for seen in new_instants for group in seen.write.replaced}
    adopted = dict(_adopted((each for each in files.replaced_before.items() if each[1] not in repairs), layout))
    hashes_keys = {*layout.index.hash_fields} == {*config.fields("hoodie.table.recordkey.fields")}

    def is_recent(instant: str, change: str) -> bool:
        since = completed_at.get(change) or config.moment(change)
        return since is None or completed_at[instant] - since < RECENT

    for seen in new_instants:
        instant, metadata = seen.instant.requested_time, seen.metadata
        later.discard(instant)
        # The commit of a repair is not suspected, even if the rows that it moved belong in a few buckets.
        if not seen.write.brings_rows or metadata.is_repair:
            if not metadata.is_repair:
                adopted.update(_adopted(((group, instant) for group in seen.write.replaced), layout))
            continue
        suspected = []
        for path, into in metadata.written.items():
            rescales = [each for each in layout.rescales_of(path) if each.instant not in later]
            rows = {file_id: number for file_id, number in into.items() if number}
            if (instant, path) in known:
                continue
            since = adopted.get(path)
            number = layout.num_buckets_for(path)
            if rescales and (found := _by_old_number(path, rows, rescales, partial(is_recent, instant))):
                suspected.append(found)
            elif others := other_index.rows_of_other_index(seen, path, number, replaced):
                suspected.append(_Suspected(path, others, (number,), since))
            elif since and hashes_keys:
                recently = is_recent(instant, since)
                if close := other_index.rows_too_close(seen, path, number, is_recent=recently):
                    suspected.append(_Suspected(path, close, (number,), since))
        if suspected:
            yield _suspicion(seen, suspected)


def _adopted(replaced: Iterable[tuple[Group, str]], layout: Layout) -> Iterable[tuple[str, str]]:
    """Yields the partitions in which file groups without a bucket were replaced, with the replacing instants. A random
    file id may look like one with a bucket, but its number is then larger than any number of buckets that the partition
    had."""

    @cache
    def most_buckets(path: str) -> int:
        return max([layout.num_buckets_for(path), *(each.before for each in layout.rescales_of(path))])

    for (path, file_id), instant in replaced:
        if (bucket := bucket_of(file_id)) is None or bucket >= most_buckets(path):
            yield path, instant


def _by_old_number(
    path: str, rows: Mapping[str, int], rescales: Sequence[Rescale], is_recent: Callable[[str], bool]
) -> _Suspected | None:
    last = rescales[-1]
    buckets = (last.before, last.after)
    if beyond := _beyond(rows, last):
        return _Suspected(path, beyond, buckets, last.instant)
    # A writer may still use the number of buckets from before an earlier change.
    earlier = {each.before for each in rescales} - {last.after}
    if may_be_old(rows, last.after, earlier, is_recent=is_recent(last.instant)):
        return _Suspected(path, sum(rows.values()), buckets, last.instant)
    return None


@dataclass(frozen=True)
class _Suspected:
    """Suspected rows in one partition. `since` is the change that the writer does not seem to know."""

    path: str
    rows: int
    buckets: tuple[int, ...]
    since: str | None


def _beyond(rows: Mapping[str, int], contraction: Rescale) -> int:
    """Returns the number of rows in buckets that do not exist any more."""
    return sum(number for file_id, number in rows.items() if (bucket_of(file_id) or 0) >= contraction.after)


def may_be_old(rows: Mapping[str, int], new: int, old: Collection[int], *, is_recent: bool) -> bool:
    """Returns whether a writer with one of the `old` numbers may have written these rows. All their buckets exist."""
    buckets = [bucket_of(file_id) for file_id in rows]
    # If the new number divides an old one, nothing shows which of the two numbers a writer used.
    if not buckets or all(number % new == 0 for number in old):
        return False
    if any(bucket is None or bucket >= max(old) for bucket in buckets):
        return False
    are_many = sum(rows.values()) * abs(math.log2(new / min(old, key=lambda each: abs(each - new)))) >= MANY_ROWS
    # If all old numbers are larger, at least one of many rows would be in a bucket that no longer exists.
    return (is_recent and not (are_many and min(old) > new)) or (are_many and max(old) < new)


def _suspicion(seen: ObservedInstant, suspected: Sequence[_Suspected]) -> Finding:
    named = tuple(
        SuspectedPartition(partition=each.path, rows=each.rows, buckets=each.buckets, since=each.since or UNSET)
        for each in sorted(suspected, key=lambda each: each.path)[:_MAX_NAMED]
    )
    details = IncidentDetails(
        rows=sum(each.rows for each in suspected), partitions=len(suspected), by_partition=named
    ).to_json()
    return Finding(
        IncidentKind.OLD_NUMBER, IncidentState.SUSPECTED, seen.instant.requested_time, seen.metadata.operation, details
    )
