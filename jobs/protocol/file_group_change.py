"""The change that a replacement of file groups has made, and the test whether a write still follows the old state."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from jobs.format.bucket_rules import BucketChange, BucketRules
from jobs.format.stale_writes import Group, hits
from jobs.hudi.records import Touched

# If the writer knows a number twice as large, at least one of this many rows is in a new bucket, except for one write
# in 2^40.
SURE_ROWS = 40


class Verdict(Enum):
    """Whether a write knows of the change. `OPEN`: its file groups do not tell, so its rows have to be checked after
    its commit."""

    FRESH = "fresh"
    STALE = "stale"
    OPEN = "open"


@dataclass(frozen=True)
class Switch:
    replaced: frozenset[Group]  # The file groups out of use.
    buckets: BucketChange | None = None  # None if rows keep their buckets.
    complete: frozenset[str] = frozenset()  # Contracted partitions in which every bucket is known to have a file group.
    earlier: tuple[BucketRules, ...] = ()  # The rules from before `buckets.old`; a writer may still use them.
    hashes_keys: bool = True  # Whether the whole record key is hashed; else many rows may share a hash.

    def verdict(self, touched: Touched) -> Verdict:
        """Decides whether a write to these file groups knows of the switch.

        A write to a replaced file group does not know the switch, however late the write is. A bucket that did not
        exist before the switch proves that the write uses the new number, and a bucket that no longer exists proves an
        old number. If all of many keys are in old buckets, it is improbable that the write uses a larger new number. If
        the new number divides all old ones, rows in the remaining buckets are right by each of the numbers. An inflight
        instant does not name the buckets of rows whose file groups do not exist yet. If every bucket of a smaller
        number has a file group, such rows are for a bucket that no longer exists.
        """
        if hits(touched.keys, self.replaced):
            return Verdict.STALE
        if touched.is_empty:
            return Verdict.OPEN
        buckets = self.buckets
        if buckets is None:
            return Verdict.FRESH
        paths = touched.buckets().keys() | touched.inserts.keys()
        old = {path: numbers for path in paths if (numbers := self._old_numbers(buckets, path))}
        changed = {path: ids for path, ids in touched.buckets().items() if path in old}
        inserts = {path for path, rows in touched.inserts.items() if rows and path in old}
        is_gone = any(bucket >= buckets.new.buckets_of(path) for path, ids in changed.items() for bucket in ids)
        if is_gone or inserts & self.complete:
            return Verdict.STALE
        if any(bucket >= max(old[path]) for path, ids in changed.items() for bucket in ids):
            return Verdict.FRESH
        doublings = {path: math.log2(buckets.new.buckets_of(path) / max(old[path])) for path in changed}
        likely = sum(max(0.0, doublings[path]) * sum(touched.groups[path].values()) for path in changed)
        if self.hashes_keys and likely >= SURE_ROWS:
            return Verdict.STALE
        is_open = inserts or any(number % buckets.new.buckets_of(path) for path in changed for number in old[path])
        return Verdict.OPEN if is_open else Verdict.FRESH

    def _old_numbers(self, buckets: BucketChange, partition: str) -> set[int]:
        """Returns the other numbers that the partition has had."""
        return {rules.buckets_of(partition) for rules in (buckets.old, *self.earlier)} - {
            buckets.new.buckets_of(partition)
        }
