"""A few record keys from a few base files."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.format.meta_columns import RECORD_KEY
from service.lake.table import Column
from service.model.errors import PathNotFoundError, StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.lake.file_slices import FileSlice
    from service.lake.storage import Storage

FILES = 8
KEYS_PER_FILE = 4000
_META_PREFIX = "_hoodie_"


@dataclass(frozen=True)
class KeySample:
    """Record keys (without nulls) of one base file."""

    slice: FileSlice
    keys: pa.Array


@dataclass(frozen=True)
class Sample:
    """`columns` are those of the first base file that was opened, empty without one."""

    keys: tuple[KeySample, ...] = ()
    columns: tuple[Column, ...] = ()


def read_sample(storage: Storage, slices: Sequence[FileSlice]) -> Sample:
    """Reads at most `KEYS_PER_FILE` keys, from the first row group, of at most `FILES` files. Raises StorageError.

    The files are from as many buckets and partitions as possible. Slices without a base file yield nothing, nor do
    files without Hudi's meta columns.
    """
    samples: list[KeySample] = []
    columns: tuple[Column, ...] = ()
    for chosen in choose(slices):
        assert chosen.base_path is not None
        try:
            with storage.open(chosen.base_path) as source:
                file = pq.ParquetFile(source)
                columns = columns or _columns(file.schema_arrow)
                keys = _first_keys(file)
        except PathNotFoundError as error:  # a cleaner removed the file, or it is not readable
            raise StorageError(f"The table has changed or a file is not readable: {error.detail}") from error
        if keys is not None:
            samples.append(KeySample(chosen, keys))
    return Sample(tuple(samples), columns)


def _columns(schema: pa.Schema) -> tuple[Column, ...]:
    return tuple(Column(f.name, str(f.type)) for f in schema if not f.name.startswith(_META_PREFIX))


def _first_keys(file: pq.ParquetFile) -> pa.Array | None:
    if RECORD_KEY not in file.schema_arrow.names or file.num_row_groups == 0:
        return None
    batches = file.iter_batches(KEYS_PER_FILE, row_groups=[0], columns=[RECORD_KEY], use_threads=False)
    batch = next(batches, None)
    return None if batch is None else batch.column(0).drop_null()


def choose(slices: Sequence[FileSlice]) -> list[FileSlice]:
    """Returns at most `FILES` slices with a base file: new bucket and new partition first, then new bucket, then
    any."""
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
