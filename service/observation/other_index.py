"""Finds partitions to which a writer without the table's bucket index seems to have written, for example after the
index was adopted.

Hudi (1.2) does not refuse such a writer. Updates leave no trace, because with any index they go to the file of their
row. Inserts leave one of three marks. First, the file id has no bucket. Second, a delta commit writes a base file
again, while a writer with a bucket index appends to logs (`HoodieIndex.canIndexLogFiles`,
`AbstractSparkDeltaCommitActionExecutor.handleUpdate`). Third, on a copy-on-write table, inserts are in fewer buckets
than hashes would spread them over, because `UpsertPartitioner` fills one small file after the other.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping

from jobs.format.file_names import bucket_of
from jobs.format.stale_writes import Group
from service.observation.timeline_diff import ObservedInstant

_BY_CHANCE = 1e-6
_BY_CHANCE_RECENTLY = 1e-5
"""Inserts of a commit are suspected if the probability of so few buckets is less than this: the first value holds at
any time, the second one soon after an adoption."""


def rows_of_other_index(seen: ObservedInstant, path: str, num_buckets: int, replaced: Container[Group]) -> int:
    """Returns the number of rows in file groups that no writer with the bucket index would have written in this way; 0
    if there are none. File groups in `replaced` do not count, because a later instant, such as an adoption, has
    replaced them."""
    rows = {
        each: number for each, number in seen.metadata.written.get(path, {}).items() if (path, each) not in replaced
    }
    is_delta = seen.instant.action == "deltacommit"
    rewritten = seen.metadata.rewritten.get(path, frozenset()) if is_delta else frozenset()
    strange = {each for each in rows if (bucket := bucket_of(each)) is None or bucket >= num_buckets}
    return sum(rows[file_id] for file_id in strange | (rewritten & rows.keys()))


def rows_too_close(seen: ObservedInstant, path: str, num_buckets: int, *, is_recent: bool) -> int:
    """Returns the number of rows that a commit inserted into a partition of a copy-on-write table, if rows with random
    keys would hardly lie in so few of its buckets; else 0. Each row's bucket must be a hash of its whole key."""
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
