"""Merges file slices into one base file per bucket, for a contraction: one task per new bucket, and no shuffle.

Files of one schema are copied one after the other. Where slices have logs, or files of several schemas, each slice of
the new bucket is first merged into a base file of its own. The commit does not name that file, so Hudi removes it by
its marker, like any file of a failed task.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from jobs.dataplane import footer_entries, parquet_layout
from jobs.dataplane.rewrite_job import rewrite_base_files, rewrite_slices, source_of
from jobs.errors import RefusedError
from jobs.format.bucket_rules import BucketChange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.dataplane.arrow_merge_job import Merging
    from jobs.dataplane.split_writer import Rewrite, Source
    from jobs.format.written_file import WrittenFile
    from jobs.hudi.records import FileSlice
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext
    from jobs.storage.paths import Storage

_FOOTERS_AT_ONCE = 16

Family = list["FileSlice"]


def merge_slices(
    table: HudiTable,
    work: Rewrite,
    chosen: Sequence[FileSlice],
    everything: Sequence[FileSlice],
    buckets: BucketChange,
    *,
    context: JobContext,
    merging: Merging | None = None,
) -> list[WrittenFile]:
    """Merges the `chosen` slices: for each new bucket either all of its slices or none. `everything` holds all slices
    of the table.

    A written file names one of its slices as its source.
    """
    families = _families(chosen, buckets)
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        uniform = list(pool.map(lambda family: _is_uniform(work.storage, family), families))
    mixed = [item for family, is_uniform in zip(families, uniform, strict=True) if not is_uniform for item in family]
    settled: dict[tuple[str, str], str] = {}
    if mixed:
        stay = BucketChange(buckets.old, buckets.old)
        for file in rewrite_slices(
            table, work, mixed, everything, stay, context=context, merging=merging, all_merged=True
        ):
            path = [table.base_path.rstrip("/"), file.partition, file.file_name]
            settled[(file.partition, file.source)] = "/".join(filter(None, path))
    merged = [(_source(family, buckets, settled), sum(item.base_bytes for item in family)) for family in families]
    return rewrite_base_files(table, work, merged, context)


def _families(chosen: Sequence[FileSlice], buckets: BucketChange) -> list[Family]:
    """Returns the slices of each new bucket, the largest first: the written file gets its layout."""
    found: dict[tuple[str, int], Family] = {}
    for item in sorted(chosen, key=lambda each: (-each.base_bytes, each.bucket)):
        found.setdefault((item.partition, buckets.family(item.partition, item.bucket)), []).append(item)
    return list(found.values())


def _source(family: Family, buckets: BucketChange, settled: dict[tuple[str, str], str]) -> Source:
    first, *others = (
        replace(source_of(item, buckets, merged=False), base_file=settled.get(item.key, item.base_file))
        for item in family
    )
    return replace(first, merged_with=tuple(others))


def _is_uniform(storage: Storage, family: Family) -> bool:
    """Returns whether all slices are base files without logs that hold the same columns, with dates of one calendar and
    vectors of one kind (in Parquet they are bytes)."""
    if any(item.log_files or item.base_file is None for item in family):
        return False
    layout = None
    calendars, vectors = set(), set()
    for item in family if len(family) > 1 else ():
        with storage.read_parquet(item.base_file or "") as reader:
            layout = layout or parquet_layout.of_file(reader)
            entries = reader.metadata.metadata or {}
            calendars.add(footer_entries.calendar(entries))
            # Files of older releases of Groundskeeper lack the entry.
            vectors |= {entries[each] for each in [footer_entries.VECTOR_COLUMNS] if each in entries}
            try:
                parquet_layout.require_reproducible(layout, reader.schema, item.file_id)
            except RefusedError:
                return False
    return len(calendars) <= 1 and len(vectors) <= 1
