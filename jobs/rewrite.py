"""The Arrow data plane: reads base files, routes or sorts their rows, writes base files that Hudi accepts.

Runs inside Spark's Python workers and knows neither Spark nor the JVM. Rows are copied as they are, meta columns
included (`_hoodie_commit_time` keeps incremental queries and time travel right); only `_hoodie_file_name` changes.
"""

from __future__ import annotations

import uuid
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from jobs import batches, bucket_hash, parquet_layout
from jobs.contract import Problem
from jobs.errors import RefusedError
from jobs.key_footer import KeyFooter
from jobs.space_curve import sort_indices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    import pyarrow.parquet as pq
    from numpy.typing import NDArray

    from jobs.parquet_layout import Layout
    from jobs.storage import Output, Storage

RECORD_KEY, FILE_NAME, PARTITION_PATH = "_hoodie_record_key", "_hoodie_file_name", "_hoodie_partition_path"
# Rows wait in memory until these many Arrow bytes, of all children together, force the largest to write a row group.
# So row groups get about twice as large as if each child had its own share of the memory.
BUFFER_BYTES = 144 * 1024 * 1024
# Pages of very wide rows may take so much that less is left for that; but row groups should not get tiny either.
ARROW_BYTES = 192 * 1024 * 1024
LEAST_ROW_GROUP_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class Rewrite:
    """What all tasks of one replacement have in common.

    `hash_fields` are the index key fields. `sort_by` and `curve` (linear, zorder, hilbert) order the rows of each
    output; without `sort_by` they keep their order. `codec` overrides the input's compression.
    """

    storage: Storage
    instant: str
    hash_fields: tuple[str, ...]
    sort_by: tuple[str, ...] = ()
    curve: str = "linear"
    codec: str | None = None


@dataclass(frozen=True)
class Source:
    """One file slice to rewrite: bucket `bucket` of `old` becomes the buckets `children`, counted modulo `new`.

    `base_file` is None of a slice with logs, whose rows come merged; then `model` is the base file whose codec, use of
    dictionaries and key entries the children get, None for Hudi's defaults.
    """

    partition: str
    file_id: str
    bucket: int
    new: int
    children: tuple[int, ...]
    base_file: str | None
    model: str | None = None


@dataclass(frozen=True)
class WrittenFile:
    """One base file that was written. `source` is the file id of the slice that its rows come from."""

    partition: str
    source: str
    file_id: str
    file_name: str
    rows: int
    bytes: int


def rewrite_base_file(
    work: Rewrite, source: Source, token: str, progress: Callable[[int], None] | None = None
) -> list[WrittenFile]:
    """Rewrites a slice that has no log files, streaming. `progress` is told the bytes of input that were read.

    `token` is Hudi's write token, unique for the task. Memory: less than 512 MiB for the process, whatever the size of
    the file, as long as its pages are small (Hudi looks at a page's size after 100 rows: rows of 1 MiB make pages of
    100 MiB, and each page is held twice); the whole slice when it is sorted.
    """
    path = source.base_file or ""
    with work.storage.read_parquet(path, plain=(RECORD_KEY, *work.sort_by)) as reader:
        layout = parquet_layout.of_file(reader, work.codec)
        parquet_layout.require_reproducible(layout, reader.schema, path.rpartition("/")[2])
        layout = replace(layout, schema=_with_types(layout.schema, reader.schema_arrow))
        with Children(work, source, layout, token) as children:
            # Each row has a new file name anyway, and the old ones would be the widest column.
            columns = [name for name in layout.schema.names if name != FILE_NAME]
            for batch in batches.of_file(reader, columns):
                children.add(batch)
            if progress:
                progress(work.storage.size([path]))
            return children.close()


def rewrite_merged_rows(
    work: Rewrite, routes: Routes, layout: Layout, token: str, merged: Iterable[pa.RecordBatch]
) -> Iterator[WrittenFile]:
    """Rewrites slices whose rows Hudi has merged from base file and logs, as they come.

    A task sees the rows of one slice, and knows which by their hash. A slice that is not to be rewritten is passed
    over. Rows of two slices in one task mean that one of them lies in the wrong slice, and would get lost: that raises
    `RefusedError`.
    """
    only: tuple[str, int] | None = None
    children: Children | None = None
    written: list[WrittenFile] = []
    with ExitStack() as whatever_ends_it:
        for batch in merged:
            for key, rows in routes.split(batch, work.hash_fields):
                if only is None:
                    only = key
                    if source := routes.sources.get(key):
                        found = Children(work, source, followed(work, layout, source), token)
                        children = whatever_ends_it.enter_context(found)
                elif key != only:
                    raise RefusedError([misplaced(*only)])
                if children:
                    children.add(conformed(rows, layout.schema))
        if children:
            written = children.close()
    yield from written


def followed(work: Rewrite, layout: Layout, source: Source) -> Layout:
    """The layout of a merged slice's children: like the model, if there is one."""
    if source.model is None:
        return layout
    with work.storage.read_parquet(source.model) as model:
        return layout.like(model, work.codec)


@dataclass(frozen=True)
class Routes:
    """Finds the slice of a merged row. `old` is each partition's number of buckets before.

    `sources` are the slices to rewrite by (partition path, bucket), `known` all slices that the table has.
    """

    sources: dict[tuple[str, int], Source]
    known: frozenset[tuple[str, int]]
    old: dict[str, int]

    def split(
        self, batch: pa.RecordBatch, hash_fields: tuple[str, ...]
    ) -> Iterator[tuple[tuple[str, int], pa.RecordBatch]]:
        """The rows of each slice by the hash of their keys; `RefusedError` for a row in another bucket's file."""
        codes = bucket_hash.hash_codes(batch.column(batch.schema.get_field_index(RECORD_KEY)), hash_fields)
        lies_in = _buckets_of_files(batch.column(batch.schema.get_field_index(FILE_NAME)))
        paths = batch.column(batch.schema.get_field_index(PARTITION_PATH)).dictionary_encode()
        for number, partition in enumerate(paths.dictionary.to_pylist()):
            here = paths.indices.to_numpy(zero_copy_only=False) == number
            buckets = (codes & 0x7FFFFFFF) % self.old[partition]
            for bucket in np.unique(buckets[here]).tolist():
                key = (partition, bucket)
                mask = here & (buckets == bucket)
                elsewhere = (lies_in[mask] >= 0) & (lies_in[mask] != bucket)
                if key not in self.known or elsewhere.any():
                    raise RefusedError([misplaced(partition, bucket)])
                yield key, batch if mask.all() else batch.filter(pa.array(mask))


class Children:
    """The base files that one slice becomes, one for each child bucket, also where no row goes there.

    All of them are written because only what a commit writes counts in Hudi's conflict detection.
    """

    def __init__(self, work: Rewrite, source: Source, layout: Layout, token: str) -> None:
        self._work = work
        self._source = source
        self._outputs = [BaseFile(work, source, layout, bucket, token) for bucket in source.children]
        self._by_bucket = dict(zip(source.children, self._outputs, strict=True))

    def add(self, batch: pa.RecordBatch) -> None:
        if len(self._outputs) == 1 and not self._work.hash_fields:
            self._outputs[0].add(batch)
            self._flush_what_is_large()
            return
        keys = batch.column(batch.schema.get_field_index(RECORD_KEY))
        buckets = bucket_hash.bucket_ids(keys, self._work.hash_fields, self._source.new)
        routed = 0
        for bucket, output in self._by_bucket.items():
            mask = buckets == bucket
            count = int(np.count_nonzero(mask))
            if count == batch.num_rows:
                output.add(batch)
            elif count:
                output.add(batch.filter(pa.array(mask)))
            routed += count
        if routed != batch.num_rows:
            raise RefusedError([misplaced(self._source.partition, self._source.bucket)])
        self._flush_what_is_large()

    def _flush_what_is_large(self) -> None:
        # Sorted output needs all rows at once.
        if self._work.sort_by:
            return
        for output in self._outputs:
            if output.is_row_group:
                output.flush()
        waiting = sum(output.waiting_bytes for output in self._outputs)
        while waiting > BUFFER_BYTES or pa.total_allocated_bytes() > ARROW_BYTES:
            largest = max(self._outputs, key=lambda output: output.waiting_bytes)
            if largest.waiting_bytes < LEAST_ROW_GROUP_BYTES:
                break
            waiting -= largest.waiting_bytes
            largest.flush()

    def close(self) -> list[WrittenFile]:
        return [output.close() for output in self._outputs]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            for output in self._outputs:
                output.abandon()


class BaseFile:
    """One base file being written, with the marker by which Hudi finds it when the instant is rolled back."""

    def __init__(self, work: Rewrite, source: Source, layout: Layout, bucket: int, token: str) -> None:
        self._work = work
        self._source = source
        self._layout = replace(layout, schema=_with_one_file_name(layout.schema))
        # Hudi's own shape of a bucket's file id: eight digits, then the rest of a random UUID (BucketIdentifier).
        self.file_id = f"{bucket:08d}{str(uuid.uuid4())[8:]}-0"
        self.file_name = f"{self.file_id}_{token}_{work.instant}.parquet"
        _create_marker(work, source.partition, self.file_name)
        self._open: tuple[Output, pq.ParquetWriter] | None = None
        self._keys = KeyFooter(layout.keys) if layout.keys else None
        self._waiting: list[pa.RecordBatch] = []
        self.waiting_bytes = 0
        self._waiting_rows = 0
        self._rows = 0

    @property
    def is_row_group(self) -> bool:
        """Whether as many rows wait as a row group of the input has."""
        return self._layout.row_group_rows is not None and self._waiting_rows >= self._layout.row_group_rows

    def add(self, batch: pa.RecordBatch) -> None:
        if self._keys:
            self._keys.add(batch.column(batch.schema.get_field_index(RECORD_KEY)))
        schema = self._layout.schema
        names = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), batch.num_rows), [self.file_name])
        columns = [names if name == FILE_NAME else batch.column(name) for name in schema.names]
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        self._waiting.append(batch)
        self.waiting_bytes += batch.nbytes
        self._waiting_rows += batch.num_rows

    def close(self) -> WrittenFile:
        self.flush()
        output, writer = self._opened()
        if self._keys:
            writer.add_key_value_metadata(self._keys.entries())
        writer.close()
        size = output.close()
        source = self._source
        return WrittenFile(source.partition, source.file_id, self.file_id, self.file_name, self._rows, size)

    def abandon(self) -> None:
        """Leaves no file; the marker stays, and goes when the instant ends."""
        if self._open:
            output, writer = self._open
            with suppress(OSError, pa.ArrowException):
                writer.close()
            output.abandon()

    def flush(self) -> None:
        """Writes the rows that wait as one row group."""
        if not self._waiting:
            return
        # The writer goes on without a dictionary where one follows that is not the same.
        table = pa.Table.from_batches(self._waiting).unify_dictionaries()
        self._rows += self._waiting_rows
        self._waiting, self.waiting_bytes, self._waiting_rows = [], 0, 0
        if self._work.sort_by:
            table = table.take(sort_indices(table, self._work.sort_by, self._work.curve))
        widest = max(column.nbytes for column in table.itercolumns()) / max(table.num_rows, 1)
        self._opened(widest)[1].write_table(table, row_group_size=max(1, table.num_rows))

    def _opened(self, widest_value: float = 0) -> tuple[Output, pq.ParquetWriter]:
        if self._open is None:
            output = self._work.storage.create(self._source.partition, self.file_name)
            self._open = output, self._layout.writer(output.stream, widest_value)
        return self._open


def _with_types(schema: pa.Schema, other: pa.Schema) -> pa.Schema:
    """Dictionaries of strings instead of strings, where `other` has them; in Parquet it is all the same."""
    return pa.schema([field.with_type(other.field(field.name).type) for field in schema], schema.metadata)


def _with_one_file_name(schema: pa.Schema) -> pa.Schema:
    """The file name once and a small number for each row, instead of its 75 bytes; in Parquet it is all the same."""
    index = schema.get_field_index(FILE_NAME)
    return schema.set(index, schema.field(index).with_type(pa.dictionary(pa.int8(), pa.string())))


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the columns, the order and the types of `schema`; raises `ArrowInvalid` when values do not fit."""
    columns = []
    for field in schema:
        column = batch.column(batch.schema.get_field_index(field.name))
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _buckets_of_files(names: pa.Array) -> NDArray[np.int32]:
    """The bucket of each row's file by its `_hoodie_file_name` (in logs: its file id), -1 where that tells none."""
    encoded = names.dictionary_encode()
    found = [int(name[:8]) if name and name[:8].isdigit() else -1 for name in encoded.dictionary.to_pylist()]
    places = encoded.indices.fill_null(len(found)).to_numpy()
    buckets: NDArray[np.int32] = np.asarray([*found, -1], dtype=np.int32).take(places)
    return buckets


def _create_marker(work: Rewrite, partition: str, file_name: str) -> None:
    """Hudi's direct marker of a file to come (`DirectWriteMarkers`): without it, a rollback would miss the file."""
    work.storage.create_empty(".hoodie", ".temp", work.instant, partition, f"{file_name}.marker.CREATE")


def misplaced(partition: str, bucket: int) -> Problem:
    return Problem(
        "bucket-index-contradicted",
        "Rows lie in files of another bucket than their keys say",
        f"partition '{partition}', file group of bucket {bucket}",
        "Was the table written with another number of buckets, or other hash fields? An audit tells.",
    )
