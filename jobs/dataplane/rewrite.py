"""Reads file slices as streams, and sends their rows to the base files that replace them (`split_writer`).

Runs inside Spark's Python workers and depends on neither Spark nor the JVM.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from jobs.dataplane import arrow_of_spark, footer_entries, parquet_layout
from jobs.dataplane.row_group_copy import copied
from jobs.dataplane.slice_merge import merge_slice
from jobs.dataplane.split_writer import SplitWriter, misplaced
from jobs.errors import RefusedError
from jobs.format import bucket_hash
from jobs.format.meta_columns import FILE_NAME, PARTITION_PATH, RECORD_KEY
from jobs.storage.paths import BATCH_ROWS, batches_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from jobs.dataplane.merge_rules import MergeRules, SliceFiles
    from jobs.dataplane.parquet_layout import Layout
    from jobs.dataplane.split_writer import Rewrite, Source
    from jobs.format.written_file import WrittenFile


def rewrite_base_file(work: Rewrite, source: Source, token: str) -> list[WrittenFile]:
    """Rewrites a slice without log files, and the slices that are merged with it, as a stream of one after the other.
    Row groups that need no decoding are copied (`copied`).

    A Parquet base file needs no order, since Hudi merges by hash of the key (`HoodieTable.requireSortedRecords`, 1.2:
    only HFiles are sorted). `token` is Hudi's write token, unique for the task. The process takes less than 512 MiB
    whatever the size of the files, as long as their pages are small (Hudi checks a page's size only after 100 rows:
    rows of 1 MiB make pages of 100 MiB, and each page is held twice). A sort takes the whole slice.
    """
    if source.merged_with:
        return copied(work, source, token, None) or _rewrite_rows(work, source, token, None)
    with work.storage.open_file(source.base_file or "", whole=True) as file:
        return copied(work, source, token, file) or _rewrite_rows(work, source, token, file)


def _rewrite_rows(work: Rewrite, source: Source, token: str, opened: pa.NativeFile | None) -> list[WrittenFile]:
    """Rewrites by decoding the rows. `opened` is the base file of a source that nothing is merged with."""
    layout: Layout | None = None
    children: SplitWriter | None = None
    with ExitStack() as stack:
        for part in (source, *source.merged_with):
            path = part.base_file or ""
            # If several files are merged, some may have a small dictionary for a column, and others not.
            plain = None if source.merged_with else (RECORD_KEY, *work.sort_by)
            with work.storage.read_parquet(path, plain=plain, rows=True, opened=opened) as reader:
                layout = layout or parquet_layout.of_file(reader, work.codec)
                parquet_layout.require_reproducible(layout, reader.schema, path.rpartition("/")[2])
                if children is None:
                    typed = replace(layout, schema=_with_types(layout.schema, reader.schema_arrow))
                    children = stack.enter_context(SplitWriter(work, source, typed, token))
                children.keep(footer_entries.lasting(reader.metadata.metadata))
                # The file name changes in every row, and the old names would be the widest column.
                columns = [name for name in layout.schema.names if name != FILE_NAME]
                for batch in batches_of(reader, columns):
                    children.add(batch, part)
        return children.close() if children else []


def rewrite_slice_with_logs(
    work: Rewrite, source: Source, files: SliceFiles, token: str, *, rules: MergeRules, latest: Layout
) -> list[WrittenFile]:
    """Rewrites a slice from the rows of its `files`, merged by the `rules`, streaming. `latest` is the layout of base
    files with the table's latest schema.

    Raises `NotProvedError` for a slice that Hudi has to merge; then no file remains, except for the markers.
    """
    layout = child_layout(work, latest, source)
    merged = merge_slice(work.storage, files, rules, layout.schema, batch_rows=BATCH_ROWS, plain=work.sort_by)
    batches = merged.batches()
    first = next(batches, None)
    if first is not None:
        layout = replace(layout, schema=_with_types(layout.schema, first.schema))
    with SplitWriter(work, source, layout, token) as children:
        for batch in chain([] if first is None else [first], batches):
            columns = [arrow_of_spark.without_hidden_nulls(batch.column(field.name)) for field in layout.schema]
            children.add(pa.RecordBatch.from_arrays(columns, schema=layout.schema))
        return children.close()


def rewrite_merged_rows(
    work: Rewrite, routes: Routes, layout: Layout, token: str, merged: Iterable[pa.RecordBatch]
) -> Iterator[WrittenFile]:
    """Rewrites slices whose rows Hudi has merged from base file and logs, streaming.

    A task receives the rows of one slice and identifies the slice by their hash. A slice that is not to be rewritten is
    skipped. Raises `RefusedError` for rows of two slices in one task: a row of one of the slices is in the wrong slice
    and would get lost.
    """
    only: tuple[str, int] | None = None
    children: SplitWriter | None = None
    written: list[WrittenFile] = []
    with ExitStack() as stack:
        for batch in merged:
            for key, rows in routes.split(batch, work.hash_fields):
                if only is None:
                    only = key
                    if source := routes.sources.get(key):
                        writer = SplitWriter(work, source, child_layout(work, layout, source), token)
                        children = stack.enter_context(writer)
                elif key != only:
                    raise RefusedError([misplaced(*only)])
                if children:
                    children.add(conformed(rows, layout.schema))
        if children:
            written = children.close()
    yield from written


def child_layout(work: Rewrite, layout: Layout, source: Source) -> Layout:
    """Returns the layout of the files that replace a merged slice: the layout of the slice's `model`, or `layout`
    without one."""
    if source.model is None:
        return layout
    with work.storage.read_parquet(source.model) as model:
        return layout.like(model, work.codec)


@dataclass(frozen=True)
class Routes:
    """Finds the slice of a merged row."""

    sources: dict[tuple[str, int], Source]  # The slices to rewrite, by partition path and bucket.
    known: frozenset[tuple[str, int]]  # All slices of the table.
    old: dict[str, int]  # Each partition's number of buckets before the rewrite.
    by_file: bool = False  # Whether rows of another bucket belong to the slice of their file.

    def split(
        self, batch: pa.RecordBatch, hash_fields: tuple[str, ...]
    ) -> Iterator[tuple[tuple[str, int], pa.RecordBatch]]:
        """Yields the rows of each slice by the hash of their keys, or `by_file`.

        Raises `RefusedError` for a row in another bucket's file.
        """
        codes = bucket_hash.hash_codes(batch.column(batch.schema.get_field_index(RECORD_KEY)), hash_fields)
        located = _buckets_of_files(batch.column(batch.schema.get_field_index(FILE_NAME)))
        paths = batch.column(batch.schema.get_field_index(PARTITION_PATH)).dictionary_encode()
        for number, partition in enumerate(paths.dictionary.to_pylist()):
            in_partition = paths.indices.to_numpy(zero_copy_only=False) == number
            buckets = (codes & 0x7FFFFFFF) % self.old[partition]
            if self.by_file:
                buckets = np.where(located < 0, buckets, located)
            for bucket in np.unique(buckets[in_partition]).tolist():
                key = (partition, bucket)
                mask = in_partition & (buckets == bucket)
                elsewhere = (located[mask] >= 0) & (located[mask] != bucket)
                if key not in self.known or elsewhere.any():
                    raise RefusedError([misplaced(partition, bucket)])
                yield key, batch if mask.all() else batch.filter(pa.array(mask))


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the batch with the columns, order and types of `schema`; raises `ArrowInvalid` if values do not fit."""
    columns = []
    for field in schema:
        column = batch.column(batch.schema.get_field_index(field.name))
        columns.append(arrow_of_spark.of_type(column, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _buckets_of_files(names: pa.Array) -> NDArray[np.int32]:
    """Returns the bucket of each row's file by `_hoodie_file_name` (in logs: the file id), -1 where there is none."""
    encoded = names.dictionary_encode()
    found = [int(name[:8]) if name and name[:8].isdigit() else -1 for name in encoded.dictionary.to_pylist()]
    places = encoded.indices.fill_null(len(found)).to_numpy()
    buckets: NDArray[np.int32] = np.asarray([*found, -1], dtype=np.int32).take(places)
    return buckets


def _with_types(schema: pa.Schema, other: pa.Schema) -> pa.Schema:
    """Replaces strings by dictionaries of strings where `other` has them; in Parquet the result is the same."""
    return pa.schema([field.with_type(other.field(field.name).type) for field in schema], schema.metadata)
