"""A few record keys from a few base files."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from jobs.format.meta_columns import RECORD_KEY
from service.lake.file_slices import FileSlice
from service.lake.parquet_file import opened
from service.lake.storage import Storage
from service.lake.table import Column
from service.model.storage_errors import PathNotFoundError, StorageError

if TYPE_CHECKING:
    import pyarrow.parquet as pq


FILES = 8
KEYS_PER_FILE = 4000
_META_PREFIX = "_hoodie_"
_MAX_KEY_BYTES = 64 * 1024
_MAX_TEXT = 1000


@dataclass(frozen=True)
class KeySample:
    """Record keys (without nulls) of one base file."""

    slice: FileSlice
    keys: pa.Array


@dataclass(frozen=True)
class Sample:
    """The sampled keys. `columns` are those of the first base file that was opened; empty if none was opened."""

    keys: tuple[KeySample, ...] = ()
    columns: tuple[Column, ...] = ()


def read_sample(storage: Storage, slices: Sequence[FileSlice]) -> Sample:
    """Reads at most `KEYS_PER_FILE` keys from the first row group of each of at most `FILES` files. Raises
    StorageError.

    The files come from as many buckets and partitions as possible. Slices without a base file, and files without Hudi's
    meta columns, contribute no keys.
    """
    samples: list[KeySample] = []
    columns: tuple[Column, ...] = ()
    for chosen in choose(slices):
        assert chosen.base_path is not None
        try:
            with opened(storage, chosen.base_path) as file:
                columns = columns or _columns(file.schema_arrow)
                keys = _first_keys(file, chosen.base_path)
        except PathNotFoundError as error:  # The cleaner has removed the file, or it is not readable.
            raise StorageError(f"The table has changed or a file is not readable: {error.detail}") from error
        if keys is not None:
            samples.append(KeySample(chosen, keys))
    return Sample(tuple(samples), columns)


def _columns(schema: pa.Schema) -> tuple[Column, ...]:
    return tuple(
        Column(f.name[:_MAX_TEXT], str(f.type)[:_MAX_TEXT]) for f in schema if not f.name.startswith(_META_PREFIX)
    )


def _first_keys(file: pq.ParquetFile, path: str) -> pa.Array | None:
    if RECORD_KEY not in file.schema_arrow.names or file.num_row_groups == 0:
        return None
    batches = file.iter_batches(KEYS_PER_FILE, row_groups=[0], columns=[RECORD_KEY], use_threads=False)
    batch = next(batches, None)
    if batch is None:
        return None
    keys = batch.column(0).drop_null()
    values = keys.dictionary if pa.types.is_dictionary(keys.type) else keys
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        raise StorageError(f"{path} has record keys of the type {keys.type}")
    if (pc.max(pc.binary_length(values)).as_py() or 0) > _MAX_KEY_BYTES:
        raise StorageError(f"{path} has a record key of more than {_MAX_KEY_BYTES} bytes")
    return keys


def choose(slices: Sequence[FileSlice]) -> list[FileSlice]:
    """Returns at most `FILES` slices that have a base file. First come slices whose bucket and partition were not
    chosen before, then those whose bucket was not chosen before, and then any others."""
    candidates = [s for s in slices if s.base_file is not None]
    random.Random(len(candidates)).shuffle(candidates)  # noqa: S311 - the same table yields the same sample
    chosen: list[FileSlice] = []
    for new_bucket, new_partition in ((True, True), (True, False), (False, False)):
        buckets, partitions = {s.bucket for s in chosen}, {s.partition_path for s in chosen}
        for candidate in candidates:
            if len(chosen) == FILES:
                return chosen
            is_known = (new_bucket and candidate.bucket in buckets) or (
                new_partition and candidate.partition_path in partitions
            )
            if not is_known and candidate not in chosen:
                chosen.append(candidate)
                buckets.add(candidate.bucket)
                partitions.add(candidate.partition_path)
    return chosen
