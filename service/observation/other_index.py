"""Finds partitions to which a writer without the table's bucket index seems to have written, as after its adoption.

Hudi (1.2) refuses no such writer; an update goes to the row's own file, whichever the index. Three marks of other
indexes remain, all of inserts: a file id without a bucket; a base file written anew in a delta commit, because a bucket
index appends to logs (`HoodieIndex.canIndexLogFiles`, `AbstractSparkDeltaCommitActionExecutor.handleUpdate`); and, on
copy-on-write, inserts in fewer buckets than hashes spread them over, because `UpsertPartitioner` fills one small file
after the other.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping

from jobs.format.file_names import bucket_of
from jobs.format.stale_writes import Group
from service.observation.timeline_diff import ObservedInstant

_BY_CHANCE = 1e-6
_BY_CHANCE_RECENTLY = 1e-5
"""Probabilities of as few buckets below which inserts of a commit are suspected: ever, and soon after an adoption."""


def rows_of_other_index(seen: ObservedInstant, path: str, num_buckets: int, replaced: Container[Group]) -> int:
    """Returns the number of rows of file groups that no writer of the bucket index writes so; 0 if there are none.
    `replaced` are file groups that do not count, because a later instant has replaced them, as an adoption does."""
    rows = {
        each: number for each, number in seen.metadata.written.get(path, {}).items() if (path, each) not in replaced
    }
    is_delta = seen.instant.action == "deltacommit"
    rewritten = seen.metadata.rewritten.get(path, frozenset()) if is_delta else frozenset()
    strange = {each for each in rows if (bucket := bucket_of(each)) is None or bucket >= num_buckets}
    return sum(rows[file_id] for file_id in strange | (rewritten & rows.keys()))


def rows_too_close(seen: ObservedInstant, path: str, num_buckets: int, *, is_recent: bool) -> int:
    """Returns the number of rows that a commit of copy-on-write inserted into a partition, if rows of any keys would
    hardly lie in so few of its buckets by chance; else 0. Each row's bucket must be a hash of its whole key."""
    inserted: Mapping[str, int] = seen.metadata.inserted.get(path, {})
    number, rows = len({bucket_of(file_id) for file_id in inserted}), sum(inserted.values())
    if seen.instant.action != "commit" or not number or number >= num_buckets:
        return 0
    limit = (_BY_CHANCE_RECENTLY if is_recent else _BY_CHANCE) / len(seen.metadata.inserted)
    return rows if _log_chance(rows, number, num_buckets) < math.log(limit) else 0


def _log_chance(rows: int, number: int, num_buckets: int) -> float:
    """Returns the logarithm of an upper bound of the probability that this many rows lie in only `number` buckets."""
    ways = math.lgamma(num_buckets + 1) - math.lgamma(number + 1) - math.lgamma(num_buckets - number + 1)
    return ways + rows * math.log(number / num_buckets)
