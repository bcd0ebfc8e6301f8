"""Merges the base file and the log files of one file slice by Hudi's rules, as its compaction does, streaming.

Runs inside Spark's Python workers and depends on neither Spark nor the JVM. The rules are those of Hudi 1.2.0:
`KeyBasedFileGroupRecordBuffer`, `BufferedRecordMergerFactory` and `FileGroupReaderBasedMergeHandle`. The base file is
read in batches, the newest records of the logs are held in memory.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.dataplane import newest_records, parquet_layout, partial_rows, table_types
from jobs.dataplane.log_records import read_logs
from jobs.dataplane.merge_rules import MergeCounts, MergeRules, SliceFiles
from jobs.dataplane.replaced_rows import Replacement
from jobs.errors import NotProvedError
from jobs.format.bucket_hash import string_hash_codes
from jobs.format.meta_columns import FILE_NAME, PARTITION_PATH, RECORD_KEY
from jobs.storage.paths import bytes_per_row, rows_that_fit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow.parquet as pq
    from numpy.typing import NDArray

    from jobs.dataplane.log_records import NewestRecords
    from jobs.storage.paths import Storage

__all__ = ["MergeCounts", "MergeRules", "MergedSlice", "NotProvedError", "SliceFiles", "merge_slice", "opened_base"]

# Each look-up of keys builds a table of the logs' keys. If there are many, the base file's keys are read beforehand, so
# that many are looked up at once.
_KEYS_AT_ONCE = 1 << 19
_VERSIONS = (6, 8, 9)
_MODES = ("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING")


@dataclass
class MergedSlice:
    """The merged rows, with the columns and types of `schema`, except that some texts are dictionaries of texts.

    All batches have one schema, which is known with the first.
    """

    storage: Storage
    files: SliceFiles
    rules: MergeRules
    schema: pa.Schema
    batch_rows: int
    plain: tuple[str, ...]
    newest: NewestRecords
    counts: MergeCounts = field(default_factory=MergeCounts)
    rows_of_base: int = field(default=0, init=False)

    @property
    def keeps_base_rows(self) -> bool:
        """Whether `batches` begin with all keys of the base file, in its order: the logs delete none."""
        return not (self.newest.places < 0).any()

    def batches(self, opened: pa.NativeFile | None = None) -> Iterator[pa.RecordBatch]:
        """Yields the rows: first the rows of the base file in its order, then the rows that only the logs have, in
        Hudi's order. `opened` is the base file, if the caller has opened it.

        `_hoodie_file_name` is null in all rows (if the schema has it): the caller knows the new file's name. The other
        meta columns are those of the row's newest version, as Hudi's compaction leaves them.
        """
        used, replacement = self.begun()
        if self.files.base:
            for batch in self._base_rows(used, replacement, opened):
                self.counts.rows += batch.num_rows
                self.newest.rows.release()
                yield batch
        yield from self.of_logs_alone(used, replacement)

    def begun(self) -> tuple[NDArray[np.bool_], Replacement]:
        """Returns a mark for each key of the logs whether the base file has it (none so far), and the replacement of
        its rows."""
        replacement = Replacement(self.newest.rows.table, self.schema, self.plain)
        self.newest.rows.release()
        return np.zeros(len(self.newest.keys), np.bool_), replacement

    def of_logs_alone(self, used: NDArray[np.bool_], replacement: Replacement) -> Iterator[pa.RecordBatch]:
        """Yields the rows that only the logs have. Call it after all rows of the base file were examined."""
        # The number of rows to expect is the footer's.
        if self.counts.rows != self.rows_of_base - self.counts.deletes:
            raise NotProvedError("the base file came with other rows than its footer counts")
        order = _order_in_hash_map(self.newest.keys)
        order = order[~used[order]]
        places = self.newest.places[order]
        self.counts.deletes += int((places < 0).sum())
        places = places[places >= 0]
        self.counts.inserts += len(places)
        for first in range(0, len(places), self.batch_rows):
            batch = replacement.rows_at(places[first : first + self.batch_rows])
            self.counts.rows += batch.num_rows
            self.newest.rows.release()
            yield batch

    @contextmanager
    def base_file(self, replacement: Replacement, opened: pa.NativeFile | None = None) -> Iterator[pq.ParquetFile]:
        """Opens the base file; `opened` is the base file, if the caller has opened it."""
        path = f"{self.storage.root}/{self.files.base}"
        plain = (RECORD_KEY, *replacement.varied)
        with self.storage.read_parquet(path, plain=plain, rows=True, opened=opened) as reader:
            table_types.require_conformable(reader.schema_arrow, self.schema, "base file", self.rules.with_default)
            if parquet_layout.has_old_calendar(reader):
                raise NotProvedError("the base file's dates or timestamps are those of Spark's old calendar")
            self.rows_of_base = reader.metadata.num_rows
            yield reader

    def _base_rows(
        self, used: NDArray[np.bool_], replacement: Replacement, opened: pa.NativeFile | None
    ) -> Iterator[pa.RecordBatch]:
        with self.base_file(replacement, opened) as reader:
            # The file name changes in every row, and the old names would be the widest column.
            columns = [name for name in reader.schema_arrow.names if name != FILE_NAME]
            for number in range(reader.num_row_groups):
                if not reader.metadata.row_group(number).num_rows:
                    continue
                rows = min(self.batch_rows, rows_that_fit(bytes_per_row(reader, number)))
                found = self._found_before(reader, number, used) if self._keys_at_once > rows else None
                first = 0
                batches = reader.iter_batches(rows, row_groups=[number], columns=columns, use_threads=False)
                for batch in batches:
                    last = first + batch.num_rows
                    places = self.found(batch, used) if found is None else found[first:last]
                    first = last
                    yield self._merged(batch, places, replacement)

    def _found_before(self, reader: pq.ParquetFile, number: int, used: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Returns the result of `found` for a whole row group."""
        return np.concatenate([self.found(batch, used) for batch in self.keys_of(reader, number)])

    @property
    def _keys_at_once(self) -> int:
        return min(4 * len(self.newest.keys), _KEYS_AT_ONCE)

    def keys_of(self, reader: pq.ParquetFile, number: int, *others: str) -> Iterator[pa.RecordBatch]:
        """Yields batches of a row group with the columns that `found` needs, and those in `others`."""
        columns = list(dict.fromkeys((RECORD_KEY, *self._ordering_fields, *others)))
        rows = max(self._keys_at_once, self.batch_rows)
        yield from reader.iter_batches(rows, row_groups=[number], columns=columns, use_threads=False)

    def found(self, batch: pa.RecordBatch, used: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Returns for each row the number of its key in the logs, -1 if the row stays as it is.

        If several rows have one key, only the first is merged, because Hudi then removes the record from its map. If
        the logs have positions, Hudi may choose another row (`PositionBasedFileGroupRecordBuffer`).
        """
        if not len(self.newest.keys):
            return np.full(batch.num_rows, -1)
        keys = pc.index_in(batch.column(RECORD_KEY), value_set=self.newest.keys)
        places = np.asarray(keys.fill_null(-1)).astype(np.int64)
        hits = np.flatnonzero(places >= 0)
        _, firsts = np.unique(places[hits], return_index=True)
        once = np.zeros(len(hits), np.bool_)
        once[firsts] = True
        once &= ~used[places[hits]]
        if self.newest.has_positions and not once.all():
            raise NotProvedError("the base file has several rows of one key, and the logs know their positions")
        places[hits[~once]] = -1
        hits = hits[once]
        used[places[hits]] = True
        if self._ordering_fields and len(hits):
            kept = self._keeps_logs(batch, hits, places[hits], self._ordering_fields)
            places[hits[~kept]] = -1
        return places

    @property
    def _ordering_fields(self) -> tuple[str, ...]:
        return self.rules.ordering_fields if self.newest.ordering else ()

    def _keeps_logs(
        self, batch: pa.RecordBatch, hits: NDArray[np.int64], keys: NDArray[np.int64], fields: tuple[str, ...]
    ) -> NDArray[np.bool_]:
        """Returns, for each of these rows, whether the newest version in the logs replaces the version in the base
        file."""
        rows, taken = pa.array(hits), pa.array(keys)
        older, newer = [], []
        for name, values in zip(fields, self.newest.ordering, strict=True):
            place = batch.schema.get_field_index(name)
            if place < 0:
                raise NotProvedError(f"the base file lacks the ordering field {name}")
            column = batch.column(place).take(rows)
            older.append(column.cast(values.type))
            newer.append(values.take(taken))
        kept = newest_records.keeps_newer(older, newer, self.newest.resets[keys])
        if self.rules.by_older_hudi and (~kept & (self.newest.places[keys] < 0)).any():
            raise NotProvedError("a delete has a smaller ordering value than the row of the base file")
        return kept

    def require_own(self, batch: pa.RecordBatch) -> None:
        """Raises NotProvedError unless all rows of the base file have keys, and the slice's partition."""
        paths = batch.column(PARTITION_PATH)
        if paths.null_count or batch.column(RECORD_KEY).null_count:
            raise NotProvedError("a row of the base file has no key or no partition")
        if pa.types.is_dictionary(paths.type):
            paths = paths.dictionary
        if not pc.all(pc.equal(paths, self.files.partition_path), min_count=0).as_py():
            raise NotProvedError("a row of the base file lies in another partition")

    def _merged(self, batch: pa.RecordBatch, keys: NDArray[np.int64], replacement: Replacement) -> pa.RecordBatch:
        self.require_own(batch)
        touched = np.flatnonzero(keys >= 0)
        places = self.newest.places[keys[touched]]
        deleted = touched[places < 0]
        self.counts.deletes += len(deleted)
        self.counts.updates += len(touched) - len(deleted)
        return replacement.apply(batch, touched[places >= 0], places[places >= 0], deleted)


def merge_slice(
    storage: Storage,
    files: SliceFiles,
    rules: MergeRules,
    schema: pa.Schema,
    *,
    batch_rows: int,
    plain: Sequence[str] = (),
) -> MergedSlice:
    """Returns the merged rows with the columns and types of `schema`, meta columns included. The texts of the columns
    `plain` are not in dictionaries. The logs are read at once, the base file together with the batches. Raises
    NotProvedError, here or while the batches are read, for a slice that Hudi may merge differently.
    """
    if rules.table_version not in _VERSIONS or rules.mode not in _MODES:
        raise NotProvedError(f"table version {rules.table_version} with {rules.mode}")
    if missing := {RECORD_KEY, PARTITION_PATH} - set(schema.names):
        raise NotProvedError(f"the table has no column {min(missing)}")
    counts = MergeCounts()
    try:
        newest = read_logs(storage, files, rules, schema, counts)
    except NotProvedError:
        # Hudi would merge the slice instead.
        partial_rows.require_whole_rows(storage, files)
        raise
    return MergedSlice(storage, files, rules, schema, batch_rows, tuple(plain), newest, counts)


def opened_base(storage: Storage, files: SliceFiles) -> AbstractContextManager[pa.NativeFile | None]:
    """Opens the base file, if there is one, for several readers: a remote file is fetched whenever it is opened."""
    return storage.open_file(f"{storage.root}/{files.base}", whole=True) if files.base else nullcontext()


def _order_in_hash_map(keys: pa.Array) -> NDArray[np.int64]:
    """Returns the numbers of keys, given in the order of insertion, in the order of Java's `HashMap`. In that order
    Hudi writes the rows that only the logs have (`ExternalSpillableMap.iterator`, as long as it does not spill).
    """
    codes = string_hash_codes(keys)
    size = 16
    while len(codes) > size * 3 // 4:
        size *= 2
    slots = (codes ^ (codes >> np.uint32(16))) & np.uint32(size - 1)
    return np.argsort(slots, kind="stable")
