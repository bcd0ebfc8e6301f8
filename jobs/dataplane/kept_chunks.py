"""Writes a compacted base file from the column chunks of the old one, where the logs change no value of a column.

An update mostly changes few of a table's columns. So of each row group only the chunks with changes are encoded again,
and the others are copied as bytes (`column_chunks`): first the keys tell which rows the logs replace, then the values
of these rows are compared with the values in the logs, column by column. Rows that only the logs have become row groups
at the end. Runs inside Spark's Python workers and depends on neither Spark nor the JVM.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from jobs.dataplane import column_chunks, parquet_layout, table_types
from jobs.dataplane.appended_rows import AppendedRows
from jobs.dataplane.arrow_of_spark import without_hidden_nulls
from jobs.dataplane.column_chunks import CopyWriter, RawFile
from jobs.dataplane.not_copyable import NotCopyableError
from jobs.dataplane.row_group_copy import file_of, one_file_name
from jobs.errors import RefusedError
from jobs.format.meta_columns import FILE_NAME, PARTITION_PATH, RECORD_KEY
from jobs.storage.paths import bytes_per_row, rows_that_fit

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from numpy.typing import NDArray

    from jobs.dataplane.key_footer import KeyFooter
    from jobs.dataplane.parquet_layout import Layout
    from jobs.dataplane.replaced_rows import Replacement
    from jobs.dataplane.slice_merge import MergedSlice
    from jobs.storage.announced_file import AnnouncedFile

    Places = NDArray[np.int64]

# Limits on the bytes of one column of a row group, encoded and decoded, and of its changed columns when they are
# written.
_MOST_OF_COLUMN, _MOST_HELD = 48 * 1024 * 1024, 64 * 1024 * 1024
# `MergedSlice` proves that these columns are the same in all versions of a row.
_NEVER_CHANGED = frozenset({RECORD_KEY, PARTITION_PATH})


def copied(
    merged: MergedSlice,
    file: pa.NativeFile,
    layout: Layout,
    keys: KeyFooter | None,
    announced: AnnouncedFile,
    *,
    least_bytes: int,
) -> int:
    """Writes the new file and returns its bytes. `file` is the slice's base file; the logs must delete no key.

    The row groups must have at least `least_bytes` on average, not compressed.

    Raises NotCopyableError if all rows have to be written; then no file remains, and the slice's counts are unchanged,
    but `keys` must not be used any more. Raises NotProvedError as the merge does.
    """
    raw = RawFile(file)
    file_name = announced.name
    used, replacement = merged.begun()
    with merged.base_file(replacement, file) as reader:
        _require_copyable(layout, raw, reader, least_bytes)
        output = announced.create()
        before = merged.counts
        merged.counts = before.copy()
        try:
            new = _NewFile(merged, replacement, layout, CopyWriter(output.stream, raw), file_name)
            for number, group in enumerate(raw.groups):
                if group.rows:
                    new.add_group(raw, reader, number, new.found(reader, number, used, keys))
            with AppendedRows(layout, new.writer, file_name) as appended:
                for batch in merged.of_logs_alone(used, replacement):
                    if keys:
                        keys.add(batch.column(RECORD_KEY))
                    appended.add(batch)
            new.writer.close(layout.footer(keys))
            return output.close()
        except BaseException:
            merged.counts = before
            with suppress(OSError, pa.ArrowException):
                output.abandon()
            raise


def _require_copyable(layout: Layout, raw: RawFile, reader: pq.ParquetFile, least_bytes: int) -> None:
    groups = [group for group in raw.groups if group.rows]
    # A file with many small row groups is read more slowly, and inserts may add another one.
    if sum(group.uncompressed_bytes for group in groups) < least_bytes * (len(groups) + 1):
        raise NotCopyableError("small row groups")
    for group in groups:
        if column_chunks.SORTING in group.struct:
            raise NotCopyableError("a sorted row group")
        for chunk in group.chunks:
            if column_chunks.CODECS.get(chunk.codec) != layout.codec:
                raise NotCopyableError("chunks of another codec")
            if chunk.number(column_chunks.UNCOMPRESSED) > _MOST_OF_COLUMN:
                raise NotCopyableError("a large column")
    if layout.annotations.places:
        raise NotCopyableError("types that Arrow does not know")
    try:
        parquet_layout.require_reproducible(layout, reader.schema, "the base file")
    except RefusedError as error:
        raise NotCopyableError("another schema than the table's latest") from error


class _NewFile:
    """The file that is being written, row group by row group."""

    def __init__(
        self, merged: MergedSlice, replacement: Replacement, layout: Layout, writer: CopyWriter, file_name: str
    ) -> None:
        self._merged, self._replacement, self._layout = merged, replacement, layout
        self.writer, self._file_name = writer, file_name

    def found(self, reader: pq.ParquetFile, number: int, used: NDArray[np.bool_], keys: KeyFooter | None) -> Places:
        """Returns `MergedSlice.found` of all rows of a row group, whose keys are added to `keys`."""
        found = []
        for batch in self._merged.keys_of(reader, number, PARTITION_PATH):
            self._merged.require_own(batch)
            if keys:
                keys.add(batch.column(RECORD_KEY))
            found.append(self._merged.found(batch, used))
        return np.concatenate(found)

    def add_group(self, raw: RawFile, reader: pq.ParquetFile, number: int, found: Places) -> None:
        """Writes a row group of the base file with the changes of the logs."""
        merged = self._merged
        if len(found) != raw.groups[number].rows:
            raise NotCopyableError("a row group without the keys of its rows")
        rows = np.flatnonzero(found >= 0)
        places = merged.newest.places[found[rows]]
        schema = self._layout.schema
        instead = []
        if FILE_NAME in schema.names:
            names = one_file_name(self._file_name, len(found))
            instead.append(file_of(self._layout, raw, pa.table([names], [FILE_NAME])))
        batch_rows = rows_that_fit(bytes_per_row(reader, number)) if len(rows) else 0
        for name in schema.names if len(rows) else ():
            if name == FILE_NAME or name in _NEVER_CHANGED:
                continue
            column = _column(reader, number, schema.field(name), batch_rows)
            changed = self._replacement.changed(name, column, rows, places)
            if changed is not None:
                instead.append(file_of(self._layout, raw, pa.table([without_hidden_nulls(changed)], [name])))
                if sum(chunk.length for made in instead for chunk in made.groups[0].chunks) > _MOST_HELD:
                    raise NotCopyableError("large changes")
            merged.newest.rows.release()
        self.writer.add(raw, number, instead)
        merged.counts.updates += len(rows)
        merged.counts.rows += len(found)


def _column(reader: pq.ParquetFile, number: int, wanted: pa.Field, batch_rows: int) -> pa.Array:
    """Returns a column of a row group. Raises NotCopyableError if it is too large to be decoded at once."""
    parts: list[pa.Array] = []
    size = 0
    for batch in reader.iter_batches(batch_rows, row_groups=[number], columns=[wanted.name], use_threads=False):
        parts.append(table_types.conformed(batch, pa.schema([wanted])).column(0))
        size += 0 if pa.types.is_dictionary(parts[0].type) else batch.nbytes
        if size > _MOST_OF_COLUMN:
            raise NotCopyableError("a large column")
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
