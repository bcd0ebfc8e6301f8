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
    """The judgement of a write. `OPEN`: its rows will decide once it has committed, since its file groups do not."""

    FRESH = "fresh"
    STALE = "stale"
    OPEN = "open"


@dataclass(frozen=True)
class Switch:
    """One replacement."""

    replaced: frozenset[Group]  # The file groups out of use.
    buckets: BucketChange | None = None  # None if rows keep their buckets.
    complete: frozenset[str] = frozenset()  # Contracted partitions in which, as known, every bucket has a file group.

    def verdict(self, touched: Touched) -> Verdict:
        """Decides whether a write to these file groups knows of the switch.

        A write to a replaced file group does not know the switch, however late it comes. After an expansion, a bucket
        that did not exist before proves that the write uses the new number; many rows in old buckets only are
        improbable for such a write. After a contraction, a bucket that does not exist any more proves that the write
        uses the old number; rows in other buckets are right by either number. An inflight instant does not name the
        bucket of rows whose file groups do not exist yet; where every bucket has a file group, such rows are for a
        bucket that is gone.
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
