"""The growth of a table: how its commits make log files, base files and small files, fitted from its past."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

_MOST_KEPT = 1.5
_STEPS = 40
_WEIGHTS = (0.01, 10.0)


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth of a table, as shares of the bytes that writers write.

    `logged` is the share that becomes log files; the rest becomes base files at once. `kept` is the share of log bytes
    that a compaction adds to the base files; the rest replaces older rows. For a copy-on-write table, `kept` is this
    share of the written bytes. `hot_groups` is the number of file groups among which writes are spread; 0 means all.
    `weight` is the size of such a file group, divided by the average size. `new_files` and `small_files` are the
    numbers of base files, and of small base files, that a commit adds on average.
    """

    logged: float = 1.0
    kept: float = 0.0
    hot_groups: float = 0.0
    weight: float = 1.0
    new_files: float = 0.0
    small_files: float = 0.0


@dataclass(frozen=True, slots=True)
class PolledSizes:
    """The sizes that a poll found. `written` are the bytes that writers had written until then. `unmerged` are those
    since the last compaction; None if unknown. `commits` counts the commits until then."""

    log_bytes: int
    base_bytes: int
    base_files: int
    small_files: int
    written: int
    unmerged: int | None
    commits: int


@dataclass(frozen=True, slots=True)
class Merged:
    """A compaction that has ended: the file groups and bytes that it wrote; and for each commit since the previous
    compaction, how many file groups it had touched."""

    file_groups: int
    bytes: int
    touched: Sequence[int]


def fitted(seen: Sequence[PolledSizes], merged: Sequence[Merged], *, is_merge_on_read: bool) -> Growth:
    """Returns the growth that explains these polls; the oldest poll comes first. Without polls, `kept` is 0, and writes
    are spread among all file groups."""
    logged = _logged(seen) if is_merge_on_read else 0.0
    first, last = (seen[0], seen[-1]) if seen else (None, None)
    written = last.written - first.written if first and last else 0
    commits = last.commits - first.commits if first and last else 0
    kept = new_files = small_files = 0.0
    if first and last and written > 0:
        grown = (last.base_bytes - first.base_bytes) / written
        kept = grown if not is_merge_on_read else (grown - (1 - logged)) / logged if logged > 0 else 0.0
    if commits > 0:
        new_files = _risen([each.base_files for each in seen]) / commits
        small_files = _risen([each.small_files for each in seen]) / commits
    most_files = max((each.base_files for each in seen), default=0)
    return Growth(
        logged,
        min(max(kept, 0.0), _MOST_KEPT),
        _hot(merged, most_files),
        _weight(seen, merged),
        new_files,
        small_files,
    )


def distinct(groups: float, untouched: float) -> float:
    """Returns how many of `groups` file groups were touched, if `untouched` is the share of those that were not."""
    return groups * (1 - untouched)


def _logged(seen: Sequence[PolledSizes]) -> float:
    """Returns the share of written bytes that became log files: the log bytes that polls have seen, compared with the
    bytes that commits have written since the last compaction."""
    known = [each for each in seen if each.unmerged]
    written = sum(each.unmerged or 0 for each in known)
    return min(1.0, sum(each.log_bytes for each in known) / written) if written else 1.0


def _risen(numbers: Sequence[int]) -> int:
    """Returns the sum of the increases. Decreases do not count, because clusterings cause them."""
    return sum(max(0, after - before) for before, after in itertools.pairwise(numbers))


def _hot(merged: Sequence[Merged], groups: int) -> float:
    """Returns among how many file groups writes seem to be spread: writes at random to this many would have touched as
    many as the compactions have rewritten."""
    rewritten = sum(each.file_groups for each in merged if each.touched)
    if not rewritten or not groups:
        return 0.0
    low, high = 1.0, float(max(groups, *(each.file_groups for each in merged)))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if sum(_touched(each.touched, middle) for each in merged) < rewritten:
            low = middle
        else:
            high = middle
    return high


def _weight(seen: Sequence[PolledSizes], merged: Sequence[Merged]) -> float:
    files = sum(each.base_files for each in seen)
    groups = sum(each.file_groups for each in merged)
    average = sum(each.base_bytes for each in seen) / files if files else 0.0
    if not groups or not average:
        return 1.0
    low, high = _WEIGHTS
    return min(max(sum(each.bytes for each in merged) / groups / average, low), high)


def _touched(each: Sequence[int], groups: float) -> float:
    untouched = 1.0
    for number in each:
        untouched *= 1 - min(1.0, number / groups)
    return distinct(groups, untouched)
