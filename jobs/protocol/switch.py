"""What a replacement of file groups has changed, and whether a write keeps to what was before."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from jobs.format.stale_writes import hits

if TYPE_CHECKING:
    from jobs.format.bucket_rules import BucketChange
    from jobs.format.stale_writes import Group
    from jobs.hudi.table import Touched

# Of so many rows some would be in a new bucket if their writer knew of the new number: one in 2^40 is mistaken for it.
SURE_ROWS = 40


class Verdict(Enum):
    """`OPEN`: where the write goes does not tell; its rows will, when it has committed."""

    FRESH = "fresh"
    STALE = "stale"
    OPEN = "open"


@dataclass(frozen=True)
class Switch:
    """`replaced` are the file groups out of use. `buckets` is None if rows keep their buckets."""

    replaced: frozenset[Group]
    buckets: BucketChange | None = None

    def verdict(self, touched: Touched) -> Verdict:
        """Whether a write that goes there knows of the switch.

        A file group that was replaced tells for sure that it does not, however late it comes. Without that, a bucket
        that did not exist before shows that it goes by the new number. Rows in the first buckets only are odd if they
        are many; and of rows whose file groups are yet to be made an inflight instant does not tell the bucket.
        """
        if hits(touched.keys, self.replaced):
            return Verdict.STALE
        if touched.tells_nothing:
            return Verdict.OPEN
        buckets = self.buckets
        if buckets is None:
            return Verdict.FRESH
        changed = {partition: ids for partition, ids in touched.buckets().items() if buckets.is_for(partition)}
        if any(bucket >= buckets.old.buckets_of(partition) for partition, ids in changed.items() for bucket in ids):
            return Verdict.FRESH
        rows = sum(sum(touched.groups[partition].values()) for partition in changed)
        if rows >= SURE_ROWS:
            return Verdict.STALE
        is_told = not changed and not any(buckets.is_for(partition) for partition in touched.inserts)
        return Verdict.FRESH if is_told else Verdict.OPEN
