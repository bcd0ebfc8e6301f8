"""The Parquet layout of a base file, so that a rewritten file differs only in its rows."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.dataplane import footer_entries
from jobs.dataplane.key_footer import filter_kind
from jobs.dataplane.logical_types import NO_ANNOTATIONS, Annotations, annotated_groups
from jobs.dataplane.parquet_writer import ParquetWriter
from jobs.errors import RefusedError
from jobs.problems.tables import CODEC_NOT_SUPPORTED, SCHEMA_NOT_REPRODUCIBLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobs.contract import Problem
    from jobs.dataplane.bloom_filter import FilterKind
    from jobs.dataplane.key_footer import KeyFooter

CODECS = frozenset({"gzip", "snappy", "zstd", "none", "brotli", "lz4"})
DEFAULT_CODEC = "gzip"  # Hudi's own default (hoodie.parquet.compression.codec)
# pyarrow's levels. zlib's gzip is only used where ISA-L is missing (`gzip_pages`). At level 3 it takes less than half
# the time of Hudi's level 6, and files are a few percent larger; pyarrow's own default, 9, is slow. Pages of zstd are a
# tenth smaller at level 2 than at 1, and hardly larger than at Hudi's 3, which takes a third more of the codec's time.
LEVELS = {"gzip": 3, "zstd": 2}
_PAGE_BYTES = 1024 * 1024  # pyarrow's and Hudi's default (hoodie.parquet.page.size)
# The size in Arrow bytes up to which a column is written without ISA-L, which would save less time than it takes to
# correct the headers. A file with 20 such columns has 100 KB.
_SMALL_COLUMN = 16 * 1024
_MOST_SCHEMAS = 64
# 1582-10-15 in days and 1900-01-01 in microseconds, since when the calendars agree (`RebaseDateTime` of Spark 3.5).
_SAME_SINCE = {"INT32": -141_427, "INT64": -2_208_988_800_000_000}
_reproducible: set[tuple[str, str]] = set()  # Schemas that have passed `require_reproducible`.


@dataclass(frozen=True)
class Layout:
    """All properties of a base file except its rows."""

    schema: pa.Schema  # The schema's metadata are the footer entries that a rewrite keeps.
    codec: str
    dictionary: tuple[bool, ...] | None  # Whether each leaf uses a dictionary; None leaves that to the writer.
    row_group_rows: int | None = None  # Most rows of a row group; None if its intended size is unknown.
    keys: FilterKind | None = None  # The footer's Bloom filter of record keys; None for no filter.
    widest_value: float = 0  # Mean bytes of a value, in the column and row group where that is largest.
    annotations: Annotations = NO_ANNOTATIONS  # Annotations of the Parquet schema that Arrow's does not hold.

    def writer(
        self, stream: pa.NativeFile | io.BytesIO, first: pa.Table | None = None, *, more_bytes: int = 0
    ) -> ParquetWriter:
        """Opens a writer. `first` are the first rows, on which values are measured; without them the file may become
        large. `more_bytes` says how many bytes follow them."""
        if first is None:
            return _writer(stream, self.schema, self.annotations, **self.options())
        widest = max((column.nbytes for column in first.itercolumns()), default=0) / max(first.num_rows, 1)
        is_small = first.nbytes + more_bytes < _SMALL_COLUMN * len(self.schema)
        return _writer(stream, self.schema, self.annotations, is_small=is_small, **self.options(widest))

    def options(self, widest_value: float = 0) -> dict[str, Any]:
        """Returns pyarrow's options of such a file.

        The wider the values, the more often the writer checks the size of a page: it checks after each
        `write_batch_size` values, and the default of 1024 values may be as large as a whole row group.
        """
        dictionary: bool | list[str] = True
        if self.dictionary is not None:
            # The paths are pyarrow's own, whose lists have three levels until the file is closed.
            dictionary = [path for path, used in zip(_paths(self.schema), self.dictionary, strict=True) if used]
        return {
            "compression": self.codec,
            "compression_level": LEVELS.get(self.codec),
            "use_dictionary": dictionary,
            "write_page_index": True,
            "write_batch_size": int(min(max(_PAGE_BYTES // max(widest_value, self.widest_value, 1), 1), 1024)),
            "store_schema": False,
        }

    def footer(self, keys: KeyFooter | None) -> dict[bytes, bytes]:
        """Returns the footer's entries. The entries include those of the schema, which the writer leaves out if it does
        not store Arrow's own schema."""
        return {**(self.schema.metadata or {}), **(keys.entries() if keys else {})}

    def of_columns(self, schema: pa.Schema) -> Layout:
        """Returns the layout of a file with the columns of `schema`, in its types."""
        fields = [self.schema.field(each.name).with_type(each.type) for each in schema]
        dictionary = None
        if self.dictionary is not None:
            uses = iter(self.dictionary)
            of_column = {each.name: [next(uses) for _ in range(_leaf_count(each.type))] for each in self.schema}
            dictionary = tuple(used for each in schema for used in of_column[each.name])
        annotations = Annotations(are_lists_old=self.annotations.are_lists_old)
        return replace(self, schema=pa.schema(fields), dictionary=dictionary, annotations=annotations)

    def like(self, model: pq.ParquetFile, codec: str | None) -> Layout:
        """Returns this schema with the codec, dictionaries, lists, key entries and foreign entries of a base file.

        `codec`, if given, replaces the file's codec.
        """
        other = of_file(model, codec)
        return self._with_schema(other, other.dictionary if other.schema.equals(self.schema) else None)

    def compressed_like(self, old: pq.ParquetFile, codec: str | None) -> Layout:
        """Returns this schema and these key entries with the codec, row groups, dictionaries, lists and foreign entries
        of a base file.

        `codec`, if given, replaces the file's codec. The writer decides about columns that the file does not have.
        """
        other = of_file(old, codec)
        dictionary = None
        if other.dictionary is not None:
            paths = [old.schema.column(number).path for number in range(len(old.schema))]
            used = {_unwrapped(path): each for path, each in zip(paths, other.dictionary, strict=True)}
            dictionary = tuple(used.get(_unwrapped(path), True) for path in _paths(self.schema))
        return replace(self._with_schema(other, dictionary), keys=self.keys)

    def _with_schema(self, other: Layout, dictionary: tuple[bool, ...] | None) -> Layout:
        """Returns the other layout with this schema and its annotations. The other layout's entries are kept if they do
        not depend on a schema. Its old form of lists and maps is kept unless an element may be null by this schema."""
        annotations = replace(self.annotations, are_lists_old=other.annotations.are_lists_old)
        entries = {**footer_entries.foreign(other.schema.metadata), **(self.schema.metadata or {})}
        schema = self.schema.with_metadata(entries)
        return replace(other, schema=schema, dictionary=dictionary, annotations=annotations)


def of_file(reader: pq.ParquetFile, codec: str | None = None) -> Layout:
    """Returns the layout of a base file: its schema, codec (unless another is requested), dictionaries, key entries.

    Raises `RefusedError` for a codec that cannot be written here (LZO).
    """
    footer = reader.metadata
    stored = footer.metadata
    entries = footer_entries.lasting(stored)
    # `schema_arrow` would reflect the options of the reader.
    schema = reader.schema.to_arrow_schema().with_metadata(entries)
    keys = filter_kind(stored or {})
    annotations = Annotations.of(reader)
    if footer.num_row_groups == 0:
        return replace(_layout(schema, codec, DEFAULT_CODEC, keys=keys), annotations=annotations)
    group = footer.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    dictionary = tuple(any("DICT" in encoding for encoding in column.encodings) for column in columns)
    # A single row group may be as large as the file, so it does not show the intended size.
    rows = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
    row_group_rows = max(rows) if len(rows) > 1 else None
    return replace(
        _layout(schema, codec, columns[0].compression.lower(), keys=keys),
        dictionary=dictionary,
        row_group_rows=row_group_rows,
        widest_value=_widest_value(footer),
        annotations=annotations,
    )


def has_old_calendar(reader: pq.ParquetFile) -> bool:
    """Returns whether readers of Spark convert dates or timestamps of this file to today's calendar."""
    _, is_old, legacy, _ = footer_entries.calendar(reader.metadata.metadata)
    return bool(is_old or legacy) and any(_is_temporal(field.type) for field in reader.schema_arrow)


def has_unknown_calendar(reader: pq.ParquetFile, entries: Mapping[bytes, bytes] | None) -> bool:
    """Returns whether a file has dates or timestamps from before the calendars agree, and no entry of its footer tells
    their calendar.

    An option of the Spark session decides whether readers convert such values; by default the readers refuse them. Avro
    records are written without such an entry, and so were the files of Spark before 3.0, in the old calendar.
    """
    footer = reader.metadata
    if not footer_entries.calendar(entries)[0]:
        return False
    columns = [reader.schema.column(number) for number in range(footer.num_columns)]
    places = [
        number
        for number, column in enumerate(columns)
        if column.physical_type == "INT96" or column.logical_type.type in {"DATE", "TIMESTAMP"}
    ]
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return any(_may_be_old(group.column(place)) for group in groups if group.num_rows for place in places)


def _may_be_old(chunk: pq.ColumnChunkMetaData) -> bool:
    found = chunk.statistics
    if found is None or not found.has_min_max:
        return found is None or found.null_count != chunk.num_values
    return bool(found.min_raw < _SAME_SINCE.get(chunk.physical_type, found.min_raw + 1))


def _is_temporal(kind: pa.DataType) -> bool:
    below = (kind.field(number).type for number in range(kind.num_fields))
    return pa.types.is_temporal(kind) or any(map(_is_temporal, below))


def of_schema(empty: pq.ParquetFile, entries: Mapping[bytes, bytes], codec: str | None) -> Layout:
    """Returns the layout of future base files, from a file without rows that has their Parquet schema."""
    schema = empty.schema.to_arrow_schema().with_metadata(dict(entries))
    return replace(_layout(schema, codec, DEFAULT_CODEC), annotations=Annotations.of(empty))


def _layout(schema: pa.Schema, asked: str | None, followed: str, *, keys: FilterKind | None = None) -> Layout:
    codec = asked or ("none" if followed == "uncompressed" else followed)
    if codec not in CODECS:
        raise RefusedError([CODEC_NOT_SUPPORTED.because(codec)])
    return Layout(schema, codec, None, keys=keys)


def _widest_value(footer: pq.FileMetaData) -> float:
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    columns = [group.column(number) for group in groups for number in range(group.num_columns)]
    return max((column.total_uncompressed_size / max(column.num_values, 1) for column in columns), default=0.0)


def _writer(stream: Any, schema: pa.Schema, annotations: Annotations, **options: Any) -> ParquetWriter:
    if annotations.unordered:
        paths = enumerate(_paths(schema))
        options["write_statistics"] = [path for number, path in paths if number not in annotations.unordered]
    return ParquetWriter(stream, schema, annotations, **options)


@lru_cache(
    maxsize=_MOST_SCHEMAS
)  # cached, because a task's files mostly have one schema, and a call takes some milliseconds
def _as_written(schema: pa.Schema, annotations: Annotations = NO_ANNOTATIONS) -> Any:
    """Returns the Parquet schema of a file that is written here."""
    buffer = io.BytesIO()
    _writer(buffer, schema, annotations, store_schema=False).close()
    return pq.ParquetFile(buffer).schema


def _leaf_count(kind: pa.DataType) -> int:
    return sum(_leaf_count(kind.field(number).type) for number in range(kind.num_fields)) or 1


def _paths(schema: pa.Schema) -> list[str]:
    """Returns the path of each leaf while pyarrow writes a file."""
    written = _as_written(schema)
    return [written.column(number).path for number in range(len(written))]


def require_reproducible(layout: Layout, expected: Any, what: str) -> None:
    """Raises `RefusedError` unless a file of this layout has the leaves of the Parquet schema `expected`.

    Compares each leaf's path, physical and logical type, definition and repetition level and field id; annotations of
    groups; and through Arrow's schema the names, the nullability and the field ids of the groups between. Paths exclude
    the names of groups that only wrap lists and maps, whose names in maps and in lists of three levels differ between
    writers. `what` names the file in the message.
    """
    written = _as_written(layout.schema, layout.annotations)
    # The texts have everything that is compared; the first lines, which hold addresses in memory, are left out.
    pair = str(expected).partition("\n")[2], str(written).partition("\n")[2]
    if pair in _reproducible:
        return
    wanted = [*_leaves(expected), *annotated_groups(expected)]
    produced = [*_leaves(written), *annotated_groups(written)]
    for before, after in zip_longest(wanted, produced):
        if before != after:
            raise RefusedError([not_reproducible(f"{what}: {before} would become {after}")])
    for field, other in zip_longest(expected.to_arrow_schema(), written.to_arrow_schema()):
        if not field.equals(other) or _ids(field) != _ids(other):
            raise RefusedError([not_reproducible(f"{what}: {field} would become {other}")])
    if len(_reproducible) >= _MOST_SCHEMAS:
        _reproducible.clear()
    _reproducible.add(pair)


def not_reproducible(detail: str) -> Problem:
    return SCHEMA_NOT_REPRODUCIBLE.because(detail)


def _ids(field: pa.Field) -> list[bytes | None]:
    """Returns the Parquet field ids of a column and of all groups and leaves in it."""
    kind = field.type
    below = [kind.field(number) for number in range(kind.num_fields)]
    return [(field.metadata or {}).get(b"PARQUET:field_id"), *(found for child in below for found in _ids(child))]


@dataclass(frozen=True)
class _Leaf:
    path: tuple[str, ...]
    physical: str
    logical: str
    max_definition: int
    max_repetition: int
    field_id: str

    def __str__(self) -> str:
        return f"{'.'.join(self.path)} {self.physical} ({self.logical})"


_WRAPPERS = frozenset({"list", "element", "array", "bag", "array_element", "key_value", "map", "entries"})


def _leaves(schema: Any) -> list[_Leaf]:
    # pyarrow exposes field ids only in the printed schema, where leaves are the lines that end with a semicolon.
    field_ids = re.findall(r"field_id=(-?\d+)[^\n{]*;$", str(schema), re.MULTILINE)
    leaves = []
    for number, field_id in zip(range(len(schema)), field_ids, strict=True):
        column = schema.column(number)
        leaves.append(
            _Leaf(
                path=_unwrapped(column.path),
                physical=f"{column.physical_type}[{column.length}]",
                # The notation of Parquet's old converted types does not change the type.
                logical=re.sub(r", (is_from|force_set)_converted_type=\w+", "", str(column.logical_type)),
                max_definition=column.max_definition_level,
                max_repetition=column.max_repetition_level,
                field_id=field_id,
            )
        )
    return leaves


def _unwrapped(path: str) -> tuple[str, ...]:
    """Returns the names in a leaf's path, except for the names of groups that only wrap lists and maps."""
    top, *below = path.split(".")
    return top, *(name for name in below if name not in _WRAPPERS)
