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

from jobs.contract import Problem
from jobs.dataplane.key_footer import filter_kind
from jobs.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from jobs.dataplane.bloom_filter import FilterKind
    from jobs.dataplane.key_footer import KeyFooter

AVRO_SCHEMA = b"parquet.avro.schema"
# By it and by the two `legacy` entries readers of Spark know how old dates and timestamps are meant; without any, they
# refuse those before 1582 (`DataSourceUtils`).
SPARK_VERSION = b"org.apache.spark.version"
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_TIME_ZONE = b"org.apache.spark.timeZone"
_FIRST_WITHOUT_LEGACY = b"3.0.0"
# Footer entries of the schema. The others (Bloom filter, smallest and largest key) belong to one file.
SCHEMA_ENTRIES = (
    AVRO_SCHEMA,
    SPARK_VERSION,
    *_LEGACY,
    b"org.apache.spark.sql.parquet.row.metadata",
    _TIME_ZONE,
    b"writer.model.name",
)
CODECS = frozenset({"gzip", "snappy", "zstd", "none", "brotli", "lz4"})
DEFAULT_CODEC = "gzip"  # Hudi's own default (hoodie.parquet.compression.codec)
# gzip at level 3 takes less than half the time of Hudi's level 6, with files a few percent larger; pyarrow's own
# default, 9, is slow.
LEVELS = {"gzip": 3, "zstd": 1}
# For a codec that is requested by name.
HUDI_LEVELS = {"gzip": 6, "zstd": 1}
_PAGE_BYTES = 1024 * 1024  # pyarrow's and Hudi's default (hoodie.parquet.page.size)


@dataclass(frozen=True)
class Layout:
    """Arrow schema (with the footer's schema entries as metadata), codec, and the columns that use a dictionary.

    `dictionary` None leaves the choice to the writer, leaf by leaf; otherwise it has a truth value per leaf. `level`
    None is the codec's default. `row_group_rows` bounds row groups; None if their intended size is unknown. `keys` is
    the kind of the footer's Bloom filter of record keys; None if there shall be none. `widest_value` is the mean number
    of bytes of a value, in the column and row group where it is largest.
    """

    schema: pa.Schema
    codec: str
    dictionary: tuple[bool, ...] | None
    level: int | None = None
    row_group_rows: int | None = None
    keys: FilterKind | None = None
    widest_value: float = 0

    def writer(self, target: Path | io.BytesIO, widest_value: float = 0) -> pq.ParquetWriter:
        """Opens a writer; `widest_value` is measured on the first rows.

        The wider the values, the more often the writer checks the size of a page. It does so after each
        `write_batch_size` values, by default 1024, which may be the bytes of a whole row group.
        """
        dictionary: bool | list[str] = True
        if self.dictionary is not None:
            # Paths of the new file: Hudi's lists have two levels, Arrow's three.
            dictionary = [path for path, used in zip(_paths(self.schema), self.dictionary, strict=True) if used]
        return pq.ParquetWriter(
            target,
            self.schema,
            compression=self.codec,
            compression_level=self.level,
            use_dictionary=dictionary,
            write_page_index=True,
            store_schema=False,
            write_batch_size=int(min(max(_PAGE_BYTES // max(widest_value, self.widest_value, 1), 1), 1024)),
        )

    def footer(self, keys: KeyFooter | None) -> dict[bytes, bytes]:
        """Returns the footer's entries. Without Arrow's own schema the writer leaves those of the schema out."""
        return {**(self.schema.metadata or {}), **(keys.entries() if keys else {})}

    def like(self, model: pq.ParquetFile, codec: str | None) -> Layout:
        """Returns this schema with the codec, dictionaries and key entries of a base file.

        `codec`, if given, replaces the file's codec.
        """
        other = of_file(model, codec)
        dictionary = other.dictionary if other.schema.equals(self.schema) else None
        return replace(other, schema=self.schema, dictionary=dictionary)

    def compressed_like(self, old: pq.ParquetFile, codec: str | None) -> Layout:
        """Returns this schema and these key entries with the codec, row groups and dictionaries of a base file.

        `codec`, if given, replaces the file's codec. Of columns that the file does not have the writer decides.
        """
        other = of_file(old, codec)
        dictionary = None
        if other.dictionary is not None:
            paths = [old.schema.column(number).path for number in range(len(old.schema))]
            used = {_unwrapped(path): each for path, each in zip(paths, other.dictionary, strict=True)}
            dictionary = tuple(used.get(_unwrapped(path), True) for path in _paths(self.schema))
        return replace(other, schema=self.schema, dictionary=dictionary, keys=self.keys)


def of_file(reader: pq.ParquetFile, codec: str | None = None) -> Layout:
    """Returns the layout of a base file: its schema, codec (unless another is requested), dictionaries, key entries.

    Raises `RefusedError` for a codec that cannot be written here (LZO).
    """
    footer = reader.metadata
    entries = {key: value for key, value in (footer.metadata or {}).items() if key in SCHEMA_ENTRIES}
    # Not `schema_arrow`, which reflects the options of the reader.
    schema = reader.schema.to_arrow_schema().with_metadata(entries)
    keys = filter_kind(footer.metadata or {})
    if footer.num_row_groups == 0:
        return _layout(schema, codec, DEFAULT_CODEC, keys=keys)
    group = footer.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    dictionary = tuple(any("DICT" in encoding for encoding in column.encodings) for column in columns)
    # A single row group may be as large as the file, so it does not show the intended size.
    rows = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
    row_group_rows = max(rows) if len(rows) > 1 else None
    layout = _layout(schema, codec, columns[0].compression.lower(), keys=keys)
    return replace(layout, dictionary=dictionary, row_group_rows=row_group_rows, widest_value=_widest_value(footer))


def calendar(entries: Mapping[bytes, bytes] | None) -> tuple[object, ...]:
    """Returns what a footer says of the calendar of its dates and timestamps (`DataSourceUtils.datetimeRebaseSpec` of
    Spark 3.5). Values of files that differ in it must not go to one file as they are."""
    entries = entries or {}
    legacy = tuple(name for name in _LEGACY if name in entries)
    version = entries.get(SPARK_VERSION)
    is_old = version is not None and version < _FIRST_WITHOUT_LEGACY
    return version is None, is_old, legacy, entries.get(_TIME_ZONE) if legacy else None


def has_old_calendar(reader: pq.ParquetFile) -> bool:
    """Returns whether readers of Spark convert dates or timestamps of this file to today's calendar."""
    _, is_old, legacy, _ = calendar(reader.metadata.metadata)
    return bool(is_old or legacy) and any(_is_temporal(field.type) for field in reader.schema_arrow)


def _is_temporal(kind: pa.DataType) -> bool:
    below = (kind.field(number).type for number in range(kind.num_fields))
    return pa.types.is_temporal(kind) or any(map(_is_temporal, below))


def of_schema(empty: pq.ParquetFile, avro_schema: str, spark_version: str, codec: str | None) -> Layout:
    """Returns the layout of future base files, from a file without rows that has their Parquet schema."""
    entries = {AVRO_SCHEMA: avro_schema.encode(), SPARK_VERSION: spark_version.encode()}
    schema = empty.schema_arrow.with_metadata(entries)
    return _layout(schema, codec, DEFAULT_CODEC)


def _layout(schema: pa.Schema, asked: str | None, followed: str, *, keys: FilterKind | None = None) -> Layout:
    codec = asked or ("none" if followed == "uncompressed" else followed)
    if codec not in CODECS:
        raise RefusedError(
            [
                Problem(
                    "codec-not-supported",
                    "Files with this compression cannot be written",
                    codec,
                    "Request another `codec`: gzip, snappy or zstd.",
                )
            ]
        )
    return Layout(schema, codec, None, (HUDI_LEVELS if asked else LEVELS).get(codec), keys=keys)


def _widest_value(footer: pq.FileMetaData) -> float:
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    columns = [group.column(number) for group in groups for number in range(group.num_columns)]
    return max((column.total_uncompressed_size / max(column.num_values, 1) for column in columns), default=0.0)


@lru_cache(maxsize=64)  # a task's files mostly have one schema, and a call takes some milliseconds
def _as_written(schema: pa.Schema) -> Any:
    """Returns the Parquet schema of a file that pyarrow writes."""
    buffer = io.BytesIO()
    pq.ParquetWriter(buffer, schema, store_schema=False).close()
    return pq.ParquetFile(buffer).schema


def _paths(schema: pa.Schema) -> list[str]:
    """Returns the path of each leaf in a file that pyarrow writes."""
    written = _as_written(schema)
    return [written.column(number).path for number in range(len(written))]


def require_reproducible(layout: Layout, expected: Any, what: str) -> None:
    """Raises `RefusedError` unless a file of this layout has the leaves of the Parquet schema `expected`.

    Compares each leaf's path, physical and logical type, definition and repetition level and field id; and through
    Arrow's schema the names, the nullability and the field ids of the groups between. Paths exclude the names of groups
    that only wrap lists and maps, where Avro writes two levels and Arrow three, and every reader knows both. `what`
    names the file in the message.
    """
    written = _as_written(layout.schema)
    wanted, produced = _leaves(expected), _leaves(written)
    for before, after in zip_longest(wanted, produced):
        if before != after:
            raise RefusedError([not_reproducible(f"{what}: {before} would become {after}")])
    for field, other in zip_longest(expected.to_arrow_schema(), written.to_arrow_schema()):
        if not field.equals(other) or _ids(field) != _ids(other):
            raise RefusedError([not_reproducible(f"{what}: {field} would become {other}")])


def not_reproducible(detail: str) -> Problem:
    return Problem(
        "schema-not-reproducible",
        "A rewritten file would not have exactly the Parquet schema of its input",
        detail,
        "Rewrite the table once with Hudi's current writer; columns of old types such as INT96 prevent a rewrite.",
    )


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
    """Returns the names in a leaf's path without those of groups that only wrap lists and maps."""
    top, *below = path.split(".")
    return top, *(name for name in below if name not in _WRAPPERS)
