"""Joins small base files into one at about the speed of a copy: row groups are copied as bytes where that is certain to
be right, and only the other file slices are decoded. Runs inside Spark's Python workers and depends on neither Spark
nor the JVM.

The row groups of a base file are copied if its slice has no log files, and if it has the table's latest schema, today's
calendar, and the codec and the form of the first copied file. Small row groups are not copied, because many of them
slow readers down. Only `_hoodie_file_name` is written anew. The Bloom filter and the key range are merged from the
footers, or made from the keys where a footer does not suffice. Other slices are merged by Hudi's rules (`slice_merge`),
and their rows become row groups at the end.
"""

from __future__ import annotations

import re
import uuid
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from jobs.dataplane import column_chunks, constant_column, footer_entries, parquet_layout
from jobs.dataplane.appended_rows import AppendedRows
from jobs.dataplane.bloom_filter import SIMPLE
from jobs.dataplane.column_chunks import CopyWriter, RawFile
from jobs.dataplane.copied_keys import StoredKeys, stored_keys
from jobs.dataplane.key_digest import KeyDigest
from jobs.dataplane.key_footer import KeyFooter, filter_kind
from jobs.dataplane.not_copyable import DamagedFooterError, EncryptedError, NotCopyableError
from jobs.dataplane.row_group_copy import file_of
from jobs.dataplane.slice_merge import MergeCounts, merge_slice, opened_base
from jobs.errors import NotProvedError, RefusedError
from jobs.format.meta_columns import FILE_NAME, RECORD_KEY
from jobs.format.written_file import WrittenFile
from jobs.problems.tables import ENCRYPTED_BASE_FILES
from jobs.storage.announced_file import AnnouncedFile
from jobs.storage.paths import BATCH_ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow.parquet as pq

    from jobs.dataplane.compacted_file import Compaction
    from jobs.dataplane.merge_rules import SliceFiles
    from jobs.dataplane.parquet_layout import Layout

# A file with more column chunks takes readers long to open, and could not be copied again (`RawFile`).
_MOST_CHUNKS = 10_000
# Writers without known errors in statistics and encodings, about which readers decide by the writer's name
# (`CorruptStatistics` and `CorruptDeltaByteArrays` of parquet-mr, `ApplicationVersion` of Arrow).
_SOUND_WRITERS = re.compile(rb"parquet-mr version 1\.1[0-9]\.|parquet-cpp-arrow version [1-9][0-9]\.")


@dataclass(frozen=True)
class JoinedFile:
    """The written file, the slices that were copied or decoded, and how many rows their base files had."""

    written: WrittenFile
    copied: tuple[SliceFiles, ...]
    decoded: tuple[SliceFiles, ...]
    rows_before: int
    counts: MergeCounts  # What the merges of the decoded slices counted.


def join(work: Compaction, slices: tuple[SliceFiles, ...], token: str) -> JoinedFile:
    """Writes one file from slices of one partition, the first of which decides about its form.

    `token` is Hudi's write token, unique for the attempt of the task. Raises NotProvedError if Hudi has to join the
    files, and RefusedError for encrypted files. Then no file remains, except for the marker.
    """
    if work.layout.annotations.places:
        raise NotProvedError("the table has types that Arrow does not know")
    try:
        with _NewFile(work, slices, token) as new:
            return new.joined(copies=True)
    except EncryptedError as error:
        where = f"partition '{slices[0].partition_path}'"
        raise RefusedError([ENCRYPTED_BASE_FILES.because(f"{where}: {error}")]) from error
    except RefusedError as error:
        raise NotProvedError(error.detail) from error
    except DamagedFooterError as error:
        raise NotProvedError(f"a base file has {error}") from error
    except NotCopyableError:
        # A footer describes its row groups wrongly, or decoded rows would be stored in another form than copied ones.
        with _NewFile(work, slices, token) as new:
            return new.joined(copies=False)


class _NewFile(AbstractContextManager["_NewFile"]):
    """The file that is being written."""

    def __init__(self, work: Compaction, slices: tuple[SliceFiles, ...], token: str) -> None:
        self._work, self._slices, self._layout = work, slices, work.layout
        self._partition = slices[0].partition_path
        # Hudi's form of a new file group (`FSUtils.createNewFileId`).
        self._file_id = f"{uuid.uuid4()}-0"
        self._name = f"{self._file_id}_{token}_{work.instant}.parquet"
        self._output = AnnouncedFile(work.storage, work.instant, self._partition, self._name, "CREATE").create()
        self._writer = CopyWriter(self._output.stream, trusts_indexes=True)
        self._form: _Form | None = None
        self._keys: KeyFooter | None = None
        self._foreign: dict[bytes, bytes] = {}
        self._chunks = self._copied_rows = self._decoded_rows = 0
        self._counts = MergeCounts()
        self._stored: list[StoredKeys] = []  # The keys of the copied row groups.

    def joined(self, *, copies: bool) -> JoinedFile:
        copied: list[SliceFiles] = []
        decoded: list[SliceFiles] = []
        for files in self._slices:
            (copied if copies and self._is_copied(files) else decoded).append(files)
        if self._form is None:
            self._begin_decoded(decoded)
        with AppendedRows(self._layout, self._writer, self._name) as rows:
            for files in decoded:
                self._decode(files, rows)
        if self._writer.like is None:
            self._writer.like = file_of(self._layout, None, self._layout.schema.empty_table())
        if self._writer.rows != self._copied_rows + self._counts.rows:
            raise NotProvedError(f"{self._writer.rows} rows were written, which is not the number that was read")
        self._writer.close({**self._foreign, **self._layout.footer(self._keys)})
        size = self._output.close()
        self._require_same_keys()
        written = WrittenFile(
            self._partition,
            self._slices[0].file_id,
            self._file_id,
            self._name,
            self._writer.rows,
            size,
            str(KeyDigest()),
            copied=not decoded,
        )
        return JoinedFile(written, tuple(copied), tuple(decoded), self._copied_rows + self._decoded_rows, self._counts)

    def _require_same_keys(self) -> None:
        """Reads the new file again, and raises NotProvedError unless it has all rows, and its copied row groups have
        the same keys as before."""
        storage = self._work.storage
        path = "/".join(part for part in (storage.root, self._partition, self._name) if part)
        with storage.open_file(path) as file, storage.read_parquet(path, opened=file) as reader:
            found = reader.metadata.num_rows, stored_keys(reader, file)[: len(self._stored)]
        if found != (self._copied_rows + self._counts.rows, self._stored):
            raise NotProvedError("the new file has other rows than were read")

    def _is_copied(self, files: SliceFiles) -> bool:
        """Copies the row groups of a slice, and returns whether that was allowed."""
        if files.base is None or files.logs:
            return False
        storage = self._work.storage
        with storage.open_file(f"{storage.root}/{files.base}", whole=True) as file:
            try:
                raw = RawFile(file)
                with storage.read_parquet(files.base, opened=file) as reader:
                    form = self._form or _Form.of(self._work, raw, reader)
                    form.require(raw)
                    self._require_large(raw)
                    _require_calendar(reader, raw.entries)
                    stored = stored_keys(reader, file)
            except (EncryptedError, DamagedFooterError):
                raise
            except (NotCopyableError, NotProvedError, RefusedError):
                # Nothing was written yet, so its rows can still be decoded.
                return False
            if self._form is None:
                self._form, self._layout = form, form.layout
                self._keys = KeyFooter(form.layout.keys) if form.layout.keys else None
            self._stored += stored
            self._add_keys(files, raw, file)
            self._foreign = {**footer_entries.foreign(raw.entries), **self._foreign}
            for number, group in enumerate(raw.groups):
                if group.rows:
                    name = constant_column.chunk_of(raw, FILE_NAME, self._name, group.rows, self._layout.codec)
                    self._writer.add(raw, number, [name])
                    self._chunks += len(group.chunks)
                    self._copied_rows += group.rows
        return True

    def _require_large(self, raw: RawFile) -> None:
        groups = [group for group in raw.groups if group.rows]
        if sum(group.uncompressed_bytes for group in groups) < self._work.copies_from * len(groups):
            raise NotCopyableError("small row groups")
        if self._chunks + sum(len(group.chunks) for group in groups) > _MOST_CHUNKS:
            raise NotCopyableError("many row groups")

    def _add_keys(self, files: SliceFiles, raw: RawFile, file: pa.NativeFile) -> None:
        rows = sum(group.rows for group in raw.groups)
        if self._keys is None or self._keys.take(raw.entries, rows):
            return
        with self._work.storage.read_parquet(files.base or "", opened=file) as reader:
            for batch in reader.iter_batches(BATCH_ROWS, columns=[RECORD_KEY], use_threads=False):
                if batch.column(0).null_count:
                    raise NotProvedError("a row of a base file has no key")
                self._keys.add(batch.column(0))

    def _begin_decoded(self, slices: list[SliceFiles]) -> None:
        """Takes the form of a file without copied row groups from the first base file."""
        storage, kind = self._work.storage, self._work.layout.keys
        if base := next((files.base for files in slices if files.base), None):
            with storage.read_parquet(f"{storage.root}/{base}") as reader:
                self._layout = self._work.layout.compressed_like(reader, self._work.codec)
        self._keys = KeyFooter(kind) if kind else None

    def _decode(self, files: SliceFiles, rows: AppendedRows) -> None:
        schema, storage = self._layout.schema, self._work.storage
        # Without dictionaries, the batches of all slices have one schema.
        merged = merge_slice(storage, files, self._work.rules, schema, batch_rows=BATCH_ROWS, plain=tuple(schema.names))
        with opened_base(storage, files) as base:
            if base is not None:
                with storage.read_parquet(files.base or "", opened=base) as reader:
                    _require_calendar(reader, reader.metadata.metadata)
            for batch in merged.batches(base):
                if self._keys:
                    self._keys.add(batch.column(RECORD_KEY))
                rows.add(batch)
        self._decoded_rows += merged.rows_of_base
        self._counts = self._counts + merged.counts

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        """Leaves no file after an error; the marker stays until the instant ends."""
        if error is not None:
            with suppress(OSError, pa.ArrowException):
                self._output.abandon()


@dataclass(frozen=True)
class _Form:
    """What all copied files have in common, taken from the first of them."""

    first: RawFile
    layout: Layout  # The layout of rows that are not copied.

    @classmethod
    def of(cls, work: Compaction, raw: RawFile, reader: pq.ParquetFile) -> Self:
        """Raises NotCopyableError or RefusedError if the file cannot be copied."""
        layout = work.layout.compressed_like(reader, work.codec)
        parquet_layout.require_reproducible(layout, reader.schema, "the base file")
        kind = filter_kind(raw.entries) if work.layout.keys else None
        # A filter of the type `SIMPLE` cannot grow with the file.
        keys = work.layout.keys if kind is None or kind.code == SIMPLE else kind
        return cls(raw, replace(layout, keys=keys))

    def require(self, raw: RawFile) -> None:
        """Raises NotCopyableError unless the row groups of this file and of the first file can go to one file."""
        if _leaves(raw) != _leaves(self.first):
            raise NotCopyableError("another schema")
        if raw.footer.get(column_chunks.COLUMN_ORDERS) != self.first.footer.get(column_chunks.COLUMN_ORDERS):
            raise NotCopyableError("other orders of values")
        writers = {each.footer.get(column_chunks.CREATED_BY) for each in (raw, self.first)}
        if len(writers) > 1 and not all(each and _SOUND_WRITERS.match(each.value) for each in writers):
            raise NotCopyableError("another writer")
        codecs = {chunk.codec for group in raw.groups for chunk in group.chunks}
        if {column_chunks.CODECS.get(codec) for codec in codecs} - {self.layout.codec}:
            raise NotCopyableError("another codec")
        _, is_old, legacy, _ = footer_entries.calendar(raw.entries)
        if is_old or legacy:
            raise NotCopyableError("dates or timestamps of Spark's old calendar")


def _require_calendar(reader: pq.ParquetFile, entries: Mapping[bytes, bytes] | None) -> None:
    if parquet_layout.has_unknown_calendar(reader, entries):
        raise NotProvedError("nothing tells the calendar of the base file's old dates or timestamps")


def _leaves(raw: RawFile) -> object:
    """Returns the schema without the name of its root, which differs between writers."""
    root, *others = raw.schema.values
    return root.get(5), others
