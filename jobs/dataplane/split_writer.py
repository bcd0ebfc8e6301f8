"""Writes the base files that replace file slices: one per new bucket, with the marker by which Hudi finds it. Runs
inside Spark's Python workers and depends on neither Spark nor the JVM. Rows are copied unchanged, including the meta
columns (`_hoodie_commit_time` keeps incremental queries and time travel right); only `_hoodie_file_name` changes.
"""

from __future__ import annotations

import uuid
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.dataplane.key_digest import KeyDigest
from jobs.dataplane.key_footer import KeyFooter
from jobs.dataplane.row_buffer import RowBuffer
from jobs.dataplane.spill import SpillFolder
from jobs.errors import RefusedError, RowsDifferError
from jobs.format import bucket_hash
from jobs.format.meta_columns import COMMIT_TIME, FILE_NAME, RECORD_KEY
from jobs.format.written_file import WrittenFile
from jobs.problems.rescales import BUCKET_INDEX_CONTRADICTED
from jobs.storage.announced_file import AnnouncedFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobs.contract import Problem
    from jobs.dataplane.parquet_layout import Layout
    from jobs.dataplane.parquet_writer import ParquetWriter
    from jobs.storage.paths import Output, Storage

# Rows are buffered until those of all children together exceed this number of Arrow bytes; then the largest buffer
# becomes a row group. Row groups are about twice as large as if each child had a fixed share of the memory.
BUFFER_BYTES = 144 * 1024 * 1024
# Pages of very wide rows may leave little memory for buffers, but row groups should not get smaller than this.
ARROW_BYTES = 192 * 1024 * 1024
MIN_ROW_GROUP_BYTES = 8 * 1024 * 1024
# Arrow bytes that are sorted at once in memory. Sorting takes twice as much.
SORT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Rewrite:
    """The settings that all tasks of one replacement share."""

    storage: Storage
    instant: str
    hash_fields: tuple[str, ...]  # The index key fields.
    sort_by: tuple[str, ...] = ()  # Orders the rows of each output; without it they keep their order.
    curve: str = "linear"  # linear, zorder or hilbert
    codec: str | None = None  # Overrides the input's compression.
    # Rows of other buckets than the slice's are left out if they were written by these instants, and otherwise kept
    # where they are. If no instants are given, such rows are an error.
    leaves_out: frozenset[str] | None = None
    # Rows that an expansion by this factor would separate go to different row groups, ordered by their new buckets.
    apart: int = 1
    sort_bytes: int = SORT_BYTES  # Rows to be sorted go to a local disk beyond this.


@dataclass(frozen=True)
class Source:
    """One file slice to rewrite."""

    partition: str
    file_id: str
    bucket: int
    modulus: int
    residues: tuple[int, ...]  # The hash of each row modulo `modulus` is one of these.
    base_file: str | None  # None for a slice with logs, whose rows come merged.
    # For a slice with logs, the base file whose codec, use of dictionaries and key entries the new files get; None for
    # Hudi's defaults.
    model: str | None = None
    new_number: int | None = None  # The new bucket is the residue modulo this; by default it is the residue.
    # Sources of the same partition and with the same children, whose rows go to the same files.
    merged_with: tuple[Source, ...] = ()
    only: tuple[int, ...] = ()  # The children that this task writes, if not all; other tasks write the rest.

    def child(self, residue: int) -> int:
        return residue % (self.new_number or self.modulus)

    @property
    def children(self) -> tuple[int, ...]:
        """The buckets whose files this task writes."""
        return self.only or tuple(dict.fromkeys(map(self.child, self.residues)))


class SplitWriter(AbstractContextManager["SplitWriter"]):
    """The base files that replace a slice, or slices that are merged: one per child bucket of the task, including those
    without rows.

    The writer writes all of these files because Hudi's conflict detection considers only the files that a commit
    writes.
    """

    def __init__(self, work: Rewrite, source: Source, layout: Layout, token: str) -> None:
        self._work = work
        self._source = source
        self._folder = SpillFolder()
        self._new_file = partial(BaseFile, work, source, layout, token=token, folder=self._folder)
        self._by_bucket = {bucket: self._new_file(bucket) for bucket in source.children}
        self._outputs = list(self._by_bucket.values())
        self._read = KeyDigest()
        # Memory that others hold, such as the logs of a merge, must not make the row groups smaller.
        self._arrow_bytes = max(ARROW_BYTES, pa.total_allocated_bytes() + BUFFER_BYTES)

    def add(self, batch: pa.RecordBatch, source: Source | None = None) -> None:
        """Adds rows of the slice, or of the `source` that is merged with it.

        Raises `RefusedError` for a row that belongs to another bucket than its slice. So no key is in two of the
        slices.
        """
        source = source or self._source
        if self._work.leaves_out is not None:
            self._add_where_it_is(batch, self._work.leaves_out)
            return
        if self._source.only:
            batch = self._rows_of_task(batch, source)
        keys = batch.column(batch.schema.get_field_index(RECORD_KEY))
        if len(self._outputs) == 1 and not self._work.hash_fields:
            self._read += KeyDigest.of(keys)
            self._outputs[0].add(batch)
            self._flush_what_is_large()
            return
        codes = bucket_hash.key_codes(keys, self._work.hash_fields)
        self._read += KeyDigest.of_codes(codes.whole)
        modulus = source.modulus * self._work.apart
        finer = bucket_hash.buckets_of(codes.of_fields, modulus)
        routed = 0
        for residue in source.residues:
            output = self._by_bucket.get(source.child(residue))
            if output is None:
                continue
            for section in range(residue, modulus, source.modulus):
                mask = finer == section
                count = int(np.count_nonzero(mask))
                if count:
                    rows = batch if count == batch.num_rows else batch.filter(pa.array(mask))
                    output.add(rows, section if self._work.apart > 1 else 0)
                routed += count
        if routed != batch.num_rows:
            raise RefusedError([misplaced(source.partition, source.bucket)])
        self._flush_what_is_large()

    def _add_where_it_is(self, batch: pa.RecordBatch, leaves_out: frozenset[str]) -> None:
        """Adds rows to the file of the slice's own bucket, also rows that belong to another bucket. Rows of other
        buckets that these instants wrote are left out. If the bucket is beyond the table's number of buckets, it gets a
        file only if rows are left."""
        source = self._source
        keys = batch.column(batch.schema.get_field_index(RECORD_KEY))
        times = batch.column(batch.schema.get_field_index(COMMIT_TIME))
        is_own = np.isin(bucket_hash.bucket_ids(keys, self._work.hash_fields, source.modulus), source.residues)
        is_moved = pc.is_in(times, value_set=pa.array(sorted(leaves_out), pa.string()))
        rows = batch.filter(pc.or_(pa.array(is_own), pc.invert(is_moved)))
        if rows.num_rows == 0:
            return
        if source.bucket not in self._by_bucket:
            self._by_bucket[source.bucket] = self._new_file(source.bucket)
            self._outputs = list(self._by_bucket.values())
        self._read += KeyDigest.of(rows.column(rows.schema.get_field_index(RECORD_KEY)))
        self._by_bucket[source.bucket].add(rows)
        self._flush_what_is_large()

    def _rows_of_task(self, batch: pa.RecordBatch, source: Source) -> pa.RecordBatch:
        """Returns the rows for the files of this task. Raises `RefusedError` for a row of another slice."""
        keys = batch.column(batch.schema.get_field_index(RECORD_KEY))
        finer = bucket_hash.bucket_ids(keys, self._work.hash_fields, source.modulus)
        if not np.isin(finer, source.residues).all():
            raise RefusedError([misplaced(source.partition, source.bucket)])
        wanted = [residue for residue in source.residues if source.child(residue) in self._by_bucket]
        return batch.filter(pa.array(np.isin(finer, wanted)))

    def _flush_what_is_large(self) -> None:
        """Writes row groups, or spills rows that are to be sorted to the disk."""
        if self._work.sort_by:
            while sum(output.waiting_bytes for output in self._outputs) > self._work.sort_bytes:
                max(self._outputs, key=lambda output: output.waiting_bytes).spill()
            return
        for output in self._outputs:
            output.flush_full()
        waiting = sum(output.waiting_bytes for output in self._outputs)
        while waiting > BUFFER_BYTES or pa.total_allocated_bytes() > self._arrow_bytes:
            largest = max(self._outputs, key=lambda output: output.largest_bytes, default=None)
            if largest is None or largest.largest_bytes < MIN_ROW_GROUP_BYTES:
                break
            waiting -= largest.largest_bytes
            largest.flush()

    def keep(self, entries: Mapping[bytes, bytes]) -> None:
        """Adds footer entries of a merged file; entries of the slice itself take precedence."""
        for output in self._outputs:
            output.keep(entries)

    def close(self) -> list[WrittenFile]:
        """Completes the files. Raises `RefusedError` unless they hold exactly the keys that were added, each as
        often."""
        written = [output.close() for output in self._outputs]
        self._folder.remove()
        found = KeyDigest.sum(KeyDigest.parse(file.rows, file.key_digest) for file in written)
        if found != self._read:
            raise RefusedError(
                [rows_differ(self._source.partition, f"file group {self._source.file_id}", self._read, found)]
            )
        return written

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        self._folder.remove()
        if error is not None:
            for output in self._outputs:
                output.abandon()


class BaseFile:
    """One base file being written, with the marker by which Hudi finds it when the instant is rolled back."""

    def __init__(
        self,
        work: Rewrite,
        source: Source,
        layout: Layout,
        bucket: int,
        token: str,
        *,
        folder: SpillFolder | None = None,
    ) -> None:
        """Rows that do not fit into memory are sorted in `folder`."""
        self._work = work
        self._source = source
        self._layout = replace(layout, schema=_with_one_file_name(layout.schema))
        self.file_id, self._file = new_base_file(work, source.partition, bucket, token)
        self.file_name = self._file.name
        self._open: tuple[Output, ParquetWriter] | None = None
        self._keys = KeyFooter(layout.keys) if layout.keys else None
        self._entries: dict[bytes, bytes] = {}
        self._folder = folder or SpillFolder()
        self._sections: dict[int, RowBuffer] = {}
        self._digest = KeyDigest()

    @property
    def waiting_bytes(self) -> int:
        return sum(section.bytes for section in self._sections.values())

    @property
    def largest_bytes(self) -> int:
        """The bytes of the largest section, which `flush` and `spill` write."""
        return max((section.bytes for section in self._sections.values()), default=0)

    def add(self, batch: pa.RecordBatch, section: int = 0) -> None:
        """Adds rows. A row group never has rows of two sections."""
        if self._keys:
            self._keys.add(batch.column(batch.schema.get_field_index(RECORD_KEY)))
        schema = self._layout.schema
        names = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), batch.num_rows), [self.file_name])
        columns = [names if name == FILE_NAME else batch.column(name) for name in schema.names]
        if section not in self._sections:
            self._sections[section] = RowBuffer(self._work.sort_by, self._work.curve, self._folder)
        self._sections[section].add(pa.RecordBatch.from_arrays(columns, schema=schema))

    def keep(self, entries: Mapping[bytes, bytes]) -> None:
        """Adds footer entries that the layout does not have."""
        self._entries = {**entries, **self._entries}

    def flush_full(self) -> None:
        """Writes the sections that hold as many rows as a row group of the input."""
        for section in self._sections.values():
            if self._layout.row_group_rows is not None and section.rows >= self._layout.row_group_rows:
                self._write(section)

    def flush(self) -> None:
        """Writes the rows of the largest section as a row group."""
        self._write(self._largest())

    def spill(self) -> None:
        """Moves the rows of the largest section to the disk, where they are sorted."""
        self._largest().spill()

    def close(self) -> WrittenFile:
        for _, section in sorted(self._sections.items()):
            self._write(section)
        output, writer = self._opened()
        writer.add_key_value_metadata({**self._entries, **self._layout.footer(self._keys)})
        writer.close()
        size = output.close()
        source = self._source
        rows, digest = self._digest.rows, str(self._digest)
        return WrittenFile(source.partition, source.file_id, self.file_id, self.file_name, rows, size, digest)

    def abandon(self) -> None:
        """Leaves no file; the marker stays until the instant ends."""
        if self._open:
            output, writer = self._open
            writer.abandon()
            output.abandon()

    def _largest(self) -> RowBuffer:
        return max(self._sections.values(), key=lambda section: section.bytes)

    def _write(self, section: RowBuffer) -> None:
        sorted_rows = self._layout.row_group_rows if self._work.sort_by else None
        for table in section.tables(sorted_rows, self._work.sort_bytes):
            self._digest += KeyDigest.of(table.column(RECORD_KEY))
            self._opened(table)[1].write_table(table, row_group_size=max(1, table.num_rows))

    def _opened(self, first: pa.Table | None = None) -> tuple[Output, ParquetWriter]:
        if self._open is None:
            output = self._file.create()
            self._open = output, self._layout.writer(output.stream, first, more_bytes=self.waiting_bytes)
        return self._open


def _with_one_file_name(schema: pa.Schema) -> pa.Schema:
    """Stores the file name, which has 75 bytes, once and a small number per row; the Parquet file is the same."""
    index = schema.get_field_index(FILE_NAME)
    return schema.set(index, schema.field(index).with_type(pa.dictionary(pa.int8(), pa.string())))


def new_base_file(work: Rewrite, partition: str, bucket: int, token: str) -> tuple[str, AnnouncedFile]:
    """Returns the file id of a future base file, and the file, which is announced."""
    # Hudi's own format of a bucket's file id: eight digits, then the rest of a random UUID (BucketIdentifier).
    file_id = f"{bucket:08d}{str(uuid.uuid4())[8:]}-0"
    file_name = f"{file_id}_{token}_{work.instant}.parquet"
    return file_id, AnnouncedFile(work.storage, work.instant, partition, file_name, "CREATE")


def rows_differ(partition: str, where: str, read: KeyDigest, written: KeyDigest) -> Problem:
    return RowsDifferError.because(
        f"partition '{partition}', {where}: {read.rows} rows with key digest {read} were"
        f" read, {written.rows} with {written} were written",
        title="The rewritten files hold other rows than the file slice",
        hint="Nothing was changed. This is an error of Groundskeeper or of the machine's memory: please report it.",
    )


def misplaced(partition: str, bucket: int) -> Problem:
    return BUCKET_INDEX_CONTRADICTED.because(f"partition '{partition}', file group of bucket {bucket}")
