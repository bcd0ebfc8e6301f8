"""Refuses to write rows that later commits may have deleted, if the files that name the deleted keys are gone.

A row in a wrong bucket stays there when a writer with the right number of buckets deletes its key in the right bucket.
If the right bucket had a row of the key as well, that delete has removed this row. So a key that still has a row in the
right bucket, older than the delete, was not deleted; any other key may have been.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.errors import refuse
from jobs.format import bucket_hash
from jobs.format.file_names import bucket_of
from jobs.hudi.jvm import translated
from jobs.problems.tables import DELETES_UNREAD, HISTORY_INCOMPLETE
from jobs.services import stray_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pyspark.sql import DataFrame

    from jobs.hudi.history import Past
    from jobs.hudi.stale_slices import Unread
    from jobs.hudi.table import HudiTable
    from jobs.services.stray_rows import Decided

_ANY_BUCKET = -1
_INSTANTS_NAMED = 20
_NAMES = ["p", "b", "i", "n"]


@dataclass(frozen=True)
class Proof:
    """Decides whether rows may be written. `past` are the commits that are known, `unread` their deletes that cannot be
    read, and `accepted` the commits whose deletes are to be run again. `stale` are commits that wrote to wrong buckets,
    where their deletes have missed the rows of their keys."""

    table: HudiTable
    past: Past
    unread: Sequence[Unread]
    accepted: Collection[str] = ()
    stale: Collection[str] = ()

    def require(self, decided: Decided, *, apart: DataFrame | None = None) -> list[str]:
        """Raises RefusedError if a row to write may have been deleted by a commit that is not accepted. Returns the
        accepted commits that may have deleted some of them. `apart` means the same as in `stray_rows.decide`."""
        since = self.past.unknown_before
        counts = {each.instant: 0 for each in self.unread if each.instant in self.stale}
        without_history = 0
        due = decided.upsert_count and (self.unread or since)
        for path, bucket, instant, now_at, count in self._groups(decided, apart) if due else ():
            by = {
                each.instant
                for each in self.unread
                if each.group[0] == path
                and bucket in (_ANY_BUCKET, bucket_of(each.group[1]))
                and instant < each.instant
                and (now_at is None or now_at > each.instant)
            }
            for each in by:
                counts[each] = counts.get(each, 0) + count
            without_history += count if instant < since and (now_at is None or now_at > instant) else 0
        if without_history:
            what = f"{without_history} rows before {since}"
            refuse([HISTORY_INCOMPLETE.because(f"{what}: {self.past.because}" if self.past.because else what)])
        if refused := {instant: count for instant, count in counts.items() if instant not in self.accepted}:
            first = sorted(refused)[:_INSTANTS_NAMED]
            texts = (
                f"{refused[each]} rows by {each}" if refused[each] else f"those that {each} missed in wrong buckets"
                for each in first
            )
            refuse([DELETES_UNREAD.because(", ".join(texts))])
        return sorted(counts)

    def _groups(self, decided: Decided, apart: DataFrame | None) -> Iterable[tuple[str, int, str, str | None, int]]:
        """Returns the numbers of rows to write, each with partition path, bucket, instant of the rows, and instant of
        the table's rows with the same keys."""
        table, rules, index = self.table, self.table.bucket_rules(), self.table.declared.index
        hash_fields = index.hash_fields if index else ()

        def with_bucket(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
            for batch in batches:
                paths, keys, *others = batch.columns
                if rules is None:
                    buckets = [_ANY_BUCKET] * batch.num_rows
                else:
                    codes = (bucket_hash.hash_codes(keys, hash_fields) & 0x7FFFFFFF).tolist()
                    buckets = [
                        code % rules.buckets_of(path) for code, path in zip(codes, paths.to_pylist(), strict=True)
                    ]
                yield pa.RecordBatch.from_arrays([paths, pa.array(buckets, pa.int32()), *others], names=_NAMES)

        with translated("looking for rows that may have been deleted"):
            now = stray_rows.current_rows(table, self.past.commits, apart)
            rows = decided.upserts.select(*stray_rows.KEY, stray_rows.INSTANT).join(now, stray_rows.KEY, "left")
            rows = rows.select(*stray_rows.KEY, stray_rows.INSTANT, stray_rows.NOW_AT)
            found = rows.mapInArrow(with_bucket, "p string, b int, i string, n string").groupBy(*_NAMES).count()
            return [tuple(row) for row in found.collect()]
