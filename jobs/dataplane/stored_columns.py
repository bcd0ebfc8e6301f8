"""Reads which columns base files have, with their types and numbers of values. Each file is one piece of work; only
footers are read, and columns of older rows if they are asked for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from jobs.dataplane.spark_tasks import run_tasks
from jobs.format.meta_columns import COMMIT_TIME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow.parquet as pq

    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext
    from jobs.storage.paths import Storage

_FILES_OF_TASK, _FILES_OF_JOB = 16, 1024
_FOOTER_BYTES = 512 * 1024  # Most of a footer is the Bloom filter.
_KINDS: Mapping[pa.DataType, str] = {
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.date32(): "date",
}


@dataclass(frozen=True)
class StoredColumns:
    """The columns of the base file at the absolute `path`.

    `values` has the number of values that are not null by full name, as in Hudi's schemas: `items.element.a`,
    `scores.value`. The number is None for structs, arrays and maps, and where the file has no statistics. `earliest` is
    the first commit time of its rows, 0 if that is unknown. `kinds` has the types by full name, as in Hudi's histories
    of schemas, for the types that schema on read can change. `older` has the numbers of values in rows before an
    instant, for the columns that were asked for.
    """

    path: str
    values: Mapping[str, int | None]
    earliest: int
    kinds: Mapping[str, str]
    older: Mapping[str, int] = field(default_factory=dict)


def of_files(
    table: HudiTable,
    storage: Storage,
    paths: Sequence[str],
    context: JobContext,
    *,
    before: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
) -> Iterator[StoredColumns]:
    """Reads the files at these absolute paths. `before` maps a path to columns and instants: `older` then counts the
    values of such a column in rows from before the instant. Only the results of some files are in memory at once."""
    what = "reading the columns of base files"
    for start in range(0, len(paths), _FILES_OF_JOB):
        chosen = paths[start : start + _FILES_OF_JOB]
        pieces = [((storage, path, before.get(path, {})), _FOOTER_BYTES) for path in chosen]
        yield from run_tasks(table, what, columns_of, pieces, context, of_task=_FILES_OF_TASK)


def columns_of(storage: Storage, path: str, before: Mapping[str, int], _: str = "") -> Iterator[StoredColumns]:
    """Yields the columns of one file."""
    with storage.read_parquet(path) as reader:
        found = _of_footer(reader, path)
        older = {
            name: _count_before(reader, name, instant)
            for name, instant in before.items()
            if found.earliest < instant and found.values.get(name, 0) != 0
        }
        yield replace(found, older=older)


def _of_footer(reader: pq.ParquetFile, path: str) -> StoredColumns:
    names = list(_names(reader.schema_arrow, ""))
    leaves = [name for name, kind in names if not _parts(kind)]
    metadata = reader.metadata
    counts: list[int | None] = [0] * metadata.num_columns
    earliest = []
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for number, count in enumerate(counts):
            chunk = group.column(number)
            statistics = chunk.statistics
            is_known = count is not None and statistics is not None and statistics.has_null_count
            counts[number] = count + chunk.num_values - statistics.null_count if is_known else None
            if chunk.path_in_schema == COMMIT_TIME and group.num_rows:
                low = statistics.min if statistics is not None and statistics.has_min_max else ""
                earliest.append(int(low) if str(low).isdigit() else 0)
    if len(leaves) != len(counts):  # Types that Arrow shows in another form than Parquet's.
        counts = [None] * len(leaves)
    values: dict[str, int | None] = dict.fromkeys(name for name, _ in names)
    values |= dict(zip(leaves, counts, strict=True))
    kinds = {name: text for name, kind in names if (text := _in_histories(kind))}
    return StoredColumns(path, values, min(earliest, default=0), kinds)


def _in_histories(kind: pa.DataType) -> str:
    """Returns the name of a type in Hudi's histories of schemas, empty if schema on read cannot change the type."""
    return f"decimal({kind.precision}, {kind.scale})" if types.is_decimal(kind) else _KINDS.get(kind, "")


def _names(fields: pa.Schema | pa.DataType, path: str) -> Iterator[tuple[str, pa.DataType]]:
    """Yields the full name and the type of each column, in the order of Parquet's leaves."""
    for each in fields:
        name, kind = f"{path}{each.name}", _stored(each.type)
        yield name, kind
        yield from _inside(kind, name)


def _inside(kind: pa.DataType, path: str) -> Iterator[tuple[str, pa.DataType]]:
    if types.is_struct(kind):
        yield from _names(kind, f"{path}.")
    else:
        for name, part in _parts(kind).items():
            yield f"{path}.{name}", part
            yield from _inside(part, f"{path}.{name}")


def _parts(kind: pa.DataType) -> dict[str, pa.DataType]:
    """Returns the types inside a struct, an array or a map by their names in Hudi's schemas."""
    if types.is_struct(kind):
        return {each.name: _stored(each.type) for each in kind}
    if types.is_map(kind):
        return {"key": _stored(kind.key_type), "value": _stored(kind.item_type)}
    if types.is_list(kind) or types.is_large_list(kind):
        return {"element": _stored(kind.value_type)}
    return {}


def _stored(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _count_before(reader: pq.ParquetFile, name: str, instant: int) -> int:
    """Returns the number of values of a column in rows whose commit time is before the instant."""
    top, _, inner = name.partition(".")
    found = 0
    for batch in reader.iter_batches(columns=[COMMIT_TIME, top], use_threads=False):
        old = pc.less(batch.column(batch.schema.get_field_index(COMMIT_TIME)), str(instant))
        column = batch.column(batch.schema.get_field_index(top)).filter(old)
        for part in inner.split(".") if inner else ():
            column = _part(column, part)
        found += len(column) - column.null_count
    return found


def _part(column: pa.Array, name: str) -> pa.Array:
    """Returns the values of one part of a column of structs, arrays or maps."""
    if types.is_struct(column.type):
        return pc.struct_field(column, name)
    if types.is_map(column.type):
        return column.keys if name == "key" else column.items
    return pc.list_flatten(column)
