"""Finds rows of which the logs hold some columns only, and which no file of their slice has as a whole.

`MERGE INTO` of Spark SQL updates some columns of rows by blocks of partial updates. Where the same statement inserts
rows into buckets that exist, Hudi (1.2.0) puts the new rows into these blocks as well, without their other columns.
Readers take such a part for a whole row and read its values from wrong places of the memory: they return garbage, or
end the JVM by an OutOfMemoryError.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.dataplane.avro_columns import Decoder
from jobs.dataplane.log_records import chunks
from jobs.errors import NotProvedError, RefusedError
from jobs.format.log_blocks import BlockType, Header, blocks_of, read_content
from jobs.format.meta_columns import RECORD_KEY
from jobs.table_errors import RowsIncompleteError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobs.contract import Problem
    from jobs.dataplane.merge_rules import SliceFiles
    from jobs.format.log_blocks import LogBlock
    from jobs.storage.paths import Storage

_SLICES_AT_ONCE = 16
_DATA = (BlockType.AVRO_DATA, BlockType.PARQUET_DATA)


def require_whole(storage: Storage, slices: Sequence[SliceFiles]) -> None:
    """Raises RefusedError if one of these slices has a part of a row that it does not have as a whole. Reads the heads
    of all blocks; where there are partial updates, all record keys as well."""
    with ThreadPoolExecutor(_SLICES_AT_ONCE) as pool:
        found = [problem for problem in pool.map(lambda files: _problem(storage, files), slices) if problem]
    if found:
        raise RefusedError(found[:1])


def require_whole_rows(storage: Storage, files: SliceFiles) -> None:
    """Raises RowsIncompleteError if the slice has a part of a row that it does not have as a whole, and NotProvedError
    if its logs cannot be read."""
    blocks = {log: _data_blocks(storage, log) for log in files.logs}
    if not any(_is_partial(block) for found in blocks.values() for block in found):
        return
    parts: list[pa.Array] = []
    whole: list[pa.Array] = []
    for log, found in blocks.items():
        with storage.open_file(f"{storage.root}/{log}") as file:
            for block in found:
                (parts if _is_partial(block) else whole).extend(_keys(file, block))
    if files.base:
        with storage.read_parquet(f"{storage.root}/{files.base}") as reader:
            whole += reader.read([RECORD_KEY]).column(RECORD_KEY).cast(pa.string()).chunks
    keys = pa.concat_arrays([pa.array([], pa.string()), *parts])
    alone = keys.filter(pc.invert(pc.is_in(keys, value_set=pa.chunked_array(whole, pa.string())))).unique()
    if len(alone):
        where = f"partition '{files.partition_path}', file group {files.file_id}"
        raise RowsIncompleteError(f"{where}: {len(alone)} rows, such as {alone[0].as_py()}")


def _problem(storage: Storage, files: SliceFiles) -> Problem | None:
    try:
        require_whole_rows(storage, files)
    except RowsIncompleteError as error:
        return error.problem()
    except NotProvedError:
        return None  # Hudi's reader says what is wrong with that log.
    return None


def _data_blocks(storage: Storage, log: str) -> list[LogBlock]:
    with storage.open_file(f"{storage.root}/{log}") as file:
        return [block for block in blocks_of(file, file.size()) if block.kind in _DATA]


def _is_partial(block: LogBlock) -> bool:
    return block.header.get(Header.IS_PARTIAL, "false").lower() != "false"


def _keys(file: pa.NativeFile, block: LogBlock) -> Iterator[pa.Array]:
    """Yields the record keys of a data block."""
    if block.kind == BlockType.PARQUET_DATA:
        yield from pq.read_table(pa.BufferReader(read_content(file, block)), columns=[RECORD_KEY]).column(0).chunks
        return
    decoder = Decoder(block.header.get(Header.SCHEMA, ""), [RECORD_KEY])
    for data, starts, ends in chunks(file, block):
        yield decoder.decode(data, starts, ends).column(0)
