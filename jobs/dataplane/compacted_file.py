"""Writes the new base file of a compacted slice, with the marker by which Hudi finds it.

Runs inside Spark's Python workers and depends on neither Spark nor the JVM. The file equals one of Hudi's own
compaction (`FileGroupReaderBasedMergeHandle`, `HoodieSparkParquetWriter` of Hudi 1.2.0): the table's latest schema, the
meta columns of each row's newest version with the new file's name, a Bloom filter and the key range in the footer.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.dataplane import kept_chunks
from jobs.dataplane.arrow_of_spark import without_hidden_nulls
from jobs.dataplane.key_footer import KeyFooter
from jobs.dataplane.not_copyable import NotCopyableError
from jobs.dataplane.row_group_copy import one_file_name
from jobs.dataplane.slice_merge import MergeCounts, MergeRules, SliceFiles, merge_slice, opened_base
from jobs.dataplane.split_writer import MIN_ROW_GROUP_BYTES
from jobs.format.meta_columns import FILE_NAME, RECORD_KEY
from jobs.storage.announced_file import AnnouncedFile
from jobs.storage.paths import BATCH_ROWS

if TYPE_CHECKING:
    from jobs.contract import Json
    from jobs.dataplane.parquet_layout import Layout
    from jobs.dataplane.parquet_writer import ParquetWriter
    from jobs.dataplane.slice_merge import MergedSlice
    from jobs.storage.paths import Output, Storage

# Arrow bytes of a row group: about half of the memory that a task takes beside those of the merge.
_ROW_GROUP_BYTES = 96 * 1024 * 1024


@dataclass(frozen=True)
class Compaction:
    """The settings that all tasks of one plan share."""

    storage: Storage
    instant: str
    rules: MergeRules
    layout: Layout  # The layout of files with the table's latest schema.
    codec: str | None  # Replaces the codec of the old base files, if given.
    # Column chunks are copied (`kept_chunks`) if row groups have at least this many bytes on average, not compressed.
    copies_from: int = MIN_ROW_GROUP_BYTES


@dataclass(frozen=True)
class CompactedFile:
    """One written base file as its task reports it."""

    partition: str
    file_id: str
    file_name: str
    bytes: int
    counts: MergeCounts
    seconds: float  # Duration of all of the task's work.

    def write_stat(self, base: str | None) -> Json:
        """Returns Hudi's `HoodieWriteStat` of the file as JSON, as Hudi's own executor makes it
        (`FileGroupReaderBasedMergeHandle.close`). `base` is the path of the file that it replaces."""
        counts, milliseconds = self.counts, int(self.seconds * 1000)
        old = base.rpartition("/")[2] if base else None
        return {
            "partitionPath": self.partition,
            "fileId": self.file_id,
            "path": f"{self.partition}/{self.file_name}".lstrip("/"),
            "prevCommit": old.rpartition("_")[2].partition(".")[0] if old else "null",
            "prevBaseFile": old,
            "numWrites": counts.rows,
            "numUpdateWrites": counts.updates,
            "numInserts": counts.inserts,
            "numDeletes": counts.deletes,
            "totalWriteBytes": self.bytes,
            "fileSizeInBytes": self.bytes,
            "totalWriteErrors": 0,
            "totalLogRecords": counts.log_records,
            "totalUpdatedRecordsCompacted": counts.log_keys,
            "totalLogFilesCompacted": counts.log_files,
            "totalLogSizeCompacted": counts.log_bytes,
            "totalLogBlocks": counts.log_blocks,
            "totalCorruptLogBlock": counts.corrupt_blocks,
            "totalRollbackBlocks": counts.rollback_blocks,
            "totalLogReadTimeMs": milliseconds,
            "runtimeStats": {"totalScanTime": milliseconds, "totalUpsertTime": milliseconds, "totalCreateTime": 0},
        }


def compact_slice(work: Compaction, files: SliceFiles, token: str) -> CompactedFile:
    """Merges a slice and writes its new base file, streaming.

    `token` is Hudi's write token, unique for the attempt of the task. So a file of another attempt has another name.
    Hudi's commit does not name that file, and removes it by its marker. Raises `NotProvedError` for a slice that Hudi
    has to merge; then no file remains, except for the marker.
    """
    began = time.monotonic()
    merged = merge_slice(work.storage, files, work.rules, work.layout.schema, batch_rows=BATCH_ROWS)
    file_name = f"{files.file_id}_{token}_{work.instant}.parquet"
    new = AnnouncedFile(work.storage, work.instant, files.partition_path, file_name, "MERGE")
    with opened_base(work.storage, files) as base:
        size = None if base is None or not merged.keeps_base_rows else _copied(work, merged, base, new)
        if size is None:
            size = _of_rows(work, merged, base, new)
    seconds = time.monotonic() - began
    return CompactedFile(files.partition_path, files.file_id, file_name, size, merged.counts, seconds)


def _copied(work: Compaction, merged: MergedSlice, base: pa.NativeFile, new: AnnouncedFile) -> int | None:
    """Writes the file with copied column chunks, and returns its bytes; None if it has to be written from its rows."""
    layout, keys = _beginning(work, merged, base)
    try:
        return kept_chunks.copied(merged, base, layout, keys, new, least_bytes=work.copies_from)
    except NotCopyableError:
        return None


def _of_rows(work: Compaction, merged: MergedSlice, base: pa.NativeFile | None, announced: AnnouncedFile) -> int:
    """Writes all rows, and returns the bytes of the file."""
    with _NewFile(*_beginning(work, merged, base), announced) as new:
        for batch in merged.batches(base):
            new.add(batch)
        return new.close()


def _beginning(work: Compaction, merged: MergedSlice, base: pa.NativeFile | None) -> tuple[Layout, KeyFooter | None]:
    """Returns the layout of the new file and the footer entries of its keys, which already count the keys that the file
    certainly has."""
    kind = work.layout.keys
    if base is None:
        return work.layout, KeyFooter(kind) if kind else None
    with work.storage.read_parquet(merged.files.base or "", opened=base) as old:
        layout = work.layout.compressed_like(old, work.codec)
        if kind is None or not merged.keeps_base_rows:
            return layout, KeyFooter(kind) if kind else None
        return layout, KeyFooter.beginning_with(old.metadata.metadata or {}, old.metadata.num_rows, kind)


class _NewFile(AbstractContextManager["_NewFile"]):
    """The base file that is being written, one row group after the other."""

    def __init__(self, layout: Layout, keys: KeyFooter | None, announced: AnnouncedFile) -> None:
        self._announced, self._layout = announced, layout
        self._schema = _written(layout.schema, layout.schema)
        self._keys = keys
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = self._waiting_rows = 0
        self._open: tuple[Output, ParquetWriter] | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        if self._keys:
            self._keys.add(batch.column(batch.schema.get_field_index(RECORD_KEY)))
        if self._open is None and not self._waiting:
            self._schema = _written(batch.schema, self._layout.schema)
        name = one_file_name(self._announced.name, batch.num_rows)
        columns = [
            name if field.name == FILE_NAME else without_hidden_nulls(batch.column(field.name))
            for field in self._schema
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        self._waiting_rows += batch.num_rows
        if self._waiting_bytes >= _ROW_GROUP_BYTES or self._waiting_rows >= (self._layout.row_group_rows or 1 << 62):
            self._flush()

    def close(self) -> int:
        """Completes the file and returns its bytes."""
        self._flush()
        output, writer = self._opened()
        writer.add_key_value_metadata(self._layout.footer(self._keys))
        writer.close()
        size = output.close()
        self._open = None
        return size

    def __exit__(self, *_: object) -> None:
        """Leaves no file after an error; the marker stays until the instant ends."""
        if self._open:
            output, writer = self._open
            writer.abandon()
            output.abandon()

    def _flush(self) -> None:
        if not self._waiting_rows:
            return
        # The dictionaries are unified, because the writer stops using one when the next batch has another.
        table = pa.Table.from_batches(self._waiting).unify_dictionaries()
        self._waiting, self._waiting_bytes, self._waiting_rows = [], 0, 0
        self._opened(table)[1].write_table(table, row_group_size=table.num_rows)

    def _opened(self, first: pa.Table | None = None) -> tuple[Output, ParquetWriter]:
        if self._open is None:
            output = self._announced.create()
            self._open = output, replace(self._layout, schema=self._schema).writer(output.stream, first)
        return self._open


def _written(merged: pa.Schema, latest: pa.Schema) -> pa.Schema:
    """Returns the schema of the batches that are written: they are as in `latest`, except that strings may be in Arrow
    dictionaries. So is the file name, which is stored once with a small number per row."""
    of_name = pa.dictionary(pa.int8(), pa.string())
    kinds = {field.name: field.type for field in merged} | {FILE_NAME: of_name}
    return pa.schema([field.with_type(kinds[field.name]) for field in latest], latest.metadata)
