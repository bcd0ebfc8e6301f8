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

# Of this many rows some would be in a new bucket if their writer knew the new number; wrong for one write in 2^40.
SURE_ROWS = 40


class Verdict(Enum):
    """The judgement of a write. `OPEN`: its file groups do not decide; its rows will, once it has committed."""

    FRESH = "fresh"
    STALE = "stale"
    OPEN = "open"


@dataclass(frozen=True)
class Switch:
    """One replacement. `replaced` are the file groups out of use. `buckets` is None if rows keep their buckets."""

    replaced: frozenset[Group]
    buckets: BucketChange | None = None

    def verdict(self, touched: Touched) -> Verdict:
        """Decides whether a write to these file groups knows of the switch.

        A replaced file group proves that it does not, however late it comes. Otherwise a bucket that did not exist
        before proves that it uses the new number. Many rows in old buckets only are improbable for a writer that knows
        the new number; and for rows whose file groups do not exist yet, an inflight instant does not contain the
        bucket.
        """
        if hits(touched.keys, self.replaced):
            return Verdict.STALE
        if touched.is_empty:
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
        is_unaffected = not changed and not any(buckets.is_for(partition) for partition in touched.inserts)
        return Verdict.FRESH if is_unaffected else Verdict.OPEN
