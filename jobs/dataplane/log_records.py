"""Reads the records and deletes of a file slice's log files, and finds the newest version of each key.

The same blocks count as in `BaseHoodieLogRecordReader.scanInternal` of Hudi 1.2.0, in the same order: instant by
instant, in the order in which the instants first appear. Blocks of an instant that a rollback block names do not count.
"""

from __future__ import annotations

import struct
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.dataplane import newest_records, parquet_layout, table_types
from jobs.dataplane.avro_columns import Decoder
from jobs.dataplane.held_batches import HeldBatches, HeldRows
from jobs.errors import NotProvedError
from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from jobs.format.log_blocks import BlockType, Header, avro_content, blocks_of, deletes_of, read_content
from jobs.format.meta_columns import FILE_NAME, OPERATION, PARTITION_PATH, RECORD_KEY
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.storage.local_copy import local_copy
from jobs.table_errors import OperationsHiddenError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from numpy.typing import NDArray

    from jobs.dataplane.merge_rules import MergeCounts, MergeRules, SliceFiles
    from jobs.format.log_blocks import LogBlock
    from jobs.storage.paths import Storage

_CHUNK_BYTES = 8 * 1024 * 1024
# Larger copies of remote logs go to the disk.
_COPIES_IN_MEMORY = 64 * 1024 * 1024
# Blocks of deletes and of Parquet are read as a whole. Hudi ends a block at 256 MiB by default.
_LARGEST_DELETES, _LARGEST_PARQUET = 64 * 1024 * 1024, 256 * 1024 * 1024
_LARGEST_RECORD = 64 * 1024 * 1024
# The limit on records, because all keys are held in memory.
_MOST_KEYS = 4_000_000
_IS_DELETED = "_hoodie_is_deleted"
# The members of `HoodieOperation` that are not deletes.
_NO_DELETES = pa.array(["I", "U"])
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True)
class NewestRecords:
    """The newest version of each key in the logs, in the order in which the keys first appear."""

    keys: pa.Array  # All keys of the logs.
    rows: HeldRows  # All records of the logs.
    places: NDArray[np.int64]  # The numbers of the newest records among `rows`, -1 for a deleted key.
    ordering: tuple[pa.Array, ...]  # The ordering values, by field.
    resets: NDArray[np.bool_]  # The deletes that win over every record of the base file.
    has_positions: bool  # Whether a block also knows its records' positions in the base file.


@dataclass
class _Versions:
    """The versions that have been read so far; one array per chunk of records or deletes."""

    kinds: list[pa.DataType]
    rows: HeldBatches
    keys: list[pa.Array] = field(default_factory=list)
    ordering: list[list[pa.Array]] = field(default_factory=list)
    deletes: list[NDArray[np.bool_]] = field(default_factory=list)
    resets: list[NDArray[np.bool_]] = field(default_factory=list)
    in_blocks: list[NDArray[np.bool_]] = field(default_factory=list)
    count: int = 0
    has_positions: bool = False


def read_logs(
    storage: Storage, files: SliceFiles, rules: MergeRules, schema: pa.Schema, counts: MergeCounts
) -> NewestRecords:
    """Returns the newest records of the logs with the columns of `schema`, and counts the blocks and records in
    `counts`.

    Raises NotProvedError.
    """
    wanted = pa.schema([each for each in schema if each.name != FILE_NAME])
    by_event_time = rules.mode == "EVENT_TIME_ORDERING"
    fields = rules.ordering_fields if by_event_time or rules.by_older_hudi else ()
    if missing := [name for name in fields if wanted.get_field_index(name) < 0]:
        raise NotProvedError(f"the ordering field {missing[0]} is no column of the table")
    base = parse_base_file_name(files.base.rpartition("/")[2]) if files.base else None
    by_position = True
    with ExitStack() as stack:
        rows = stack.enter_context(closing(HeldBatches(wanted)))
        versions = _Versions([wanted.field(name).type for name in fields], rows)
        for file, block in _blocks_that_count(stack, storage, files, rules, counts):
            versions.has_positions |= Header.RECORD_POSITIONS in block.header
            by_position = by_position and base is not None and _has_positions_in(block, base.instant)
            if block.kind == BlockType.DELETE:
                deletes = _add_deletes(versions, file, block)
                if by_position and rules.mode == "COMMIT_TIME_ORDERING":
                    counts.log_records -= deletes  # Hudi does not count deletes by position
            else:
                for batch in _records(file, block, wanted, rules.with_default):
                    _add_records(versions, batch, files, rules, fields)
        return _newest(versions, counts, rules)


def _blocks_that_count(
    stack: ExitStack, storage: Storage, files: SliceFiles, rules: MergeRules, counts: MergeCounts
) -> Iterator[tuple[pa.NativeFile, LogBlock]]:
    found: dict[str, list[tuple[pa.NativeFile, LogBlock]]] = {}
    in_memory = _COPIES_IN_MEMORY
    for path in sorted(files.logs, key=_place_of_log):
        file = stack.enter_context(storage.filesystem.open_input_file(f"{storage.root}/{path}"))
        if storage.store is not None:
            size = file.size()
            file = stack.enter_context(local_copy(file, in_memory))
            in_memory -= size if size <= in_memory else 0
        counts.log_files += 1
        for block in blocks_of(file, file.size()):
            counts.log_blocks += 1
            if block.kind == BlockType.COMMAND:
                counts.rollback_blocks += 1
                found.pop(_rolled_back(block), None)
            elif _counts(block, rules):
                found.setdefault(block.instant, []).append((file, block))
    for blocks in found.values():
        for file, block in blocks:
            if block.kind != BlockType.DELETE:
                counts.log_bytes += block.length
            yield file, block


def _place_of_log(path: str) -> tuple[str, int, str]:
    """The order of `HoodieLogFile.LogFileComparator`."""
    name = parse_log_file_name(path.rpartition("/")[2])
    if name is None:
        raise NotProvedError("a log file has a name that Hudi does not give")
    return name.instant, name.version, name.write_token


def _rolled_back(block: LogBlock) -> str:
    if block.header.get(Header.COMMAND_BLOCK_TYPE) != "0" or Header.TARGET_INSTANT_TIME not in block.header:
        raise NotProvedError("a log holds a command that is no rollback")
    return block.header[Header.TARGET_INSTANT_TIME]


def _counts(block: LogBlock, rules: MergeRules) -> bool:
    if block.kind not in (BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.DELETE):
        raise NotProvedError(f"a log holds a block of type {block.kind.name}")
    if Header.COMPACTED_BLOCK_TIMES in block.header:
        raise NotProvedError("a log holds blocks of a log compaction")
    if block.header.get(Header.IS_PARTIAL, "false").lower() != "false":
        raise NotProvedError("a log holds partial updates")
    has_completed = rules.table_version >= WITH_COMPLETION_TIMES or rules.has_completed(block.instant)
    if has_completed and block.instant > rules.latest:
        # Hudi's executor and its readers count different actions when they choose the newest instant.
        raise NotProvedError("a log holds a block that is newer than the latest commit")
    return has_completed


def _records(
    file: pa.NativeFile, block: LogBlock, wanted: pa.Schema, with_default: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Yields the records of a data block with the columns of `wanted`."""
    if block.kind == BlockType.PARQUET_DATA:
        yield from _parquet_records(file, block, wanted, with_default)
        return
    if Header.SCHEMA not in block.header:
        raise NotProvedError("a data block has no schema")
    decoder = Decoder(block.header[Header.SCHEMA], wanted.names)
    every = Decoder(block.header[Header.SCHEMA]).schema
    _require_operations(every, wanted)
    table_types.require_conformable(every, wanted, "log block", with_default)
    for data, starts, ends in chunks(file, block):
        yield table_types.conformed(decoder.decode(data, starts, ends), wanted)


def _require_operations(found: pa.Schema, wanted: pa.Schema) -> None:
    if OPERATION in found.names and OPERATION not in wanted.names:
        raise OperationsHiddenError(f"a log block has the column {OPERATION}")


def _parquet_records(
    file: pa.NativeFile, block: LogBlock, wanted: pa.Schema, with_default: Collection[str]
) -> Iterator[pa.RecordBatch]:
    if block.length > _LARGEST_PARQUET:
        raise NotProvedError("a log holds a Parquet block of more than 256 MiB")
    try:
        reader = pq.ParquetFile(pa.BufferReader(read_content(file, block)))
        if parquet_layout.has_old_calendar(reader):
            raise NotProvedError("a log block's dates or timestamps are those of Spark's old calendar")
        _require_operations(reader.schema_arrow, wanted)
        table_types.require_conformable(reader.schema_arrow, wanted, "log block", with_default)
        columns = [name for name in reader.schema_arrow.names if name != FILE_NAME]
        for batch in reader.iter_batches(columns=columns, use_threads=False):
            yield table_types.conformed(batch, wanted)
    except (pa.ArrowException, OSError):
        raise NotProvedError("a Parquet block of a log cannot be read") from None


def chunks(file: pa.NativeFile, block: LogBlock) -> Iterator[tuple[pa.Buffer, NDArray[np.int64], NDArray[np.int64]]]:
    """Yields whole records, about `_CHUNK_BYTES` at a time, with their places in these bytes."""
    count, at = avro_content(file, block)
    while count:
        data = read_content(file, block, at, min(_CHUNK_BYTES, block.length - at))
        ends = _places(data, count)
        if not len(ends):
            # One record is longer than a chunk; the content has at least the 4 bytes of its length.
            length = _LENGTH.unpack_from(data)[0] if len(data) >= 4 else -1
            if length < 0:
                raise NotProvedError("a data block has fewer records than it says")
            if length > _LARGEST_RECORD:
                raise NotProvedError("a log holds a record of more than 64 MiB")
            data = read_content(file, block, at, 4 + length)
            ends = _places(data, 1)
        place = int(ends[-1])
        yield data.slice(0, place), np.concatenate(([0], ends[:-1])) + 4, ends
        count -= len(ends)
        at += place
    if at != block.length:
        raise NotProvedError("a data block has more bytes than its records")


def _places(data: pa.Buffer, count: int) -> NDArray[np.int64]:
    """Returns where each whole record ends, of at most `count` that begin with the data."""
    ends: list[int] = []
    end, unpack = 0, _LENGTH.unpack_from
    view = memoryview(data)
    with suppress(struct.error):  # the data ends within a length
        for _ in range(count):
            (length,) = unpack(view, end)
            if length < 0:
                raise NotProvedError("a record in a log has a negative length")
            end += 4 + length
            ends.append(end)
    if end > len(view):
        ends.pop()
    return np.array(ends, np.int64)


def _add_records(
    versions: _Versions, batch: pa.RecordBatch, files: SliceFiles, rules: MergeRules, fields: tuple[str, ...]
) -> None:
    keys, paths = batch.column(RECORD_KEY), batch.column(PARTITION_PATH)
    if keys.null_count or paths.null_count:
        raise NotProvedError("a record in a log has no key or no partition")
    if not pc.all(pc.equal(paths, files.partition_path), min_count=0).as_py():
        raise NotProvedError("a record in a log lies in another partition")
    deletes = _deleted(batch, rules)
    ordering = [batch.column(name) for name in fields]
    _add(versions, keys, ordering, deletes, newest_records.resets(ordering, deletes), in_blocks=False)
    versions.rows.add(batch)


def _has_positions_in(block: LogBlock, instant: str) -> bool:
    """Returns whether the block's records have positions in the base file of this instant.

    Hudi merges by position until a block has none (`PositionBasedFileGroupRecordBuffer`).
    """
    header = block.header
    return (
        Header.RECORD_POSITIONS in header and header.get(Header.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS) == instant
    )


def _add_deletes(versions: _Versions, file: pa.NativeFile, block: LogBlock) -> int:
    """Returns the number of deletes."""
    if block.length > _LARGEST_DELETES:
        raise NotProvedError("a log holds a block of deletes of more than 64 MiB")
    keys, values = deletes_of(read_content(file, block).to_pybytes())
    ordering, resets = newest_records.of_deletes(values, versions.kinds)
    _add(versions, pa.array(keys, pa.string()), ordering, np.ones(len(keys), np.bool_), resets, in_blocks=True)
    return len(keys)


def _add(
    versions: _Versions,
    keys: pa.Array,
    ordering: list[pa.Array],
    deletes: NDArray[np.bool_],
    resets: NDArray[np.bool_],
    *,
    in_blocks: bool,
) -> None:
    versions.count += len(keys)
    if versions.count > _MOST_KEYS:
        raise NotProvedError(f"the logs hold more than {_MOST_KEYS:,} records")
    versions.keys.append(keys)
    versions.ordering.append(ordering)
    versions.deletes.append(deletes)
    versions.resets.append(resets)
    versions.in_blocks.append(np.full(len(keys), in_blocks))


def _deleted(batch: pa.RecordBatch, rules: MergeRules) -> NDArray[np.bool_]:
    """Returns which records are deletes: `RecordContext.isDeleteRecord`. Raises NotProvedError."""
    deleted = np.zeros(batch.num_rows, np.bool_)
    names = batch.schema.names
    if _IS_DELETED in names:
        column = batch.column(_IS_DELETED)
        if not pa.types.is_boolean(column.type):
            raise NotProvedError(f"the column {_IS_DELETED} is not boolean")
        deleted |= np.asarray(column.fill_null(False))
    if OPERATION in names and not pc.all(pc.is_in(batch.column(OPERATION).drop_null(), _NO_DELETES)).as_py():
        raise NotProvedError(f"records have a {OPERATION} other than an insert or an update")
    if rules.delete_marker:
        name, marker = rules.delete_marker
        if name not in names or not pa.types.is_string(batch.column(name).type):
            raise NotProvedError(f"the column {name} of the delete marker is not one of text")
        deleted |= np.asarray(pc.equal(batch.column(name), marker).fill_null(False))
    return deleted


def _newest(versions: _Versions, counts: MergeCounts, rules: MergeRules) -> NewestRecords:
    by_event_time = rules.mode == "EVENT_TIME_ORDERING"
    encoded = pa.concat_arrays([pa.array([], pa.string()), *versions.keys]).dictionary_encode()
    keys = encoded.dictionary
    versions.keys.clear()
    counts.log_records += len(encoded)
    counts.log_keys = len(keys)
    empty = [np.zeros(0, np.bool_)]
    every = newest_records.Versions(
        np.asarray(encoded.indices).astype(np.int64),
        tuple(
            pa.concat_arrays([pa.array([], kind), *(columns[place] for columns in versions.ordering)])
            for place, kind in enumerate(versions.kinds)
        ),
        np.concatenate(empty + versions.deletes),
        np.concatenate(empty + versions.in_blocks),
        np.concatenate(empty + versions.resets),
    )
    if rules.by_older_hudi:
        newest_records.require_order(every, len(keys), by_event_time=by_event_time)
    newest = newest_records.newest(every, len(keys), by_event_time=by_event_time)
    # Delete blocks have versions of keys, but no rows.
    rows = np.cumsum(~every.blocks) - 1
    places = np.where(every.deletes[newest], -1, rows[newest])
    taken = pa.array(newest)
    ordering = tuple(column.take(taken) for column in every.ordering if by_event_time)
    return NewestRecords(keys, versions.rows.rows(), places, ordering, every.resets[newest], versions.has_positions)
