"""How a base file is laid out as Parquet, so that a rewritten one is the same but for its rows."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.contract import Problem
from jobs.errors import RefusedError

if TYPE_CHECKING:
    from pathlib import Path

# Footer entries that belong to the schema. The others (bloom filter, smallest and largest key) belong to one file.
SCHEMA_ENTRIES = (b"parquet.avro.schema", b"writer.model.name")
DEFAULT_CODEC = "gzip"  # Hudi's own default (hoodie.parquet.compression.codec)
# gzip at 2 takes about half the time of Hudi's 6 and makes files a few percent larger; pyarrow's default of 9 is slow.
LEVELS = {"gzip": 2, "zstd": 1}


@dataclass(frozen=True)
class Layout:
    """Arrow schema (with the footer's schema entries as metadata), codec, and the columns that use a dictionary.

    `dictionary` of None leaves the choice to the writer, column by column.
    """

    schema: pa.Schema
    codec: str
    dictionary: tuple[str, ...] | None

    def writer(self, target: Path | io.BytesIO) -> pq.ParquetWriter:
        return pq.ParquetWriter(
            target,
            self.schema,
            compression=self.codec,
            compression_level=LEVELS.get(self.codec),
            use_dictionary=True if self.dictionary is None else list(self.dictionary),
            write_page_index=True,
            store_schema=False,
        )


def of_file(reader: pq.ParquetFile, codec: str | None = None) -> Layout:
    """The layout of a base file: its schema, codec (unless another is asked for) and use of dictionaries."""
    footer = reader.metadata
    entries = {key: value for key, value in (footer.metadata or {}).items() if key in SCHEMA_ENTRIES}
    schema = reader.schema_arrow.with_metadata(entries)
    if footer.num_row_groups == 0:
        return Layout(schema, codec or DEFAULT_CODEC, None)
    group = footer.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    dictionary = tuple(c.path_in_schema for c in columns if any("DICT" in encoding for encoding in c.encodings))
    found = columns[0].compression.lower()
    return Layout(schema, codec or ("none" if found == "uncompressed" else found), dictionary)


def of_schema(empty: pq.ParquetFile, avro_schema: str, codec: str | None) -> Layout:
    """The layout of base files to come, from a file without rows that has their Parquet schema."""
    schema = empty.schema_arrow.with_metadata({b"parquet.avro.schema": avro_schema.encode()})
    return Layout(schema, codec or DEFAULT_CODEC, None)


def require_reproducible(layout: Layout, expected: Any, what: str) -> None:
    """Raises `RefusedError` unless a file of this layout has the leaves of the Parquet schema `expected`.

    Compared are each leaf's path (but for the names of the groups that only wrap lists and maps, where Avro writes two
    levels and Arrow three, and every reader knows both), physical and logical type, definition and repetition level
    and field id. `what` names the file in the message.
    """
    buffer = io.BytesIO()
    layout.writer(buffer).close()
    wanted, produced = _leaves(expected), _leaves(pq.ParquetFile(buffer).schema)
    for before, after in zip_longest(wanted, produced):
        if before != after:
            raise RefusedError([not_reproducible(f"{what}: {before} would become {after}")])


def not_reproducible(detail: str) -> Problem:
    return Problem(
        "schema-not-reproducible",
        "A rewritten file would not have exactly the Parquet schema that its input has",
        detail,
        "Rewrite the table once with Hudi's current writer; columns of old types such as INT96 stand in the way.",
    )


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
    # pyarrow shows field ids in the printed schema only, where leaves are the lines that end with a semicolon.
    field_ids = re.findall(r"field_id=(-?\d+)[^\n{]*;$", str(schema), re.MULTILINE)
    leaves = []
    for number, field_id in zip(range(len(schema)), field_ids, strict=True):
        column = schema.column(number)
        top, *below = column.path.split(".")
        leaves.append(
            _Leaf(
                path=(top, *(name for name in below if name not in _WRAPPERS)),
                physical=f"{column.physical_type}[{column.length}]",
                logical=str(column.logical_type),
                max_definition=column.max_definition_level,
                max_repetition=column.max_repetition_level,
                field_id=field_id,
            )
        )
    return leaves
