"""The change that a replacement of file groups made, and the test whether a write still follows the old state."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from jobs.format.stale_writes import hits

if TYPE_CHECKING:
    from jobs.format.bucket_rules import BucketChange
    from jobs.format.stale_writes import Group
    from jobs.hudi.records import Touched

# Some of this many rows would be in a new bucket of an expansion if their writer knew the new number; the guess is
# wrong for one write in 2^40.
SURE_ROWS = 40


class Verdict(Enum):
    """The judgement of a write. `OPEN`: its file groups do not decide; its rows will, once it has committed."""

    FRESH = "fresh"
    STALE = "stale"
    OPEN = "open"


@dataclass(frozen=True)
class Switch:
    """One replacement. `replaced` are the file groups out of use. `buckets` is None if rows keep their buckets.

    `complete` are contracted partitions in which every bucket has a file group, as far as known.
    """

    replaced: frozenset[Group]
    buckets: BucketChange | None = None
    complete: frozenset[str] = frozenset()

    def verdict(self, touched: Touched) -> Verdict:
        """Decides whether a write to these file groups knows of the switch.

        A replaced file group proves that it does not, however late it comes. After an expansion, a bucket that did not
        exist before proves that it uses the new number; many rows in old buckets only are improbable for such a writer.
        After a contraction, a bucket that does not exist any more proves that it does not; rows in the others are in
        their buckets by either number. For rows whose file groups do not exist yet, an inflight instant does not
        contain the bucket; where every bucket has one, they are for a bucket that is gone.
        """
        if hits(touched.keys, self.replaced):
            return Verdict.STALE
        if touched.is_empty:
            return Verdict.OPEN
        buckets = self.buckets
        if buckets is None:
            return Verdict.FRESH
        changed = {partition: ids for partition, ids in touched.buckets().items() if buckets.is_for(partition)}
        inserts = {partition for partition, rows in touched.inserts.items() if rows and buckets.is_for(partition)}
        if any(buckets.contracts(partition) for partition in {*changed, *inserts}):  # then all of them
            is_gone = any(bucket >= buckets.new.buckets_of(path) for path, ids in changed.items() for bucket in ids)
            if is_gone or inserts & self.complete:
                return Verdict.STALE
            return Verdict.OPEN if inserts else Verdict.FRESH
        if any(bucket >= buckets.old.buckets_of(partition) for partition, ids in changed.items() for bucket in ids):
            return Verdict.FRESH
        rows = sum(sum(touched.groups[partition].values()) for partition in changed)
        if rows >= SURE_ROWS:
            return Verdict.STALE
        return Verdict.OPEN if changed or inserts else Verdict.FRESH
